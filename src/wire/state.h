// SPDX-License-Identifier: Apache-2.0
//
// What a shim tells of itself: why its process is not governed, and how often
// each degraded path was taken (docs/shim.md). The two lists are the only place
// where reasons and counters are named. Bits and places are part of the wire:
// append, never reorder. Freestanding.

#ifndef RONDO_WIRE_STATE_H_
#define RONDO_WIRE_STATE_H_

#include "wire/messages.h"

namespace rondo::wire {

// Why a process is not, or not wholly, governed: bit i of State::reasons.
#define RONDO_WIRE_REASONS(X)                                        \
  X(kDriverTooOld, "driver older than 535")                          \
  X(kUnknownIoctl, "unknown size of a driver request")               \
  X(kUnknownGpu, "memory on a GPU that the shim cannot tell")        \
  X(kNoThread, "the shim could not start its thread")                \
  X(kSliceRefused, "the driver did not take the time slice")         \
  X(kTableFull, "no memory for the shim's tables")                   \
  X(kHmmOn, "HMM is on: plain memory may move to the GPU uncounted") \
  X(kResumeFailed, "the driver did not resume the process's channels")

// Degraded paths that were taken: State::counters[i].
#define RONDO_WIRE_COUNTERS(X)                                                \
  X(kDenied, "allocations refused")                                           \
  X(kDeniedLocally, "allocations refused while the agent was away")           \
  X(kAgentLost, "connections lost")                                           \
  X(kAgentSlow, "answers that did not come in time")                          \
  X(kAgentAbsent, "connections that could not be made")                       \
  X(kPassedThrough, "driver requests of unknown shape, passed through")       \
  X(kUncharged, "allocations that could not be charged")                      \
  X(kSocketStolen, "connections whose descriptor the program closed")         \
  X(kUnblocked, "times that slices were restored and channels resumed alone") \
  X(kUntagged, "imports of memory without a tag, known by their size alone")

enum class Reason : uint32_t {
#define RONDO_X(name, text) name,
  RONDO_WIRE_REASONS(RONDO_X)
#undef RONDO_X
      kCount
};
enum class Counter : uint32_t {
#define RONDO_X(name, text) name,
  RONDO_WIRE_COUNTERS(RONDO_X)
#undef RONDO_X
      kCount
};

inline constexpr size_t kMaxCounters = 16;
struct State {
  static constexpr Type kType = Type::kState;
  Header header;
  uint64_t reasons;                 // 0 = governed
  uint32_t counters[kMaxCounters];  // since the process started
};
static_assert(sizeof(State) == 80);
static_assert(static_cast<size_t>(Counter::kCount) <= kMaxCounters);

}  // namespace rondo::wire

#endif  // RONDO_WIRE_STATE_H_
