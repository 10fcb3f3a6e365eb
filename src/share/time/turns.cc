// SPDX-License-Identifier: Apache-2.0
#include "share/time/turns.h"

#include <algorithm>

namespace rondo::share {

// By weight: on average a turn is as long as the rules say.
int64_t Turns::LengthOf(const Taker& taker, const std::vector<Taker>& takers,
                        const TurnRules& rules) const {
  double weights = 0;
  bool asked = true;
  for (const Taker& other : takers) {
    weights += other.weight;
    asked &= other.asked;
  }
  const double part =
      taker.weight * static_cast<double>(takers.size()) / weights;
  return static_cast<int64_t>(
      static_cast<double>(asked ? rules.batch_us : rules.standard_us) *
      std::clamp(part, rules.shortest, rules.longest));
}

void Turns::Give(int64_t now_us, const Taker& taker,
                 const std::vector<Taker>& takers, const TurnRules& rules) {
  holder_ = last_ = taker.id;
  if (interrupted_ == holder_) interrupted_.reset();
  const auto rest = rest_.find(taker.id);
  end_us_ = now_us + (rest == rest_.end() ? LengthOf(taker, takers, rules)
                                          : rest->second.us);
  if (rest != rest_.end()) rest_.erase(rest);
  ran_ = false;
  unused_us_ = absent_us_ = 0;
  before_.reset();
}

// The one after whoever had the last turn, in order of ids and round again, who
// can make something of one; where nobody can, just the next.
const Turns::Taker& Turns::After(const std::vector<Taker>& takers) const {
  for (const Taker& taker : takers)
    if (interrupted_ == taker.id && interrupted_ != holder_ && taker.can_run)
      return taker;
  const auto after =
      std::find_if(takers.begin(), takers.end(),
                   [&](const Taker& taker) { return taker.id > last_; });
  const auto first = after - takers.begin();
  const auto count = static_cast<std::ptrdiff_t>(takers.size());
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const Taker& taker = takers[(first + i) % count];
    if (taker.can_run) return taker;
  }
  return takers[first % count];
}

// One whose turn ended for want of work, and that has some again.
const Turns::Taker* Turns::Back(const std::vector<Taker>& takers) const {
  for (const Taker& taker : takers) {
    const auto rest = rest_.find(taker.id);
    if (rest != rest_.end() && rest->second.paused && taker.can_run)
      return &taker;
  }
  return nullptr;
}

Turns::Next Turns::Update(int64_t now_us, const std::vector<Taker>& takers,
                          const InGap& in_gap, const TurnRules& rules) {
  Next next;
  if (takers.empty()) {
    Clear();
    return next;
  }
  const auto held =
      std::find_if(takers.begin(), takers.end(),
                   [&](const Taker& taker) { return holder_ == taker.id; });
  const Taker* const back = Back(takers);
  if (held == takers.end()) {
    Give(now_us, back != nullptr ? *back : After(takers), takers, rules);
  } else {
    // Turns became shorter, by config or weights: this one too.
    end_us_ = std::min(end_us_, now_us + LengthOf(*held, takers, rules));
    const int64_t waited_us = now_us - end_us_;
    const bool others =
        std::any_of(takers.begin(), takers.end(), [&](const Taker& taker) {
          return taker.id != *holder_ && taker.can_run;
        });
    if (!others) {
      if (waited_us >= 0) Give(now_us, *held, takers, rules);
    } else if (!held->can_run) {
      Give(now_us, After(takers), takers, rules);
    } else if (back != nullptr && now_us < end_us_) {
      // It runs already, and disturbs more than a change of turns does.
      rest_[*holder_] = {.us = end_us_ - now_us};
      interrupted_ = holder_;
      Give(now_us, *back, takers, rules);
    } else if (waited_us >= 0 && (!in_gap || in_gap(waited_us))) {
      const Before before{*holder_,   end_us_,    ran_,
                          unused_us_, absent_us_, rest_};
      Give(now_us, back != nullptr ? *back : After(takers), takers, rules);
      if (in_gap && waited_us < rules.gap_wait_us) {
        before_ = before;
        next.not_after_us = now_us + rules.call_us;
      }
    }
  }
  const int64_t due_us =
      now_us < end_us_ ? end_us_ : end_us_ + rules.gap_wait_us;
  next.wake_us = std::max(due_us, now_us + 1);
  return next;
}

bool Turns::Undo(TenantId suspended) {
  if (!before_ || before_->holder != suspended) return false;
  holder_ = last_ = before_->holder;
  end_us_ = before_->end_us;
  ran_ = before_->ran;
  unused_us_ = before_->unused_us;
  absent_us_ = before_->absent_us;
  rest_ = before_->rest;
  before_.reset();
  return true;
}

}  // namespace rondo::share
