// SPDX-License-Identifier: Apache-2.0
//
// The calls that this process makes just now of those that may never return, so
// that whoever waits for them no longer can say which (base/ending.h).
//
// Any thread. It outlives the calls.

#ifndef RONDO_BASE_IN_FLIGHT_H_
#define RONDO_BASE_IN_FLIGHT_H_

#include <list>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace rondo {

class CallsInFlight {
 public:
  struct Call {
    std::string what;
    MonotonicTime since;
  };

  // One call, while the object lives. calls: null where nobody asks.
  class Scope {
   public:
    Scope(CallsInFlight* calls, std::string what) : calls_(calls) {
      if (calls_ == nullptr) return;
      Call call{std::move(what), RealClock().Now()};
      const std::lock_guard lock(calls_->mutex_);
      at_ = calls_->calls_.insert(calls_->calls_.end(), std::move(call));
    }
    ~Scope() {
      if (calls_ == nullptr) return;
      const std::lock_guard lock(calls_->mutex_);
      calls_->calls_.erase(at_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    CallsInFlight* const calls_;
    std::list<Call>::iterator at_;
  };

  // Those that began then or before, the oldest first.
  std::vector<Call> Since(MonotonicTime then) const {
    std::vector<Call> found;
    const std::lock_guard lock(mutex_);
    for (const Call& call : calls_)
      if (call.since <= then) found.push_back(call);
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::list<Call> calls_;  // guarded by mutex_
};

}  // namespace rondo

#endif  // RONDO_BASE_IN_FLIGHT_H_
