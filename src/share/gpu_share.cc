// SPDX-License-Identifier: Apache-2.0
#include "share/gpu_share.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace rondo::share {
namespace {

// A new context brings some thirty channels, a message each.
constexpr MonotonicTime kGatherChannels = std::chrono::milliseconds(5);
constexpr int64_t kFreshUs = 5'000'000;

}  // namespace

GpuShare::GpuShare(EventLoop& loop, const Clock& clock, std::string uuid,
                   const Rules& rules, SlotServer* server, Suspender* suspender,
                   RateChanged on_rate)
    : loop_(loop),
      clock_(clock),
      uuid_(std::move(uuid)),
      server_(server),
      suspender_(suspender),
      on_rate_(std::move(on_rate)),
      arbiter_(rules) {}

GpuShare::~GpuShare() {
  *alive_ = false;
  if (channels_timer_ != 0) loop_.CancelTimer(channels_timer_);
  if (tick_timer_ != 0) loop_.CancelTimer(tick_timer_);
}

int64_t GpuShare::NowUs() const { return clock_.Now().count() / 1000; }

void GpuShare::Step(const Event& event) {
  const int64_t now_us = NowUs();
  Decision decision = arbiter_.Step(now_us, event);
  for (const Action& action : decision.actions) {
    if (const auto* set = std::get_if<SetSlice>(&action)) {
      LogDebug(Name(set->process), ": asked for a slice of ", set->slice_us,
               " us");
      server_->SendSlice(set->process, set->slice_us, set->seq);
    } else {
      CarryOut(std::get<Switch>(action));
    }
  }
  if (decision.wake_us != tick_at_us_ || tick_timer_ == 0) {
    if (tick_timer_ != 0) loop_.CancelTimer(tick_timer_);
    tick_timer_ = 0;
    tick_at_us_ = decision.wake_us;
    if (tick_at_us_ != INT64_MAX) {
      const auto delay =
          std::chrono::microseconds(std::max<int64_t>(0, tick_at_us_ - now_us));
      tick_timer_ = loop_.RunAfter(delay, [this] {
        tick_timer_ = 0;
        Step(Tick{});
      });
    }
  }
  if (decision.sample_us != std::exchange(sample_us_, decision.sample_us))
    on_rate_(sample_us_);
}

// For the log: the pid, where one is known.
std::string GpuShare::Name(ProcessId id) const {
  const SlotProcess* process = server_->process(id);
  return process == nullptr ? absl::StrCat("connection ", id)
                            : absl::StrCat("pid ", process->pid);
}

void GpuShare::CarryOut(const Switch& call) {
  Suspender::Channels channels;
  for (ProcessId id : call.processes) {
    const SlotProcess* process = server_->process(id);
    if (process == nullptr) continue;
    channels[id] = process->channels;
    LogDebug(Name(id), call.suspend ? ": suspend " : ": resume ",
             process->channels.size(), " channels");
  }
  const auto not_after = call.not_after_us == INT64_MAX
                             ? MonotonicTime::max()
                             : MonotonicTime(call.not_after_us * 1000);
  suspender_->Switch(
      call.suspend, std::move(channels), not_after,
      [this, alive = alive_,
       op = call.op](const std::map<ProcessId, absl::Status>& results) {
        if (!*alive) return;
        for (const auto& [id, status] : results) {
          LogDebug(Name(id), ": ", status.ToString());
          Step(Switched{op, id, status.ok(), absl::IsDeadlineExceeded(status)});
        }
      });
}

void GpuShare::SetRules(const Rules& rules) {
  arbiter_.SetRules(rules);
  Step(Tick{});
}

void GpuShare::SetTenant(TenantId tenant, const TenantSpec& spec) {
  Step(TenantSet{tenant, spec});
}

void GpuShare::RemoveTenant(TenantId tenant) { Step(TenantGone{tenant}); }

void GpuShare::OnAttached(ProcessId process, TenantId tenant) {
  groups_[process] = 0;
  Step(ProcessAttached{process, tenant});
}

void GpuShare::OnChannels(ProcessId process) {
  dirty_.insert(process);
  if (channels_timer_ == 0)
    channels_timer_ =
        loop_.RunAfter(kGatherChannels, [this] { FlushChannels(); });
}

void GpuShare::FlushChannels() {
  channels_timer_ = 0;
  for (ProcessId id : std::exchange(dirty_, {})) {
    const SlotProcess* process = server_->process(id);
    const auto groups = groups_.find(id);
    if (process == nullptr || groups == groups_.end()) continue;
    // How many groups there are is told with the answer to a slice; until then
    // one is assumed.
    if (process->channels.empty()) groups->second = 0;
    Step(ProcessGroups{
        id, process->channels.empty() ? 0 : std::max(1, groups->second)});
  }
}

void GpuShare::OnApplied(ProcessId process, const wire::Applied& applied) {
  const auto groups = groups_.find(process);
  if (groups == groups_.end()) return;
  LogDebug(Name(process), ": ", applied.groups, " groups on ", applied.us,
           " us", applied.failed > 0 ? ", not all that was asked for" : "");
  const SlotProcess* info = server_->process(process);
  const bool has_channels = info != nullptr && !info->channels.empty();
  // Each group has a channel at least, and those are bounded.
  const int told =
      has_channels ? std::min<int>(applied.groups, info->channels.size()) : 0;
  if (told > 0 && groups->second != told) {
    groups->second = told;
    Step(ProcessGroups{process, groups->second});
  }
  Step(SliceApplied{process, applied.header.seq, applied.us,
                    applied.failed == 0});
}

void GpuShare::OnDetached(ProcessId process) {
  dirty_.erase(process);
  groups_.erase(process);
  suspender_->Forget(process);
  Step(ProcessGone{process});
}

void GpuShare::OnActivity(const Activity& activity) {
  (activity.source == Activity::Source::kSwitchLog ? log_at_us_
                                                   : sampling_at_us_) = NowUs();
  if (LogEnabled(LogLevel::kDebug)) {
    std::string runs;
    for (const Activity::Run& run : activity.runs)
      absl::StrAppend(&runs, ", ", Name(run.process), " ", run.busy_us, " us (",
                      run.idle_us, " ago)");
    LogDebug("of ", activity.interval_us, " us ran: others ",
             activity.other_busy_us, " us", runs);
  }
  Step(activity);
}

TenantView GpuShare::View(TenantId tenant) {
  return arbiter_.View(tenant, NowUs());
}

bool GpuShare::Fresh(Activity::Source source) const {
  const int64_t at_us =
      source == Activity::Source::kSwitchLog ? log_at_us_ : sampling_at_us_;
  return NowUs() - at_us <= kFreshUs;
}

}  // namespace rondo::share
