// SPDX-License-Identifier: Apache-2.0
//
// Long slices save switches, and make whoever comes wait. So they are earned:
// they begin at the driver's own, and grow while nobody comes and goes. Pure;
// of the arbiter alone.

#ifndef RONDO_SHARE_TIME_EARNED_SLICE_H_
#define RONDO_SHARE_TIME_EARNED_SLICE_H_

#include <cstdint>

#include "share/time/rules.h"

namespace rondo::share {

class EarnedSlice {
 public:
  static constexpr double kNobodyUs = 1e12;

  explicit EarnedSlice(double base_us) : base_us_(base_us), us_(base_us) {}

  // The mean slice of those who go round.
  double us() const { return us_; }
  // Somebody came back who had been away.
  void Visited(int64_t now_us, const EarnedSliceRules& rules);
  // Who there is changed: back to where all begin.
  void Fall(int64_t now_us) {
    us_ = base_us_;
    judged_us_ = now_us;
  }
  // rotation_us: of all who run. shortest_visit_us: the shortest request of
  // those who come and go. True where a round of judgement is over.
  bool Judge(int64_t now_us, double rotation_us, double shortest_visit_us,
             const EarnedSliceRules& rules);

 private:
  double MostUs(int64_t now_us, double shortest_visit_us,
                const EarnedSliceRules& rules) const;

  static constexpr int64_t kNever = INT64_MIN / 2;
  const double base_us_;
  double us_;
  int64_t judged_us_ = kNever;
  int64_t visit_us_ = kNever, visit_before_us_ = kNever;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_EARNED_SLICE_H_
