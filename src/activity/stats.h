// SPDX-License-Identifier: Apache-2.0
//
// GPU time per process as the context-switch log tells it, and the processes
// that are nobody's: plain values for metrics. The time is exact, no sampling:
// that in which the process's context was on the GPU. An idle context stays
// there until another one comes, so on a GPU that nobody else wants this is an
// upper bound of the work done.

#ifndef RONDO_ACTIVITY_STATS_H_
#define RONDO_ACTIVITY_STATS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rondo::activity {

struct ProcessTime {
  uint64_t busy_ns = 0;  // on the GPU since the log was opened
  uint64_t stays = 0;    // times that it came onto the GPU
};

struct GpuAccount {
  bool ready = false;
  std::string problem;       // why not: no root, no driver, the log is off, ...
  uint64_t observed_ns = 0;  // how long the log was watched
  uint64_t other_ns = 0;     // the driver's own work, and hidden processes'
  uint64_t records = 0;
  uint64_t drops = 0;  // records lost: times are too low by what they told
  uint64_t odd_records = 0;
  // By pid of the initial pid namespace. A process that has not run for an hour
  // is forgotten, so a consumer adds up differences, not totals.
  std::map<uint32_t, ProcessTime> processes;
};

struct AccountStats {
  std::map<std::string, GpuAccount> gpus;  // by UUID
};

// A process that uses a shared GPU and is attached to none of its slots.
struct ForeignProcess {
  uint32_t pid = 0;
  std::string name;                      // empty: not known
  std::optional<uint64_t> memory_bytes;  // empty: NVML does not say
};

// Of one GPU with slots.
struct ForeignView {
  std::string gpu_uuid;
  std::vector<ForeignProcess> processes;
  // GPU time that such processes had since the agent started; empty: there is
  // no context-switch log.
  std::optional<double> gpu_seconds;
};

}  // namespace rondo::activity

#endif  // RONDO_ACTIVITY_STATS_H_
