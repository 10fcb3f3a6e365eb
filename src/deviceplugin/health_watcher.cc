// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/health_watcher.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace rondo::deviceplugin {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstBackoff(100);
constexpr milliseconds kLastBackoff(5000);

}  // namespace

HealthWatcher::HealthWatcher(nvml::Backend& backend, const Clock& clock,
                             XidFilter filter, Health::Options options,
                             std::function<void()> on_change)
    : backend_(backend),
      clock_(clock),
      on_change_(std::move(on_change)),
      register_retry_(options.probe_interval),
      health_(filter, options) {
  for (const std::string& warning : filter.warnings()) LogWarning(warning);
  if (filter.IgnoresAll()) {
    LogInfo("health checks are disabled");
    return;
  }
  thread_ = std::thread([this] { Run(); });
}

HealthWatcher::~HealthWatcher() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void HealthWatcher::SetDevices(const std::vector<Device>& devices) {
  std::lock_guard<std::mutex> lock(mutex_);
  health_.SetDevices(devices, clock_.Now());
  wanted_.clear();
  for (const Device& device : devices) wanted_.insert(device.gpu_uuid);
  new_devices_ = true;
  wake_.notify_all();
}

std::string HealthWatcher::UnhealthyReason(
    absl::string_view device_uuid) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return health_.UnhealthyReason(device_uuid);
}

HealthWatcher::Counters HealthWatcher::counters() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return {health_.xid_events(), health_.recoveries(), wait_errors_};
}

void HealthWatcher::Run() {
  while (true) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (stop_) return;
    }
    bool changed = RegisterNew();
    changed |= WaitOnce();
    changed |= ProbeDue();
    if (changed) on_change_();
  }
}

bool HealthWatcher::RegisterNew() {
  std::set<std::string> wanted;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (std::exchange(new_devices_, false)) next_register_ = MonotonicTime(0);
    wanted = wanted_;
  }
  if (clock_.Now() < next_register_) return false;
  bool changed = false;
  bool failed = false;
  for (const std::string& uuid : wanted) {
    if (listening_.count(uuid) + without_.count(uuid) > 0) continue;
    absl::Status status = backend_.RegisterXidEvents(uuid);
    if (absl::IsUnimplemented(status)) {
      LogWarning("GPU ", uuid, " has no Xid events; it is probed only");
      without_.insert(uuid);
      status = absl::OkStatus();
    } else if (status.ok()) {
      listening_.insert(uuid);
    } else {
      failed = true;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    if (!health_.OnRegister(uuid, status)) continue;
    changed = true;
    LogWarning("GPU ", uuid, ": ",
               status.ok() ? "is watched again" : status.message());
  }
  next_register_ =
      failed ? clock_.Now() + register_retry_ : MonotonicTime::max();
  return changed;
}

bool HealthWatcher::WaitOnce() {
  if (listening_.empty()) {
    Pause(kWait);
    return false;
  }
  const absl::StatusOr<std::optional<nvml::XidEvent>> event =
      backend_.WaitForEvent(kWait);
  if (event.ok()) {
    backoff_ = milliseconds(0);
    if (!event->has_value()) return false;
    LogWarning("Xid ", (*event)->xid, " on ",
               (*event)->uuid.empty() ? "an unknown GPU" : (*event)->uuid);
    std::lock_guard<std::mutex> lock(mutex_);
    return health_.OnXid(**event, clock_.Now());
  }
  // NVML itself may be gone (#1640), or only one GPU: ask each. Registering
  // anew covers a driver that was reloaded.
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++wait_errors_;
    health_.ProbeAllNow();
  }
  listening_.clear();
  next_register_ = MonotonicTime(0);
  if (backoff_.count() == 0)
    LogError("waiting for GPU events: ", event.status().message());
  backoff_ = std::clamp(backoff_ * 2, kFirstBackoff, kLastBackoff);
  const bool changed = ProbeDue();
  if (changed) on_change_();
  Pause(backoff_);
  return false;
}

bool HealthWatcher::ProbeDue() {
  std::vector<Health::Probe> due;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    due = health_.DueProbes(clock_.Now());
  }
  bool changed = false;
  for (const auto& [uuid, after_xid] : due) {
    const absl::Status status =
        after_xid ? backend_.Probe(uuid) : backend_.MemoryInfo(uuid).status();
    std::lock_guard<std::mutex> lock(mutex_);
    const bool news = health_.OnProbe(uuid, status, clock_.Now());
    if (news && status.ok()) LogInfo("GPU ", uuid, " is healthy again");
    if (news && !status.ok()) LogWarning("GPU ", uuid, ": ", status.message());
    changed |= news;
  }
  return changed;
}

void HealthWatcher::Pause(milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex_);
  wake_.wait_for(lock, time, [this] { return stop_ || new_devices_; });
}

}  // namespace rondo::deviceplugin
