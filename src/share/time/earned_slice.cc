// SPDX-License-Identifier: Apache-2.0
#include "share/time/earned_slice.h"

#include <algorithm>

namespace rondo::share {

void EarnedSlice::Visited(int64_t now_us, const EarnedSliceRules& rules) {
  visit_before_us_ = visit_us_;
  visit_us_ = now_us;
  if (us_ > base_us_ * rules.patient) Fall(now_us);
}

// Where somebody comes and goes, slices stay where they begin: it would wait
// for one of each of the others. One whose requests are much longer than that
// loses less by waiting than all lose by switching.
double EarnedSlice::MostUs(int64_t now_us, double shortest_visit_us,
                           const EarnedSliceRules& rules) const {
  const double patient_us = base_us_ * rules.patient;
  if (shortest_visit_us < patient_us * rules.whole) return base_us_;
  const bool expected = now_us - visit_before_us_ <= rules.remembered_us;
  if (expected || shortest_visit_us < kNobodyUs) return patient_us;
  return std::max<double>(base_us_, rules.longest_us);
}

bool EarnedSlice::Judge(int64_t now_us, double rotation_us,
                        double shortest_visit_us,
                        const EarnedSliceRules& rules) {
  const double due_us =
      std::max<double>(rules.judged_us, rules.judged_rounds * rotation_us);
  if (now_us - judged_us_ < due_us) return false;
  judged_us_ = now_us;
  us_ = std::min(us_ * rules.step, MostUs(now_us, shortest_visit_us, rules));
  return true;
}

}  // namespace rondo::share
