// SPDX-License-Identifier: Apache-2.0
//
// Who used a GPU by NVML's samples, made into reports that do not overlap. What
// they are good for: docs/arbiter.md.
//
// One thread at a time; Poll may block on the driver. Failure: as Backend.

#ifndef RONDO_ACTIVITY_USAGE_SAMPLER_H_
#define RONDO_ACTIVITY_USAGE_SAMPLER_H_

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "activity/usage.h"
#include "base/clock.h"
#include "nvml/backend.h"

namespace rondo::activity {

class UsageSampler {
 public:
  struct Now {
    int64_t wall_us = 0;  // since the epoch
    MonotonicTime monotonic{};
  };
  static Now RealNow();

  // Who was on the GPU since the last call; nothing on the first one. After
  // a whole sample without anybody: a report that says so. Who is left out
  // did not run, or for less than a percent of the interval.
  absl::StatusOr<std::optional<Usage>> Poll(nvml::Backend& nvml,
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

}  // namespace rondo::activity

#endif  // RONDO_ACTIVITY_USAGE_SAMPLER_H_
