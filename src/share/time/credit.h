// SPDX-License-Identifier: Apache-2.0
//
// How far a tenant is ahead of its share of the GPU, in us: a budget that fills
// with its share of the time and is spent by what it uses while others want the
// GPU. Over, once it is spent: others who want the GPU come first until it has
// paid back. Pure; of the arbiter alone.

#ifndef RONDO_SHARE_TIME_CREDIT_H_
#define RONDO_SHARE_TIME_CREDIT_H_

#include <algorithm>

#include "share/time/rules.h"

namespace rondo::share {

class Credit {
 public:
  // share: of the GPU among those who want it, in (0, 1].
  void Settle(double elapsed_us, double share, double used_us,
              const CreditTerms& terms, const CreditRules& rules) {
    const auto most_us = static_cast<double>(terms.most_us);
    if (!known_) balance_us_ = most_us;
    known_ = true;
    // Over it, there is nothing to borrow.
    const double rate = over_ ? share
                              : std::min(share * terms.borrow,
                                         share + terms.others * (1 - share));
    balance_us_ = std::clamp(balance_us_ + elapsed_us * rate - used_us,
                             -most_us, most_us);
    if (balance_us_ <= 0) over_ = true;
    if (balance_us_ >= most_us * rules.again) over_ = false;
  }
  bool over() const { return over_; }
  double balance_us() const { return balance_us_; }

 private:
  bool known_ = false, over_ = false;
  double balance_us_ = 0;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_CREDIT_H_
