// SPDX-License-Identifier: Apache-2.0
//
// Who was on one GPU in an interval, whatever it is known from: plain values,
// any thread.

#ifndef RONDO_ACTIVITY_USAGE_H_
#define RONDO_ACTIVITY_USAGE_H_

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace rondo::activity {

enum class Source : uint8_t { kSwitchLog, kSampling };

// Of one process; pid 0: of work that is no process's.
struct PidActivity {
  int32_t pid = 0;
  int64_t busy_us = 0;
  int64_t idle_us = 0;     // since it was last on the GPU; 0 = on it now
  int64_t stays = 0;       // times that it came onto the GPU
  int64_t longest_us = 0;  // on it in one go, also from before the interval
  int64_t ended = 0;       // stays that ended within it
  int64_t ended_us = 0;    // their lengths, also from before the interval
};

struct Usage {
  Source source = Source::kSwitchLog;
  MonotonicTime ended{};
  std::chrono::microseconds interval{};
  // Who is left out did not run.
  std::vector<PidActivity> runs;
};

}  // namespace rondo::activity

#endif  // RONDO_ACTIVITY_USAGE_H_
