// SPDX-License-Identifier: Apache-2.0
#include "activity/usage_sampler.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "base/status.h"

namespace rondo::activity {
namespace {

using std::chrono::microseconds;

// The longest sample there is.
constexpr microseconds kLongest{1'000'000};
// A sample ends, is made and is found by then.
constexpr microseconds kSilence{1'500'000};
// The samples' times are the wall clock's, and that may be set.
constexpr int64_t kJumpUs = 100'000;

int64_t ToUs(MonotonicTime time) {
  return std::chrono::duration_cast<microseconds>(time).count();
}

// Each process's share of the samples that name it, in the interval.
std::vector<PidActivity> ToRuns(const std::vector<nvml::ProcessSample>& samples,
                                microseconds interval) {
  struct Sum {
    int64_t percent = 0, count = 0;
  };
  std::map<uint32_t, Sum> sums;
  for (const nvml::ProcessSample& sample : samples) {
    sums[sample.pid].percent += sample.sm_percent;
    ++sums[sample.pid].count;
  }
  std::vector<PidActivity> runs;
  for (const auto& [pid, sum] : sums)
    if (sum.percent > 0)
      runs.push_back(
          {.pid = static_cast<int32_t>(pid),
           .busy_us = interval.count() * sum.percent / (100 * sum.count)});
  return runs;
}

}  // namespace

UsageSampler::Now UsageSampler::RealNow() {
  timespec wall{};
  clock_gettime(CLOCK_REALTIME, &wall);
  return {.wall_us = int64_t{1'000'000} * wall.tv_sec + wall.tv_nsec / 1000,
          .monotonic = RealClock().Now()};
}

absl::StatusOr<std::optional<Usage>> UsageSampler::Poll(nvml::Backend& nvml,
                                                        const std::string& uuid,
                                                        Now now) {
  const auto [entry, is_new] = gpus_.try_emplace(uuid);
  Gpu& gpu = entry->second;
  const int64_t jump_us = now.wall_us - gpu.polled.wall_us -
                          ToUs(now.monotonic - gpu.polled.monotonic);
  gpu.polled = now;
  if (is_new || std::abs(jump_us) > kJumpUs) {
    gpu.ended = now;
    return std::nullopt;
  }
  RONDO_ASSIGN_OR_RETURN(
      const std::vector<nvml::ProcessSample> samples,
      nvml.ProcessSamples(uuid, static_cast<uint64_t>(gpu.ended.wall_us)));
  Usage report;
  report.source = Source::kSampling;
  if (samples.empty()) {
    // Samples name only those that ran. None for so long: one has ended in the
    // meantime, and there was nobody in it.
    if (now.monotonic - gpu.ended.monotonic < kSilence) return std::nullopt;
    gpu.ended.wall_us += kLongest.count();
    gpu.ended.monotonic += kLongest;
    report.interval = kLongest;
  } else {
    int64_t newest_us = 0;
    for (const nvml::ProcessSample& sample : samples)
      newest_us = std::max(newest_us, static_cast<int64_t>(sample.time_us));
    newest_us = std::min(newest_us, now.wall_us);
    report.interval = std::clamp(microseconds(newest_us - gpu.ended.wall_us),
                                 microseconds(1), kLongest);
    report.runs = ToRuns(samples, report.interval);
    gpu.ended = {
        .wall_us = newest_us,
        .monotonic = now.monotonic - microseconds(now.wall_us - newest_us)};
  }
  report.ended = gpu.ended.monotonic;
  return report;
}

}  // namespace rondo::activity
