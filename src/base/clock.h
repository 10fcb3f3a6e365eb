// SPDX-License-Identifier: Apache-2.0
//
// Time as an argument. Production code gets RealClock(); tests get ManualClock
// and move it by hand.

#ifndef RONDO_BASE_CLOCK_H_
#define RONDO_BASE_CLOCK_H_

#include <atomic>
#include <chrono>
#include <cstdint>

namespace rondo {

// Monotonic time since an arbitrary start.
using MonotonicTime = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonotonicTime Now() const = 0;
};

// CLOCK_MONOTONIC. Thread-safe, lives for ever.
const Clock& RealClock();

// Stands still until it is told to advance. Thread-safe.
class ManualClock : public Clock {
 public:
  MonotonicTime Now() const override {
    return MonotonicTime(now_ns_.load(std::memory_order_relaxed));
  }
  void Advance(MonotonicTime by) {
    now_ns_.fetch_add(by.count(), std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> now_ns_{0};
};

}  // namespace rondo

#endif  // RONDO_BASE_CLOCK_H_
