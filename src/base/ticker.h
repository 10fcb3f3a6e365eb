// SPDX-License-Identifier: Apache-2.0
//
// A thread that does one thing again and again: for calls that may block, which
// an event loop must not make.

#ifndef RONDO_BASE_TICKER_H_
#define RONDO_BASE_TICKER_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace rondo {

class Ticker {
 public:
  // Calls tick at once, on the thread of its own, then interval after each
  // return.
  Ticker(std::chrono::milliseconds interval, std::function<void()> tick)
      : thread_([this, interval, tick = std::move(tick)] {
          std::unique_lock lock(mutex_);
          while (!stop_) {
            lock.unlock();
            tick();
            lock.lock();
            changed_.wait_for(lock, interval,
                              [this] { return stop_ || soon_; });
            soon_ = false;
          }
        }) {}
  // Waits for the call in flight.
  ~Ticker() {
    Change(&stop_);
    thread_.join();
  }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // Calls tick once more at once, or after the call in flight. Any thread.
  void Soon() { Change(&soon_); }

 private:
  void Change(bool* what) {
    {
      const std::lock_guard lock(mutex_);
      *what = true;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false, soon_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace rondo

#endif  // RONDO_BASE_TICKER_H_
