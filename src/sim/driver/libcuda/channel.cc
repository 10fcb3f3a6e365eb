// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/libcuda/channel.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace rondo::sim::cuda {
namespace {

using driver::kWaiterClaimed;
using driver::kWaiterFree;
using driver::kWaiterHolding;
using driver::kWaiterWaiting;
using driver::Waiter;

// This thread's places, one a context page, given back when it ends.
class Places {
 public:
  ~Places() {
    for (const auto& [page, place] : places_) {
      place->coupled = 0;
      place->state.store(kWaiterFree, std::memory_order_release);
    }
  }
  Waiter* Find(driver::GroupPage* page) {
    for (const auto& [known, place] : places_)
      if (known == page) return place;
    for (Waiter& w : page->waiters) {
      uint32_t expected = kWaiterFree;
      if (!w.state.compare_exchange_strong(expected, kWaiterClaimed)) continue;
      w.coupled = 0;
      places_.emplace_back(page, &w);
      return &w;
    }
    return nullptr;
  }

 private:
  std::vector<std::pair<driver::GroupPage*, Waiter*>> places_;
};

thread_local Places t_places;

}  // namespace

void Channels::Ring() {
  doorbell_->rings.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &doorbell_->rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr,
          0);
}

driver::Waiter* Channels::Place() { return t_places.Find(page_); }

uint64_t Channels::Submit(uint32_t index, driver::RingEntry entry) {
  driver::Ring& ring = page_->rings[index];
  Waiter* const place = Place();
  std::lock_guard lock(ring_mutex_[index]);
  // A full ring makes the launch wait, as on the real card.
  if (put_[index] >= driver::kRingEntries &&
      !Wait(index, put_[index] - driver::kRingEntries + 1))
    return 0;
  ring.entries[put_[index] % driver::kRingEntries] = entry;
  ring.put.store(++put_[index], std::memory_order_release);
  // While this thread holds the time, nothing can begin before it waits.
  if (place == nullptr || place->state != kWaiterHolding) Ring();
  return put_[index];
}

uint64_t Channels::Submitted(uint32_t index) {
  std::lock_guard lock(ring_mutex_[index]);
  return put_[index];
}

bool Channels::Done(uint32_t ring, uint64_t count) const {
  return page_->rings[ring].done.load(std::memory_order_acquire) >= count;
}

bool Channels::WaitAt(Waiter* place, uint32_t ring, uint64_t count,
                      int64_t until_ns) {
  constexpr timespec kLook{1, 0};
  place->ring = ring;
  place->done = count;
  place->until_ns = until_ns;
  place->state.store(kWaiterWaiting, std::memory_order_release);
  Ring();
  while (place->state.load(std::memory_order_acquire) == kWaiterWaiting) {
    const long result = syscall(SYS_futex, &place->state, FUTEX_WAIT,
                                kWaiterWaiting, &kLook, nullptr, 0);
    if (result < 0 && errno == ETIMEDOUT && !rm_->Alive()) return false;
  }
  return true;
}

bool Channels::Wait(uint32_t ring, uint64_t count) {
  if (Done(ring, count)) return true;
  if (Waiter* const place = Place(); place != nullptr)
    return WaitAt(place, ring, count, INT64_MAX);
  // More threads wait than there are places.
  while (!Done(ring, count)) {
    if (!rm_->Alive()) return false;
    sched_yield();
  }
  return true;
}

bool Channels::WaitAll() {
  for (uint32_t ring = 0; ring < driver::kRings; ++ring)
    if (!Wait(ring, Submitted(ring))) return false;
  return true;
}

int64_t Channels::Now() {
  Waiter* const place = Place();
  if (place == nullptr) return page_->now_ns;
  place->coupled = 1;
  if (place->state != kWaiterHolding && !WaitAt(place, 0, 0, 0))
    return page_->now_ns;
  return place->woken_ns;
}

bool Channels::SleepUntil(int64_t ns) {
  Waiter* const place = Place();
  if (place == nullptr) return false;
  place->coupled = 1;
  return WaitAt(place, 0, 0, ns);
}

uint32_t Channels::TakeStamp() {
  std::lock_guard lock(stamp_mutex_);
  if (!free_stamps_.empty()) {
    const uint32_t stamp = free_stamps_.back();
    free_stamps_.pop_back();
    return stamp;
  }
  return next_stamp_ == driver::kStamps ? 0 : ++next_stamp_;
}

void Channels::GiveStamp(uint32_t stamp) {
  std::lock_guard lock(stamp_mutex_);
  free_stamps_.push_back(stamp);
}

}  // namespace rondo::sim::cuda
