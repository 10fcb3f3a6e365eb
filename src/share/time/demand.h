// SPDX-License-Identifier: Apache-2.0
//
// What one tenant wants of the GPU, as its stays on it tell: nothing for now;
// to come and go, as requests do; or all that it gets. Pure; of the arbiter
// alone.

#ifndef RONDO_SHARE_TIME_DEMAND_H_
#define RONDO_SHARE_TIME_DEMAND_H_

#include <cstdint>

#include "share/time/rules.h"

namespace rondo::share {

// A tenant's part of one report of the context-switch log. Times in us.
struct Use {
  int64_t busy_us = 0;
  int64_t stays = 0;       // times that it came onto the GPU
  int64_t longest_us = 0;  // in one go, also from before the report
  int64_t idle_us = 0;     // at its end, since it last ran
  int64_t ended = 0;       // stays that ended
  int64_t ended_us = 0;    // their lengths
};

class Demand {
 public:
  struct Round {
    double slice_us = 0;      // in force on each of its groups
    int64_t interval_us = 0;  // of the report
    double others_us = 0;     // how long the others may keep it waiting
    bool contended = false;   // others want the GPU as well
    bool kept_off = false;    // suspended by us: absence says nothing
    bool tells = false;       // who uses all of such a slice may want more
  };

  void Add(int64_t now_us, const Use& use, const Round& round,
           const DemandRules& rules);

  bool asleep() const { return asleep_; }
  bool fills() const { return fills_; }
  // It came back in the last report after an absence of its own.
  bool came() const { return came_; }
  // Has come and gone for long enough to be expected to go on like that.
  bool Proven(int64_t now_us, const DemandRules& rules) const {
    return visits_since_us_ != kNever &&
           now_us - visits_since_us_ >= rules.proven_us;
  }
  // Lately judged on a slice that tells.
  bool Told(int64_t now_us, const DemandRules& rules) const {
    return now_us - told_us_ <= rules.told_us;
  }
  // Has always had work for so long that it will go on like that: it may take
  // turns, which make nothing of a pause.
  bool Steady(int64_t now_us, const DemandRules& rules) const {
    return fills_ && now_us - fills_since_us_ >= rules.steady_us;
  }
  // The last that told of it: it always had work. It may pause since.
  bool filled() const { return filled_; }
  double use() const { return use_; }  // of its slices, of late
  int64_t last_us() const { return last_us_; }
  // The mean of its stays as last judged; 0: not yet.
  double stay_us() const { return stay_us_; }
  // The longest of late that it was on the GPU before it left by itself.
  double visit_us() const { return visit_us_; }

 private:
  static constexpr int64_t kNever = INT64_MIN / 2;
  void JudgeAnew() {
    judged_us_ = judged_busy_us_ = judged_ended_ = judged_ended_us_ = 0;
  }
  void Judge(int64_t now_us, const Use& report, const Round& round,
             const DemandRules& rules);

  int64_t last_us_ = kNever;  // when it last ran
  bool asleep_ = true;
  bool came_ = false;
  bool fills_ = false, filled_ = false;
  int64_t fills_since_us_ = kNever;
  double use_ = 1;
  double visit_us_ = 0, stay_us_ = 0;
  int64_t visits_since_us_ = kNever;
  int64_t told_us_ = kNever;
  // What it is judged by next.
  double judged_slice_us_ = 0;
  int64_t judged_us_ = 0, judged_busy_us_ = 0;
  int64_t judged_ended_ = 0, judged_ended_us_ = 0;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_DEMAND_H_
