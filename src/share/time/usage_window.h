// SPDX-License-Identifier: Apache-2.0
//
// A sum over the last second, such as of GPU time, in steps of 50 ms. Pure
// value.

#ifndef RONDO_SHARE_TIME_USAGE_WINDOW_H_
#define RONDO_SHARE_TIME_USAGE_WINDOW_H_

#include <array>
#include <cstdint>

namespace rondo::share {

class UsageWindow {
 public:
  static constexpr int64_t kStepUs = 50'000;
  static constexpr int kSteps = 20;
  static constexpr int64_t kLengthUs = kStepUs * kSteps;

  // Time must not run backwards.
  void Add(int64_t now_us, int64_t amount) {
    Advance(now_us);
    amounts_[step_ % kSteps] += amount;
  }
  int64_t Sum(int64_t now_us) {
    Advance(now_us);
    int64_t sum = 0;
    for (int64_t amount : amounts_) sum += amount;
    return sum;
  }

 private:
  void Advance(int64_t now_us) {
    const int64_t step = now_us / kStepUs;
    if (step - step_ >= kSteps) amounts_.fill(0);
    for (; step_ < step && step - step_ < kSteps;)
      amounts_[++step_ % kSteps] = 0;
    step_ = step > step_ ? step : step_;
  }

  int64_t step_ = 0;
  std::array<int64_t, kSteps> amounts_{};
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_USAGE_WINDOW_H_
