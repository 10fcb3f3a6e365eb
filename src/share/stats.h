// SPDX-License-Identifier: Apache-2.0
//
// What the sharing knows of each slot at one moment: plain values for metrics,
// the API and `rondo top`. Copied on the loop's thread, read on any. Unknown is
// an empty optional, never 0.

#ifndef RONDO_SHARE_STATS_H_
#define RONDO_SHARE_STATS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rondo::share {

struct ProcessStats {
  int32_t pid = 0;  // in the agent's pid namespace; 0 = it cannot be seen there
  uint64_t device_bytes = 0;
  // What the driver itself charges the process with; empty: not known.
  std::optional<uint64_t> driver_bytes;
  std::string driver_version;  // as the process sees it
  bool governed = false;
};

struct SlotStats {
  std::string slot;      // "<GPU UUID>::<n>"
  std::string gpu_uuid;  // of the whole GPU

  // Memory, in bytes.
  std::optional<uint64_t> limit_bytes;
  bool enforced = false;
  uint64_t device_bytes = 0;   // exact
  uint64_t managed_bytes = 0;  // an upper bound
  uint64_t reservations = 0;
  uint64_t denials = 0;  // since the agent started
  // Sum over its processes of (driver's own number - ledger); empty: not known.
  // Positive = the driver charges memory that the ledger never saw.
  std::optional<int64_t> audit_difference_bytes;
  uint64_t audit_alarms = 0;  // audits with a difference, since start

  // Time.
  std::string cls;  // "latency", "standard" or "batch"
  double weight = 1;
  double limit = 1;                  // of the GPU's time
  std::optional<uint32_t> slice_us;  // in force; empty: no channels yet
  std::optional<double> used_share;  // of the last second
  // On the GPU since the slot is there, exactly, by the context-switch log. A
  // context that nobody takes the GPU from stays on it, also with no work.
  std::optional<uint64_t> gpu_time_us;
  bool turn = false;        // it holds the exclusive turn
  bool suspended = false;   // all of it, by the agent
  bool over_share = false;  // latency class, served as standard
  bool throttled = false;   // by its limit
  uint64_t suspensions = 0;
  // Times that it ran although its suspension was confirmed; seen in the
  // context-switch log only.
  uint64_t escapes = 0;

  // Governed: every attached process is, and the controls that it needs were
  // verified. Without a process there is nothing to govern: true, no reason.
  bool governed = true;
  std::string reason;  // why not

  // The shims' own counters of degraded paths, by name (wire/state.h), summed
  // over connections since the agent started.
  std::map<std::string, uint64_t> degraded;
  uint64_t refused_messages = 0;  // malformed, or handles of somebody else

  std::vector<ProcessStats> processes;
};

struct GpuStats {
  std::string uuid;
  bool suspender_ready = false;
  std::string suspender_problem;  // why not
  // Where the knowledge of who runs comes from: "switch-log", "sampling", "".
  std::string activity_source;
};

struct ShareStats {
  std::vector<GpuStats> gpus;
  std::vector<SlotStats> slots;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_STATS_H_
