// SPDX-License-Identifier: Apache-2.0
//
// Who used a GPU by NVML's samples, made into reports that do not overlap. What
// they are good for: docs/arbiter.md.
//
// One thread at a time; Poll may block on the driver. Failure: as Backend.

#ifndef RONDO_AGENT_USAGE_SAMPLER_H_
#define RONDO_AGENT_USAGE_SAMPLER_H_

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "nvml/backend.h"
#include "share/share.h"

namespace rondo::agent {

class UsageSampler {
 public:
  struct Now {
    int64_t wall_us = 0;  // since the epoch
    MonotonicTime monotonic{};
  };
  static Now RealNow();

  // Who is left out did not run, or for less than a percent of the interval.
  struct Sample {
    MonotonicTime ended{};
    std::chrono::microseconds interval{};
    std::vector<share::PidActivity> runs;
  };

  // What is new on the GPU since the last call; nothing on the first one. After
  // a whole sample without anybody: a report that says so.
  absl::StatusOr<std::optional<Sample>> Poll(nvml::Backend& nvml,
                                             const std::string& uuid, Now now);
  // The next Poll of the GPU is a first one.
  void Forget(const std::string& uuid) { gpus_.erase(uuid); }

 private:
  struct Gpu {
    Now polled;
    Now ended;  // the newest sample that was reported
  };
  std::map<std::string, Gpu> gpus_;
};

}  // namespace rondo::agent

#endif  // RONDO_AGENT_USAGE_SAMPLER_H_
