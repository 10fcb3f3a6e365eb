// SPDX-License-Identifier: Apache-2.0
//
// A context's way to the compute engine: the mapped page of its channel group
// and the doorbell. Launching writes to memory and rings; waiting is a futex.
// Thread-safe.
//
// A thread that asked for the simulated time lives in it from then on: time
// stands still while it is awake, so that what it measures does not depend on
// the machine's load.

#ifndef RONDO_SIM_DRIVER_LIBCUDA_CHANNEL_H_
#define RONDO_SIM_DRIVER_LIBCUDA_CHANNEL_H_

#include <cstdint>
#include <mutex>
#include <vector>

#include "sim/driver/group_page.h"
#include "sim/driver/libcuda/rm_client.h"

namespace rondo::sim::cuda {

class Channels {
 public:
  // Both stay mapped: a thread may hold a place there when the context goes.
  Channels(const RmClient* rm, driver::GroupPage* page,
           driver::Doorbell* doorbell)
      : rm_(rm), page_(page), doorbell_(doorbell) {}

  // The number of entries with this one, by which Wait knows it; 0: the driver
  // has ended.
  uint64_t Submit(uint32_t ring, driver::RingEntry entry);
  uint64_t Submitted(uint32_t ring);
  bool Done(uint32_t ring, uint64_t count) const;
  // False: the driver has ended, and nothing will be done any more.
  [[nodiscard]] bool Wait(uint32_t ring, uint64_t count);
  [[nodiscard]] bool WaitAll();

  // Simulated nanoseconds; couples the thread.
  int64_t Now();
  [[nodiscard]] bool SleepUntil(int64_t ns);

  // A place for a time; 0 = none left. Given to Submit as `stamp`.
  uint32_t TakeStamp();
  void GiveStamp(uint32_t stamp);
  std::atomic<int64_t>* Stamp(uint32_t stamp) {
    return &page_->stamps[stamp - 1];
  }

 private:
  void Ring();
  driver::Waiter* Place();
  bool WaitAt(driver::Waiter* place, uint32_t ring, uint64_t count,
              int64_t until_ns);

  const RmClient* const rm_;
  driver::GroupPage* const page_;
  driver::Doorbell* const doorbell_;
  std::mutex ring_mutex_[driver::kRings];
  uint64_t put_[driver::kRings] = {};
  std::mutex stamp_mutex_;
  uint32_t next_stamp_ = 0;
  std::vector<uint32_t> free_stamps_;
};

}  // namespace rondo::sim::cuda

#endif  // RONDO_SIM_DRIVER_LIBCUDA_CHANNEL_H_
