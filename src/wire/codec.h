// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing the messages of wire/messages.h.
//
// Read() copies, then checks, since the other end may be hostile. A message of
// unknown type is skipped; one longer than known is read by its known head, so
// fields may be added at the end without a new version. Freestanding.

#ifndef RONDO_WIRE_CODEC_H_
#define RONDO_WIRE_CODEC_H_

#include "wire/memory.h"
#include "wire/messages.h"
#include "wire/state.h"

namespace rondo::wire {

// A message ready to send: everything zero but its header.
template <typename T>
constexpr T Make(uint32_t seq) {
  T message{};
  message.header = {T::kType, sizeof(T), seq};
  return message;
}

// The header of a datagram of `size` bytes. False: not a message; skip it.
inline bool ReadHeader(const void* data, size_t size, Header* out) {
  if (size < sizeof(Header)) return false;
  __builtin_memcpy(out, data, sizeof(Header));
  return out->size >= sizeof(Header) && out->size <= size;
}

// Copies a T out of a datagram. False: another type, too short, or a field out
// of its range; the message is to be skipped, whatever the sender meant.
template <typename T>
bool Read(const void* data, size_t size, T* out) {
  Header header;
  if (!ReadHeader(data, size, &header)) return false;
  if (header.type != T::kType || header.size < sizeof(T)) return false;
  __builtin_memcpy(out, data, sizeof(T));
  return Valid(*out);
}

constexpr bool Valid(const Policy& p) {
  return p.memory <= Memory::kEnforce && p.managed <= Managed::kIgnore &&
         p.on_agent_loss <= OnAgentLoss::kOpen && p.cls <= Class::kBatch;
}
constexpr bool Valid(const Hello& m) {
  return m.magic == kMagic && m.oldest <= m.version && m.driver[31] == 0;
}
constexpr bool Valid(const Welcome& m) {
  return m.version >= kOldestVersion && m.version <= kVersion &&
         Valid(m.policy);
}
constexpr bool Valid(const Reserve& m) {
  return m.kind <= Kind::kManaged && m.held <= 1;
}
constexpr bool Valid(const Answer& m) { return m.verdict <= Verdict::kDenied; }
constexpr bool Valid(const Channels& m) {
  return m.count <= kMaxHandles && m.gone <= 1;
}
constexpr bool Valid(const PolicyChange& m) { return Valid(m.policy); }
constexpr bool Valid(const Release&) { return true; }
constexpr bool Valid(const Shared& m) { return m.tag != 0; }
constexpr bool Valid(const Borrow& m) { return m.tag != 0 || m.bytes != 0; }
constexpr bool Valid(const View&) { return true; }
constexpr bool Valid(const Slice&) { return true; }
constexpr bool Valid(const Applied&) { return true; }
constexpr bool Valid(const State&) { return true; }

}  // namespace rondo::wire

#endif  // RONDO_WIRE_CODEC_H_
