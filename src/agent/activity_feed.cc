// SPDX-License-Identifier: Apache-2.0
#include "agent/activity_feed.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "account/switch_log.h"
#include "base/log.h"
#include "base/status.h"
#include "rm/client.h"
#include "rm/gpu.h"

namespace rondo::agent {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

// The arbiter's "not wanted" is the largest number there is. The log is read
// all the same, so that its ring never fills: at this pace, thousands of
// switches a second fit.
constexpr microseconds kIdlePace{1'000'000};

std::vector<share::PidActivity> ToRuns(const account::Report& report) {
  std::vector<share::PidActivity> runs;
  for (const auto& process : report.processes)
    runs.push_back({.pid = static_cast<int32_t>(process.pid),
                    .busy_us = static_cast<int64_t>(process.busy_ns / 1000),
                    .idle_us = static_cast<int64_t>(process.idle_ns / 1000)});
  if (report.other_ns > 0)
    runs.push_back(
        {.pid = 0, .busy_us = static_cast<int64_t>(report.other_ns / 1000)});
  return runs;
}

}  // namespace

ActivityFeed::ActivityFeed(EventLoop& loop, rm::System& system,
                           std::string dev_dir, share::Share& share)
    : loop_(loop),
      system_(system),
      dev_dir_(std::move(dev_dir)),
      share_(share) {
  share_.OnSampleRate([this](const std::string& uuid, Interval interval) {
    std::lock_guard lock(mutex_);
    Interval& wanted = intervals_[uuid];
    interval = std::min(interval, kIdlePace);
    if (wanted == interval) return;
    wanted = interval;
    due_[uuid] = steady_clock::now() + interval;
    changed_.notify_all();
  });
  thread_ = std::thread([this] { Run(); });
}

ActivityFeed::~ActivityFeed() {
  *alive_ = false;
  share_.OnSampleRate({});
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ActivityFeed::Run() {
  const absl::Status status = Read();
  if (!status.ok())
    LogWarning("who runs on the GPUs is not known: ", status.message());
}

std::vector<std::string> ActivityFeed::WaitForDue() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const auto now = steady_clock::now();
    std::vector<std::string> ready;
    auto next = now + kIdlePace;
    for (auto& [uuid, due] : due_) {
      if (due <= now) {
        ready.push_back(uuid);
        due = now + intervals_[uuid];
      }
      next = std::min(next, due);
    }
    if (!ready.empty()) return ready;
    changed_.wait_until(lock, next);
  }
  return {};
}

absl::Status ActivityFeed::Read() {
  RONDO_ASSIGN_OR_RETURN(auto client, rm::Client::Open(system_, dev_dir_));
  RONDO_ASSIGN_OR_RETURN(const std::vector<rm::Gpu> gpus,
                         rm::ListGpus(*client));
  std::map<std::string, std::unique_ptr<account::SwitchLog>> logs;
  while (true) {
    const std::vector<std::string> ready = WaitForDue();
    if (ready.empty()) return absl::OkStatus();
    for (const std::string& uuid : ready) {
      auto& log = logs[uuid];
      if (log == nullptr) {
        const auto gpu =
            std::find_if(gpus.begin(), gpus.end(),
                         [&](const rm::Gpu& g) { return g.uuid == uuid; });
        if (gpu == gpus.end()) continue;
        RONDO_ASSIGN_OR_RETURN(log,
                               account::SwitchLog::Open(*client, *gpu, {}));
      }
      RONDO_ASSIGN_OR_RETURN(const account::Report report, log->Drain());
      loop_.Post([this, alive = alive_, uuid, runs = ToRuns(report),
                  interval = duration_cast<microseconds>(
                      nanoseconds(report.interval_ns))] {
        if (*alive)
          share_.OnActivity(uuid, share::Activity::Source::kSwitchLog, interval,
                            runs);
      });
    }
  }
}

}  // namespace rondo::agent
