// SPDX-License-Identifier: Apache-2.0
#include "agent/activity_feed.h"

#include <chrono>
#include <utility>
#include <vector>

namespace rondo::agent {
namespace {

std::vector<share::PidActivity> ToRuns(const account::Report& report) {
  std::vector<share::PidActivity> runs;
  for (const auto& process : report.processes)
    runs.push_back({.pid = static_cast<int32_t>(process.pid),
                    .busy_us = static_cast<int64_t>(process.busy_ns / 1000),
                    .idle_us = static_cast<int64_t>(process.idle_ns / 1000),
                    .stays = static_cast<int64_t>(process.stays)});
  if (report.other_ns > 0)
    runs.push_back(
        {.pid = 0, .busy_us = static_cast<int64_t>(report.other_ns / 1000)});
  return runs;
}

}  // namespace

ActivityFeed::ActivityFeed(EventLoop& loop, rm::System& system,
                           std::string dev_dir, share::Share& share)
    : loop_(loop),
      share_(share),
      reader_(system, {.dev_dir = std::move(dev_dir)},
              [this](const std::string& uuid, const account::Report& report) {
                Post(uuid, report);
              }) {
  share_.OnSampleRate(
      [this](const std::string& uuid, std::chrono::microseconds interval) {
        reader_.SetInterval(uuid, interval);
      });
}

ActivityFeed::~ActivityFeed() {
  *alive_ = false;
  share_.OnSampleRate({});
}

void ActivityFeed::Post(const std::string& uuid,
                        const account::Report& report) {
  const auto interval = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::nanoseconds(report.interval_ns));
  loop_.Post([this, alive = alive_, uuid, runs = ToRuns(report), interval,
              ended = RealClock().Now()] {
    if (*alive)
      share_.OnActivity(uuid, share::Activity::Source::kSwitchLog, ended,
                        interval, runs);
  });
}

}  // namespace rondo::agent
