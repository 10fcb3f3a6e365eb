// SPDX-License-Identifier: Apache-2.0
//
// Moves the simulated time of a node's cards along the wall clock, and owns the
// lock on them. Simulated time never runs ahead of the wall clock; it may stand
// still while a thread that lives in simulated time is awake, and then catches
// up. So results do not depend on how fast or loaded the machine is, and agents
// with real timers still see a GPU of the right speed (docs/sim-driver.md).
//
// Threads: Run in one of its own; Stop from any; all others with mutex() held.
// Failure: none.

#ifndef RONDO_SIM_DRIVER_PACER_H_
#define RONDO_SIM_DRIVER_PACER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "sim/driver/card.h"

namespace rondo::sim::driver {

class Pacer {
 public:
  // How long simulated time stands still for a thread that was woken and has
  // not come back: one that was stopped must not stop the node. A process that
  // could run and gets no processor is not stopped: it is waited for longer.
  static constexpr int64_t kHoldNs = 100'000'000;
  static constexpr int64_t kLongestHoldNs = 10'000'000'000;
  // A node that is further behind gives up the rest: it was overloaded.
  static constexpr int64_t kMaxLagNs = 250'000'000;

  // doorbell holds a Doorbell. All outlive the pacer.
  Pacer(std::vector<Card*> cards, std::shared_ptr<SharedMemory> doorbell,
        const Clock& clock);

  std::mutex* mutex() { return &mutex_; }
  void Run();
  void Stop();

  // Brings the cards up to now, as far as holders let it. Returns for how long
  // nothing more will happen by itself; kNever if until the doorbell.
  int64_t CatchUp();
  // Calls task, with the lock held, once so much simulated time has passed.
  // Until then nobody holds the time: the caller waits for it.
  void After(int64_t delay_ns, std::function<void()> task);
  // Something changed that Run may sleep through.
  void Ring();

 private:
  int64_t Wall() const { return clock_.Now().count() - start_ns_ - slip_ns_; }
  int64_t NextEvent() const;
  void AdvanceTo(int64_t time_ns);
  bool Holding() const;
  int64_t HoldLeft();
  void SetWallOffset();

  const std::vector<Card*> cards_;
  const std::shared_ptr<SharedMemory> memory_;
  Doorbell* const doorbell_;
  const Clock& clock_;
  const int64_t start_ns_;
  const int64_t wall_start_ns_;  // CLOCK_REALTIME at the same moment
  std::atomic<bool> stop_{false};

  std::mutex mutex_;  // guards the cards and all below
  int64_t slip_ns_ = 0;
  int64_t now_ns_ = 0;
  int64_t hold_since_ns_ = -1;
  std::multimap<int64_t, std::function<void()>> tasks_;
};

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_PACER_H_
