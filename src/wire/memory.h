// SPDX-License-Identifier: Apache-2.0
//
// The messages of wire/messages.h by which a shim tells of memory. They form a
// name space of blocks a connection: `id` is one, whichever message made it.
// Freestanding.

#ifndef RONDO_WIRE_MEMORY_H_
#define RONDO_WIRE_MEMORY_H_

#include "wire/messages.h"

namespace rondo::wire {

// `id` names one block of memory on this connection; the shim chooses it. A
// second kReserve of an id asks for another size. Refused = nothing changed.
struct Reserve {
  static constexpr Type kType = Type::kReserve;
  Header header;
  uint64_t id, bytes;
  Kind kind;
  uint8_t held;  // 1: already taken from the driver; charge it, do not answer
  uint8_t pad[6];
};
static_assert(sizeof(Reserve) == 32);

struct Release {
  static constexpr Type kType = Type::kRelease;
  Header header;
  uint64_t id;
};
static_assert(sizeof(Release) == 16);

// The block may be imported by other processes, who find this tag on it. It
// stays charged here; with its release, the charge passes on to who holds it.
struct Shared {
  static constexpr Type kType = Type::kShared;
  Header header;
  uint64_t id;
  uint32_t tag;  // not 0; chosen at random, the same for all who hold it
  uint32_t pad;
};
static_assert(sizeof(Shared) == 24);

// Memory that another process made and this one holds as well: not charged
// here as long as somebody else is charged with it. A fact, like a Reserve that
// is `held`: no answer, no refusal. kRelease gives it up.
struct Borrow {
  static constexpr Type kType = Type::kBorrow;
  Header header;
  uint64_t id, bytes;  // bytes 0: not known, those of the block of this tag
  uint32_t tag;        // 0: not known
  uint32_t pad;
};
static_assert(sizeof(Borrow) == 32);

}  // namespace rondo::wire

#endif  // RONDO_WIRE_MEMORY_H_
