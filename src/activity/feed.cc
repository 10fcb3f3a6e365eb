// SPDX-License-Identifier: Apache-2.0
#include "activity/feed.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status.h"

namespace rondo::activity {
namespace {

Usage ToUsage(const Report& report) {
  Usage usage;
  usage.source = Source::kSwitchLog;
  usage.ended = report.ended;
  usage.interval = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::nanoseconds(report.interval_ns));
  for (const auto& process : report.processes)
    usage.runs.push_back(
        {.pid = static_cast<int32_t>(process.pid),
         .busy_us = static_cast<int64_t>(process.busy_ns / 1000),
         .idle_us = static_cast<int64_t>(process.idle_ns / 1000),
         .stays = static_cast<int64_t>(process.stays),
         .longest_us = static_cast<int64_t>(process.longest_ns / 1000),
         .ended = static_cast<int64_t>(process.ended),
         .ended_us = static_cast<int64_t>(process.ended_ns / 1000)});
  if (report.other_ns > 0)
    usage.runs.push_back(
        {.pid = 0, .busy_us = static_cast<int64_t>(report.other_ns / 1000)});
  return usage;
}

bool HasSysAdmin() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3,
                                  .pid = 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  return syscall(SYS_capget, &header, data) == 0 &&
         (data[0].effective & CAP_TO_MASK(CAP_SYS_ADMIN)) != 0;
}

std::string Unusable(bool other_users) {
  return other_users && !HasSysAdmin()
             ? "without CAP_SYS_ADMIN it hides other users' processes"
             : "";
}

}  // namespace

Feed::Feed(EventLoop& loop, rm::System& system, OpenNvml open_nvml,
           OnUsage on_usage, const Options& options)
    : loop_(loop),
      open_nvml_(std::move(open_nvml)),
      on_usage_(std::move(on_usage)),
      reader_(system,
              {.dev_dir = options.dev_dir,
               .retry_open = options.retry_log,
               .unusable = Unusable(options.other_users)},
              [this](const std::string& uuid, const Report& report) {
                Post(uuid, ToUsage(report));
              }),
      ticker_(options.sample_interval, [this] { Sample(); }) {}

Feed::~Feed() { *alive_ = false; }

void Feed::SetInterval(const std::string& gpu_uuid,
                       std::chrono::microseconds interval) {
  // MIG devices share no time.
  if (!absl::StartsWith(gpu_uuid, "GPU-")) return;
  reader_.SetInterval(gpu_uuid, interval);
  const std::lock_guard lock(mutex_);
  gpus_.insert(gpu_uuid);
}

void Feed::Sample() {
  std::set<std::string> gpus;
  {
    const std::lock_guard lock(mutex_);
    gpus = gpus_;
  }
  for (const std::string& uuid : gpus) {
    const Reader::LogState state = reader_.StateOf(uuid);
    absl::Status sampled;
    if (state.tried && !state.ready)
      sampled = SampleGpu(uuid);
    else
      sampler_.Forget(uuid);
    if (state.tried) Tell(uuid, state, sampled);
  }
}

absl::Status Feed::SampleGpu(const std::string& uuid) {
  if (nvml_ == nullptr) {
    RONDO_ASSIGN_OR_RETURN(nvml_, open_nvml_());
  }
  RONDO_ASSIGN_OR_RETURN(std::optional<Usage> usage,
                         sampler_.Poll(*nvml_, uuid, UsageSampler::RealNow()));
  if (usage) Post(uuid, *std::move(usage));
  return absl::OkStatus();
}

void Feed::Tell(const std::string& uuid, const Reader::LogState& state,
                const absl::Status& sampled) {
  std::string news;
  if (!state.ready && sampled.ok())
    news = absl::StrCat("no context-switch log (", state.problem,
                        "): who runs is taken from NVML's samples");
  else if (!state.ready)
    news = absl::StrCat("no context-switch log (", state.problem,
                        ") and no samples of NVML (", sampled.message(),
                        "): nobody can tell who runs");
  const auto [told, is_new] = told_.try_emplace(uuid);
  if (std::exchange(told->second, news) == news) return;
  if (news.empty())
    LogInfo(uuid, ": the context-switch log is read again");
  else if (sampled.ok())
    LogInfo(uuid, ": ", news);
  else
    LogWarning(uuid, ": ", news);
}

void Feed::Post(const std::string& uuid, Usage usage) {
  loop_.Post([this, alive = alive_, uuid, usage = std::move(usage)] {
    if (*alive) on_usage_(uuid, usage);
  });
}

}  // namespace rondo::activity
