// SPDX-License-Identifier: Apache-2.0
//
// What the arbiter is told and what it answers: plain values, any thread.
// Times are microseconds of one monotonic clock.

#ifndef RONDO_SHARE_TIME_EVENT_H_
#define RONDO_SHARE_TIME_EVENT_H_

#include <cstdint>
#include <variant>
#include <vector>

#include "activity/usage.h"
#include "share/ids.h"
#include "share/time/action.h"

namespace rondo::share {

using TenantId = uint32_t;

enum class TenantClass : uint8_t { kStandard, kLatency, kBatch };

// As users write it.
constexpr const char* ClassName(TenantClass cls) {
  switch (cls) {
    case TenantClass::kLatency:
      return "latency";
    case TenantClass::kBatch:
      return "batch";
    case TenantClass::kStandard:
      break;
  }
  return "standard";
}

// Beyond these a share is nothing, or everything, and slices lose their sense.
inline constexpr double kLeastWeight = 0.001;
inline constexpr double kMostWeight = 1000;

struct TenantSpec {
  TenantClass cls = TenantClass::kStandard;
  double weight = 1;  // kLeastWeight to kMostWeight
  double limit = 1;   // most of the GPU's time that it may have, in (0, 1]
  bool operator==(const TenantSpec&) const = default;
};

// --- events ------------------------------------------------------------------
struct TenantSet {  // attached, or its spec changed
  TenantId tenant = 0;
  TenantSpec spec;
};
struct TenantGone {  // and all of its processes with it
  TenantId tenant = 0;
};
struct ProcessAttached {
  ProcessId process = 0;
  TenantId tenant = 0;
};
// Its channels changed. groups = channel groups on the compute engine (0: it
// has none, so nothing to schedule).
struct ProcessGroups {
  ProcessId process = 0;
  int groups = 0;
};
struct ProcessGone {
  ProcessId process = 0;
};
struct SliceApplied {  // see Controls::OnApplied
  ProcessId process = 0;
  uint32_t seq = 0;
  uint32_t slice_us = 0;
  bool ok = true;
};
struct Switched {  // answers Switch, one event a process
  uint64_t op = 0;
  ProcessId process = 0;
  bool ok = true;
  bool late = false;  // its time had passed: nothing was done
};
// Who ran since the last such event. Processes left out did not run.
struct Activity {
  using Source = activity::Source;
  struct Run {
    ProcessId process = 0;
    int64_t busy_us = 0;
    int64_t idle_us = 0;     // at that end, since it was last on the GPU
    int64_t stays = 0;       // times that it came onto the GPU
    int64_t longest_us = 0;  // on it in one go, also from before the interval
    int64_t ended = 0;       // stays that ended within it
    int64_t ended_us = 0;    // their lengths, also from before the interval
  };
  Source source = Source::kSwitchLog;
  int64_t age_us = 0;  // since the interval ended
  int64_t interval_us = 0;
  int64_t other_busy_us = 0;  // by processes that are nobody's here
  std::vector<Run> runs;
};
struct Tick {};  // wake_us came
using Event =
    std::variant<TenantSet, TenantGone, ProcessAttached, ProcessGroups,
                 ProcessGone, SliceApplied, Switched, Activity, Tick>;

struct Decision {
  std::vector<Action> actions;
  int64_t wake_us = INT64_MAX;    // send a Tick then; replaces the last one
  int64_t sample_us = INT64_MAX;  // how far apart Activity is wanted now
};

// What stats and messages show of a tenant.
struct TenantView {
  bool present = false;     // it has channels
  bool suspended = false;   // all of it, confirmed
  bool turn = false;        // it holds the turn
  bool over_share = false;  // a latency tenant served as standard
  bool throttled = false;   // by its limit
  bool slice_refused = false;
  bool suspend_refused = false;
  uint32_t slice_us = 0;     // smallest in force among its processes
  uint64_t suspensions = 0;  // asked for, since it attached
  uint64_t escapes = 0;      // ran although its suspension was confirmed
  double used_share = 0;     // of the last second; -1: not known
  int64_t gpu_time_us = -1;  // all of it, by the switch log; -1: not known
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_EVENT_H_
