// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/health.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace rondo::deviceplugin {
namespace {

// Application errors, by NVIDIA's Xid catalogue: the GPU itself is well.
constexpr uint64_t kApplicationXids[] = {13, 31, 43, 45, 68, 109};

void ParseList(absl::string_view text, absl::string_view variable, bool& all,
               std::set<uint64_t>& xids, std::vector<std::string>& warnings) {
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::string word =
        absl::AsciiStrToLower(absl::StripAsciiWhitespace(part));
    uint64_t xid = 0;
    if (word.empty()) continue;
    if (word == "all" || word == "xids")
      all = true;
    else if (absl::SimpleAtoi(word, &xid))
      xids.insert(xid);
    else
      warnings.push_back(absl::StrCat(variable, ": '", word,
                                      "' is not an Xid number; skipped"));
  }
}

bool Concerns(const nvml::XidEvent& event, const Device& device) {
  if (!device.mig) return true;
  if (event.gpu_instance.has_value() &&
      *event.gpu_instance != static_cast<uint32_t>(device.gpu_instance))
    return false;
  return !event.compute_instance.has_value() ||
         *event.compute_instance ==
             static_cast<uint32_t>(device.compute_instance);
}

}  // namespace

XidFilter::XidFilter(absl::string_view disable, absl::string_view enable)
    : ignored_(std::begin(kApplicationXids), std::end(kApplicationXids)) {
  ParseList(disable, "DP_DISABLE_HEALTHCHECKS", disable_all_, ignored_,
            warnings_);
  ParseList(enable, "DP_ENABLE_HEALTHCHECKS", enable_all_, enabled_, warnings_);
  if (enable_all_) disable_all_ = false;
}

bool XidFilter::Ignores(uint64_t xid) const {
  if (enable_all_ || enabled_.count(xid) > 0) return false;
  return disable_all_ || ignored_.count(xid) > 0;
}

void Health::SetDevices(const std::vector<Device>& devices, MonotonicTime now) {
  std::map<std::string, Gpu, std::less<>> old = std::move(gpus_);
  gpus_.clear();
  for (const Device& device : devices) {
    auto [at, is_new] = gpus_.try_emplace(device.gpu_uuid);
    Gpu& gpu = at->second;
    if (is_new) {
      const auto known = old.find(device.gpu_uuid);
      if (known != old.end()) {
        gpu = std::move(known->second);
        gpu.devices.clear();
      } else {
        gpu.next_probe = now + options_.probe_interval;
      }
    }
    gpu.devices.push_back(device);
  }
}

MonotonicTime Health::Quiet(const Gpu& gpu) const {
  return options_.recovery_quiet * (1 << std::min(gpu.relapses, kMaxRelapses));
}

bool Health::Hit(Gpu& gpu, const nvml::XidEvent& event, MonotonicTime now) {
  bool changed = false;
  if (gpu.xid_faults.empty() && gpu.recovered_at.count() != 0) {
    // Soon after a recovery it is a relapse; long after, a new start.
    const bool soon = now - gpu.recovered_at < 20 * Quiet(gpu);
    gpu.relapses = soon ? gpu.relapses + 1 : 0;
  }
  for (const Device& device : gpu.devices) {
    if (!Concerns(event, device)) continue;
    gpu.xid_faults[device.uuid] = absl::StrCat("Xid ", event.xid);
    changed = true;
  }
  if (changed) {
    gpu.last_event = now;
    gpu.next_probe = now + Quiet(gpu);
  }
  return changed;
}

bool Health::OnXid(const nvml::XidEvent& event, MonotonicTime now) {
  if (filter_.Ignores(event.xid)) return false;
  if (!event.uuid.empty()) {
    const auto gpu = gpus_.find(event.uuid);
    if (gpu == gpus_.end()) return false;
    ++xid_events_;
    return Hit(gpu->second, event, now);
  }
  ++xid_events_;
  bool changed = false;
  for (auto& [uuid, gpu] : gpus_) changed |= Hit(gpu, event, now);
  return changed;
}

bool Health::OnProbe(absl::string_view gpu_uuid, const absl::Status& status,
                     MonotonicTime now) {
  const auto at = gpus_.find(gpu_uuid);
  if (at == gpus_.end()) return false;
  Gpu& gpu = at->second;
  const bool was_faulty = !gpu.xid_faults.empty() || !gpu.probe_fault.empty();
  // A driver that cannot tell is no reason to take a GPU away.
  if (!status.ok() && !absl::IsUnimplemented(status)) {
    gpu.next_probe =
        now + std::min(options_.recovery_quiet, options_.probe_interval);
    const std::string before =
        std::exchange(gpu.probe_fault, status.message().empty()
                                           ? std::string("does not answer")
                                           : std::string(status.message()));
    return before != gpu.probe_fault;
  }
  if (!gpu.xid_faults.empty() && now - gpu.last_event < Quiet(gpu)) {
    gpu.next_probe = gpu.last_event + Quiet(gpu);
    return !std::exchange(gpu.probe_fault, "").empty();
  }
  gpu.next_probe = now + options_.probe_interval;
  gpu.probe_fault.clear();
  gpu.xid_faults.clear();
  if (!was_faulty) return false;
  gpu.recovered_at = now;
  ++recoveries_;
  return true;
}

bool Health::OnRegister(absl::string_view gpu_uuid,
                        const absl::Status& status) {
  const auto at = gpus_.find(gpu_uuid);
  if (at == gpus_.end()) return false;
  std::string fault;
  if (!status.ok())
    fault = absl::StrCat("cannot be watched: ", status.message());
  const std::string before = std::exchange(at->second.register_fault, fault);
  return before != fault;
}

std::vector<Health::Probe> Health::DueProbes(MonotonicTime now) {
  std::vector<Probe> due;
  for (auto& [uuid, gpu] : gpus_) {
    if (gpu.next_probe > now) continue;
    due.push_back({uuid, !gpu.xid_faults.empty()});
    gpu.next_probe = now + options_.probe_interval;
  }
  return due;
}

void Health::ProbeAllNow() {
  for (auto& [uuid, gpu] : gpus_) gpu.next_probe = MonotonicTime(0);
}

std::string Health::UnhealthyReason(absl::string_view device_uuid) const {
  for (const auto& [uuid, gpu] : gpus_) {
    for (const Device& device : gpu.devices) {
      if (device.uuid != device_uuid) continue;
      const auto fault = gpu.xid_faults.find(device.uuid);
      if (fault != gpu.xid_faults.end()) return fault->second;
      return gpu.probe_fault.empty() ? gpu.register_fault : gpu.probe_fault;
    }
  }
  return "";
}

}  // namespace rondo::deviceplugin
