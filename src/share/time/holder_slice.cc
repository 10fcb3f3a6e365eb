// SPDX-License-Identifier: Apache-2.0
#include "share/time/holder_slice.h"

#include <algorithm>
#include <cmath>

namespace rondo::share {
namespace {

// Much less than its price: there is room for a shorter one.
constexpr double kMuchLess = 1.6;
constexpr double kChange = 0.2;  // less is not worth an interruption
// Of work, by a switch between two that have some (docs/benchmarks.md).
constexpr double kLostUs = 160;

}  // namespace

void HolderSlice::Add(int64_t interval_us, int64_t stays, double price,
                      double most_us, const HolderSliceRules& rules) {
  Begin(rules);
  seen_us_ += interval_us;
  stays_ += stays;
  if (seen_us_ < rules.judged_us) return;
  // The GPU goes there and back once a period; it may do so once in `right_us`.
  const double period_us = static_cast<double>(seen_us_) /
                           static_cast<double>(std::max<int64_t>(1, stays_));
  seen_us_ = stays_ = 0;
  const double right_us = 2 * kLostUs / price;
  double us = us_ + right_us - period_us;
  if (us < us_) us = period_us > kMuchLess * right_us ? us_ / 2 : us_;
  us = std::min(us, most_us);
  if (us < rules.shortest_us) us = rules.tiny_us;
  if (std::abs(us - us_) > kChange * us_) us_ = us;
}

}  // namespace rondo::share
