// SPDX-License-Identifier: Apache-2.0
//
// The ring in which the driver leaves context-switch records: a header page and
// an array of records, both mapped read-only. Pure; the caller maps, flushes
// and gives the place back.

#ifndef RONDO_ACTIVITY_RING_H_
#define RONDO_ACTIVITY_RING_H_

#include <cstdint>
#include <vector>

#include "rm/control.h"

namespace rondo::activity {

struct RingRead {
  std::vector<rm::SwitchRecord> records;  // oldest first
  uint32_t next_get = 0;                  // to be given back to the driver
  uint64_t drops = 0;  // the driver's own count since the ring was made
  bool sane = true;    // false: the header points outside; nothing was read
};

// Copies what lies between `get` and the driver's put. The driver writes while
// we read, so the header is read once. The place of the last read is `get`, not
// the header's: that one follows only after we gave the place back.
RingRead ReadRing(const volatile rm::EventHeader* header,
                  const volatile rm::SwitchRecord* records, uint32_t capacity,
                  uint32_t get);

}  // namespace rondo::activity

#endif  // RONDO_ACTIVITY_RING_H_
