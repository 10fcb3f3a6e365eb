// SPDX-License-Identifier: Apache-2.0
//
// What a program and the simulated GPU share, so that a kernel launch is no
// system call: the rings of a channel group, the times at which its entries
// were done, and the places where threads wait. It stands for a real channel's
// GPFIFO, USERD and semaphores; as on the real card it is mapped by
// RM_MAP_MEMORY (here of the group's handle) and a doorbell tells of new work.
//
// The program writes `put`, entries and waiters, then rings the doorbell; the
// GPU writes the rest. Times are simulated nanoseconds. Freestanding; all
// cross-process members are lock-free atomics. The other end is hostile: the
// simulator copies, then checks.

#ifndef RONDO_SIM_DRIVER_GROUP_PAGE_H_
#define RONDO_SIM_DRIVER_GROUP_PAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rondo::sim::driver {

inline constexpr uint32_t kRingEntries = 1024;
inline constexpr uint32_t kRings = 8;  // channels of a group
inline constexpr uint32_t kStamps = 4096;
inline constexpr uint32_t kWaiters = 32;  // threads that wait at once

struct RingEntry {
  int64_t duration_ns;  // of a kernel; 0 = a marker that takes no time
  uint64_t wait_done;   // not before ring wait_ring has done so many
  uint32_t wait_ring;   // the entry's own ring = no condition
  uint32_t stamp;       // 1 + index in stamps; 0 = none
};
static_assert(sizeof(RingEntry) == 24);

struct Ring {
  std::atomic<uint64_t> put;   // entries written
  std::atomic<uint64_t> get;   // entries taken; put - get <= kRingEntries
  std::atomic<uint64_t> done;  // entries finished
  RingEntry entries[kRingEntries];
};

enum WaiterState : uint32_t {
  kWaiterFree = 0,
  kWaiterClaimed,  // a thread has the place, does not wait
  kWaiterWaiting,  // futex: until ring has done `done`, or the time until_ns
  kWaiterHolding,  // awake; simulated time stands still until it waits again
};

struct Waiter {
  std::atomic<uint32_t> state;  // also the futex
  uint32_t ring;
  uint64_t done;     // 0 = only time counts
  int64_t until_ns;  // INT64_MAX = only work counts
  // Non-zero: the thread lives in simulated time, so the simulation waits for
  // it between its waking and its next wait.
  std::atomic<uint32_t> coupled;
  uint32_t pad;
  std::atomic<int64_t> woken_ns;  // when it was woken, in simulated time
};
static_assert(sizeof(Waiter) == 40);

struct GroupPage {
  std::atomic<int64_t> now_ns;
  Ring rings[kRings];
  std::atomic<int64_t> stamps[kStamps];
  Waiter waiters[kWaiters];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// Mapped by RM_MAP_MEMORY of an object of this class (a real driver's
// HOPPER_USERMODE_A): one counter for all GPUs, also a futex.
inline constexpr uint32_t kClassDoorbell = 0xc661;
struct Doorbell {
  std::atomic<uint32_t> rings;
};

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_GROUP_PAGE_H_
