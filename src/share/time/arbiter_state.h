// SPDX-License-Identifier: Apache-2.0
//
// What the arbiter remembers of each process and tenant. Plain values, of the
// arbiter alone. Times are its own, in us.

#ifndef RONDO_SHARE_TIME_ARBITER_STATE_H_
#define RONDO_SHARE_TIME_ARBITER_STATE_H_

#include <cstdint>
#include <deque>

#include "share/time/early_leavers.h"
#include "share/time/event.h"
#include "share/time/usage_window.h"

namespace rondo::share {

struct ArbiterProcess {
  TenantId tenant = 0;
  int groups = 0;
  int64_t ran_us = INT64_MIN / 2;  // last seen on the GPU
};
struct Stretch {
  int64_t from_us = 0;
  int64_t until_us = INT64_MAX;  // it has not ended
};
struct Turn {
  TenantId holder = 0;
  int64_t end_us = 0;
  bool ran = false;       // the holder, within it
  int64_t unused_us = 0;  // GPU time that it could have had since
  int64_t absent_us = 0;  // time since it ran, whoever ran
};
struct ArbiterTenant {
  TenantSpec spec;
  int groups = 0;  // of all its processes; 0 = not present
  UsageWindow used;
  int64_t gpu_time_us = 0;
  Stays stays;  // of slices_observed_us_: used_us and count
  bool leaves_early = false;
  // The part of it that others had to wait for: their runs are no further
  // apart than a rotation, and it was not on the GPU for longer than its slice.
  // An idle context stays there as long as nobody else comes, and the log
  // cannot tell that from work.
  UsageWindow contended;
  int64_t pending_us = 0;        // since another one ran last
  int64_t pending_alone_us = 0;  // of it, when nobody waited
  int64_t other_ran_us = INT64_MIN / 2;
  int64_t present_since_us = 0;
  bool over = false;
  int64_t over_since_us = INT64_MIN / 2;  // when `over` last changed
  // The limit's budget: grows with time x limit, shrinks with use.
  bool throttled = false;
  double budget_us = 0;
  int64_t budget_at_us = 0;
  int64_t limited_since_us = 0;
  uint64_t suspensions = 0;
  uint64_t escapes = 0;  // ran although its suspension was confirmed
  bool wanted_runnable = true;
  bool idle = false;  // made nothing of its last turn, has not run since

  // By NVML's samples (arbiter_sampled.cc).
  double sampled_share = 0;       // of the last second, roughly
  int64_t sampled_unused_us = 0;  // that it could have had since it ran
  std::deque<Stretch> turns;      // as far as it was runnable, oldest first
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_ARBITER_STATE_H_
