// SPDX-License-Identifier: Apache-2.0
//
// A limit of GPU time, kept by duty cycle: a budget grows with time x limit,
// shrinks with use and holds one burst at most. Spent: throttled until half
// full. What is overrun is paid back. Pure; of the arbiter alone. Times in us.

#ifndef RONDO_SHARE_TIME_DUTY_LIMIT_H_
#define RONDO_SHARE_TIME_DUTY_LIMIT_H_

#include <algorithm>
#include <cstdint>

namespace rondo::share {

class DutyLimit {
 public:
  // limit: in (0, 1]; 1 = none. A limit that comes later counts from then: what
  // was used without one is not held against the tenant.
  void Set(int64_t now_us, double limit, int64_t duty_us) {
    const bool is_new = known_ && limit_ >= 1;
    if (!known_ || is_new) {
      budget_us_ = limit * static_cast<double>(duty_us) / 2;
      since_us_ = now_us;
    }
    if (!known_) at_us_ = now_us;
    known_ = true;
    limit_ = limit;
    most_us_ = limit * static_cast<double>(duty_us);
    budget_us_ = std::min(budget_us_, most_us_);
  }
  bool limited() const { return limit_ < 1; }
  bool throttled() const { return throttled_; }
  double budget_us() const { return budget_us_; }
  int64_t since_us() const { return since_us_; }

  // unseen: it may have run, and nobody can tell for how long. All of that time
  // is the only safe answer.
  void Pass(int64_t now_us, bool unseen) {
    const auto elapsed_us = static_cast<double>(now_us - at_us_);
    at_us_ = now_us;
    if (!limited()) return;
    budget_us_ = std::min(budget_us_ + elapsed_us * limit_, most_us_);
    if (unseen) budget_us_ -= elapsed_us;
  }
  void Spend(int64_t us) {
    if (limited()) budget_us_ -= static_cast<double>(us);
  }
  // present: it has channels. Returns in how many us to ask again.
  double Judge(bool present) {
    if (!limited() || !present) {
      throttled_ = false;
      return kNoWakeUs;
    }
    if (budget_us_ <= 0) throttled_ = true;
    if (budget_us_ >= most_us_ / 2) throttled_ = false;
    const double until_us = throttled_ ? (most_us_ / 2 - budget_us_) / limit_
                                       : budget_us_ / (1 - limit_);
    return std::clamp(until_us, kLeastWakeUs, kLongestWakeUs);
  }

  static constexpr double kNoWakeUs = 1e15;

 private:
  // A limit near 0 has a budget of nothing, and waits for years, which is more
  // than a clock's number holds. What is missed within the least is paid back.
  static constexpr double kLeastWakeUs = 1'000, kLongestWakeUs = 3600e6;

  bool known_ = false, throttled_ = false;
  double limit_ = 1, budget_us_ = 0, most_us_ = 0;
  int64_t at_us_ = 0, since_us_ = 0;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_DUTY_LIMIT_H_
