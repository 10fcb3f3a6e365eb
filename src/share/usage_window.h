// SPDX-License-Identifier: Apache-2.0
//
// GPU time used within the last second, in steps of 50 ms. Pure value.

#ifndef RONDO_SHARE_USAGE_WINDOW_H_
#define RONDO_SHARE_USAGE_WINDOW_H_

#include <array>
#include <cstdint>

namespace rondo::share {

class UsageWindow {
 public:
  static constexpr int64_t kStepUs = 50'000;
  static constexpr int kSteps = 20;
  static constexpr int64_t kLengthUs = kStepUs * kSteps;

  // Time must not run backwards.
  void Add(int64_t now_us, int64_t busy_us) {
    Advance(now_us);
    busy_us_[step_ % kSteps] += busy_us;
  }
  int64_t BusyUs(int64_t now_us) {
    Advance(now_us);
    int64_t sum = 0;
    for (int64_t busy : busy_us_) sum += busy;
    return sum;
  }

 private:
  void Advance(int64_t now_us) {
    const int64_t step = now_us / kStepUs;
    if (step - step_ >= kSteps) busy_us_.fill(0);
    for (; step_ < step && step - step_ < kSteps;)
      busy_us_[++step_ % kSteps] = 0;
    step_ = step > step_ ? step : step_;
  }

  int64_t step_ = 0;
  std::array<int64_t, kSteps> busy_us_{};
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_USAGE_WINDOW_H_
