// SPDX-License-Identifier: Apache-2.0
#include "share/time/demand.h"

#include <algorithm>
#include <cmath>

namespace rondo::share {
namespace {

constexpr double kSameSlice = 0.02;
constexpr double kVisitFades = 0.99;  // a report

}  // namespace

void Demand::Add(int64_t now_us, const Use& use, const Round& round,
                 const DemandRules& rules) {
  // By the report's start at least: it does not say when it came.
  const auto away_us =
      static_cast<double>(now_us - round.interval_us - last_us_);
  came_ = false;
  if (use.busy_us > 0) {
    const bool away =
        away_us > std::max<double>(rules.pause_us, 1.5 * round.others_us);
    if (away) fills_since_us_ = now_us;
    came_ = away && !round.kept_off && last_us_ != kNever;
    last_us_ = now_us - use.idle_us;
    asleep_ = false;
  } else if (round.kept_off && !asleep_) {
    last_us_ = now_us;
  } else if (away_us > std::max<double>(rules.asleep_us, 2 * round.others_us)) {
    asleep_ = true;
    fills_ = false;
  }
  Judge(now_us, use, round, rules);
  if (fills_ || (asleep_ && away_us > rules.forgotten_us))
    visits_since_us_ = kNever;
}

void Demand::Judge(int64_t now_us, const Use& report, const Round& round,
                   const DemandRules& rules) {
  const bool same = std::abs(round.slice_us - judged_slice_us_) <=
                    kSameSlice * round.slice_us;
  judged_slice_us_ = round.slice_us;
  if (!same || round.kept_off) return JudgeAnew();
  if (!round.contended) return;
  visit_us_ *= kVisitFades;
  if (report.longest_us < rules.fills * round.slice_us)
    visit_us_ = std::max(visit_us_, static_cast<double>(report.longest_us));
  judged_us_ += round.interval_us;
  judged_busy_us_ += report.busy_us;
  judged_ended_ += report.ended;
  judged_ended_us_ += report.ended_us;
  const auto longest_us = static_cast<double>(report.longest_us);
  if (longest_us > rules.waited * round.slice_us) {
    // It had work, or was an idle context that nobody drove off: a slice at
    // most is what it shows.
    if (report.ended > 0 && report.ended_us >= report.longest_us)
      judged_ended_us_ -=
          report.longest_us - static_cast<int64_t>(round.slice_us);
  }
  if (judged_ended_ < rules.least_stays) return;
  const auto stays = static_cast<double>(judged_ended_);
  const auto busy_us = static_cast<double>(judged_busy_us_);
  use_ = std::min(
      1.0, static_cast<double>(judged_ended_us_) / stays / round.slice_us);
  stay_us_ = use_ * round.slice_us;
  // Others had the GPU whenever it was away, and for no longer than they may.
  const double explained_us = busy_us + stays * round.others_us +
                              static_cast<double>(round.interval_us);
  const bool always =
      static_cast<double>(judged_us_) <= rules.explained * explained_us;
  JudgeAnew();
  if (round.tells) {
    told_us_ = now_us;
    filled_ = use_ >= rules.fills && always;
  }
  if (use_ >= rules.fills && always) {
    if (round.tells && !fills_) {
      fills_ = true;
      fills_since_us_ = now_us;
    }
    return;
  }
  if (use_ < rules.leaves || !always) fills_ = filled_ = false;
  if (!fills_ && visits_since_us_ == kNever) visits_since_us_ = now_us;
}

}  // namespace rondo::share
