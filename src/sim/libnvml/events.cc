// SPDX-License-Identifier: Apache-2.0
//
// Event sets. A set remembers, for each GPU, which events it wants and since
// when; the events themselves are in the node's ring. A wait sleeps on the
// node's futex, so a fault injected by any process ends it at once.

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "sim/libnvml/library.h"

using namespace rondo::sim::libnvml;  // NOLINT
using rondo::sim::EventRecord;
using rondo::sim::GpuState;
using rondo::sim::kEventRing;
using rondo::sim::kHasEcc;
using rondo::sim::kHasMig;
using rondo::sim::kHasXidEvents;
using rondo::sim::kMaxGpus;
using rondo::sim::NodeState;

namespace {

struct Set {
  Mutex mutex;
  bool used = false;  // all that follows: guarded by mutex
  uint64_t next = 0;  // number of the next record to look at
  uint64_t types[kMaxGpus] = {};
  uint64_t since[kMaxGpus] = {};  // records before this are none of ours
};

// A handle is the address of its place here, so that a stale one is noticed.
Set g_sets[64];

Set* FindSet(EventSet handle) {
  for (Set& set : g_sets)
    if (reinterpret_cast<EventSet>(&set) == handle) return &set;
  return nullptr;
}

uint64_t SupportedTypes(const Target& t) {
  if (!t.has(kHasXidEvents)) return 0;
  uint64_t types = kEventPState | kEventXid | kEventClock;
  if (t.has(kHasEcc)) types |= kEventSingleBitEcc | kEventDoubleBitEcc;
  if (t.has(kHasMig)) types |= kEventMigConfigChange;
  return types;
}

// Takes the next record that the set wants.
bool Take(const NodeState& node, Set* set, EventData* out) {
  const uint64_t end = node.event_count.load(std::memory_order_acquire);
  if (end > set->next + kEventRing) set->next = end - kEventRing;
  while (set->next < end) {
    const uint64_t number = set->next++;
    const EventRecord& record = node.events[number % kEventRing];
    const uint32_t gpu = record.gpu;
    if (gpu >= kMaxGpus || number < set->since[gpu]) continue;
    if ((set->types[gpu] & record.type) == 0) continue;
    *out = {DeviceHandle(gpu), record.type, record.data, record.gpu_instance,
            record.compute_instance};
    return true;
  }
  return false;
}

timespec Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now;
}

// False after the deadline.
bool SleepUntil(const NodeState& node, uint32_t seen,
                const timespec& deadline) {
  // Absolute time, so that a signal does not make the wait longer. The word is
  // in a file: no FUTEX_PRIVATE_FLAG.
  const long rc = syscall(SYS_futex, &node.event_futex, FUTEX_WAIT_BITSET, seen,
                          &deadline, nullptr, FUTEX_BITSET_MATCH_ANY);
  return rc == 0 || errno != ETIMEDOUT;
}

Return Wait(EventSet handle, EventData* out, unsigned timeout_ms) {
  const NodeState* const node = State();
  if (node == nullptr) return kUninitialized;
  Set* const set = FindSet(handle);
  NVML_REQUIRE(set != nullptr && out != nullptr);
  timespec deadline = Now();
  deadline.tv_sec += timeout_ms / 1000;
  deadline.tv_nsec += timeout_ms % 1000 * 1000000l;
  if (deadline.tv_nsec >= 1000000000) {
    deadline.tv_nsec -= 1000000000;
    ++deadline.tv_sec;
  }
  for (;;) {
    // The word first, the ring second: an event between the two wakes us.
    const uint32_t seen = node->event_futex.load(std::memory_order_acquire);
    {
      const Lock lock(set->mutex);
      NVML_REQUIRE(set->used);
      if (Take(*node, set, out)) return kSuccess;
    }
    if (timeout_ms == 0 || !SleepUntil(*node, seen, deadline)) return kTimeout;
    if (State() != node) return kUninitialized;
  }
}

}  // namespace

NVML_EXPORT(nvmlEventSetCreate)(EventSet* handle) {
  const NodeState* const node = State();
  if (node == nullptr) return kUninitialized;
  NVML_REQUIRE(handle != nullptr);
  for (Set& set : g_sets) {
    const Lock lock(set.mutex);
    if (set.used) continue;
    set.used = true;
    set.next = node->event_count.load(std::memory_order_acquire);
    std::fill(set.types, set.types + kMaxGpus, 0);
    *handle = reinterpret_cast<EventSet>(&set);
    return kSuccess;
  }
  return kInsufficientResources;
}

NVML_EXPORT(nvmlEventSetFree)(EventSet handle) {
  if (State() == nullptr) return kUninitialized;
  Set* const set = FindSet(handle);
  NVML_REQUIRE(set != nullptr);
  const Lock lock(set->mutex);
  NVML_REQUIRE(set->used);
  set->used = false;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetSupportedEventTypes)
(Device device, unsigned long long* types) {
  NVML_FIND(FindGpu, device, target);
  NVML_REQUIRE(types != nullptr);
  *types = SupportedTypes(target);
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceRegisterEvents)
(Device device, unsigned long long types, EventSet handle) {
  NVML_FIND(FindGpu, device, target);
  Set* const set = FindSet(handle);
  NVML_REQUIRE(set != nullptr);
  if (types == 0 || (types & ~SupportedTypes(target)) != 0)
    return kNotSupported;
  const Lock lock(set->mutex);
  NVML_REQUIRE(set->used);
  if (set->types[target.index] == 0)
    set->since[target.index] =
        target.node->event_count.load(std::memory_order_acquire);
  set->types[target.index] |= types;
  return kSuccess;
}

NVML_EXPORT(nvmlEventSetWait_v2)
(EventSet set, EventData* data, unsigned timeout_ms) {
  return Wait(set, data, timeout_ms);
}

// The first version's struct ends before the instance numbers.
NVML_EXPORT(nvmlEventSetWait)
(EventSet set, EventData* data, unsigned timeout_ms) {
  NVML_REQUIRE(data != nullptr);
  EventData whole;
  const Return got = Wait(set, &whole, timeout_ms);
  if (got != kSuccess) return got;
  data->device = whole.device;
  data->type = whole.type;
  data->data = whole.data;
  return kSuccess;
}
