// SPDX-License-Identifier: Apache-2.0
//
// What the arbiter remembers of each process and tenant. Plain values, of the
// arbiter alone. Times are its own, in us.

#ifndef RONDO_SHARE_TIME_TENANT_H_
#define RONDO_SHARE_TIME_TENANT_H_

#include <cstdint>
#include <deque>

#include "share/time/credit.h"
#include "share/time/demand.h"
#include "share/time/duty_limit.h"
#include "share/time/event.h"
#include "share/time/plan.h"
#include "share/time/usage_window.h"

namespace rondo::share {

struct ArbiterProcess {
  TenantId tenant = 0;
  int groups = 0;
  int64_t ran_us = INT64_MIN / 2;  // last seen on the GPU
};

// A stretch of time in which a tenant could have run.
struct Stretch {
  int64_t from_us = 0;
  int64_t until_us = INT64_MAX;  // it has not ended
};

struct ArbiterTenant {
  TenantSpec spec;
  int groups = 0;  // of all its processes; 0 = not present
  Demand demand;
  Credit credit;
  Standing standing = Standing::kAsleep;  // as last planned with
  DutyLimit limit;
  UsageWindow used;
  int64_t gpu_time_us = 0;
  double part = 1;  // of its slice by weight (UpdateParts)
  uint64_t suspensions = 0;
  uint64_t escapes = 0;  // ran although its suspension was confirmed
  bool wanted_runnable = true;
  bool paused = false;  // made nothing of its last turn, has not run since

  // By NVML's samples (samples.cc).
  bool sampled_over = false;
  int64_t sampled_over_since_us = INT64_MIN / 2;
  double sampled_share = 0;       // of the last second, roughly
  int64_t sampled_unused_us = 0;  // that it could have had since it ran
  std::deque<Stretch> turns;      // as far as it was runnable, oldest first
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_TENANT_H_
