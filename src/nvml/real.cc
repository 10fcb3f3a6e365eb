// SPDX-License-Identifier: Apache-2.0
#include "nvml/real.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nvml/gpu_reader.h"
#include "nvml/symbols.h"

namespace rondo::nvml {
namespace {

using abi::Symbols;

// Asks for the size first; more processes may have come until the second call.
template <typename T, typename Call>
abi::Return ReadProcesses(const Call& call, abi::Device device,
                          std::vector<Process>* out) {
  unsigned count = 0;
  abi::Return got = call(device, &count, nullptr);
  std::vector<T> list;
  for (int attempt = 0; got == abi::kInsufficientSize && attempt < 8;
       ++attempt) {
    list.resize(count + 8);
    count = static_cast<unsigned>(list.size());
    got = call(device, &count, list.data());
  }
  if (got != abi::kSuccess) return got;
  list.resize(std::min<size_t>(count, list.size()));
  for (const T& process : list) {
    out->push_back({.pid = process.pid, .used_bytes = std::nullopt});
    if (process.used != abi::kNotAvailable)
      out->back().used_bytes = process.used;
  }
  return abi::kSuccess;
}

absl::string_view RecoveryText(uint32_t action) {
  switch (action) {
    case abi::kRecoveryGpuReset:
      return "a GPU reset";
    case abi::kRecoveryNodeReboot:
      return "a reboot of the node";
    case abi::kRecoveryDrainP2p:
      return "its peer traffic drained";
    case abi::kRecoveryDrainAndReset:
      return "draining, then a GPU reset";
    default:
      return "recovery";
  }
}

Ancestor FromTopology(unsigned level) {
  switch (level) {
    case abi::kTopologyInternal:
      return Ancestor::kSameBoard;
    case abi::kTopologySingle:
      return Ancestor::kSingleSwitch;
    case abi::kTopologyMultiple:
      return Ancestor::kMultipleSwitches;
    case abi::kTopologyHostBridge:
      return Ancestor::kHostBridge;
    case abi::kTopologyNode:
      return Ancestor::kSameCpu;
    case abi::kTopologySystem:
      return Ancestor::kCrossCpu;
    default:
      return Ancestor::kUnknown;
  }
}

}  // namespace

Real::Real(std::unique_ptr<const Symbols> nvml) : nvml_(std::move(nvml)) {}

Real::~Real() {
  if (event_set_ != nullptr) nvml_->event_set_free(event_set_);
  nvml_->shutdown();
}

absl::StatusOr<std::unique_ptr<Real>> Real::Load(const std::string& library,
                                                 CallsInFlight* calls) {
  RONDO_ASSIGN_OR_RETURN(auto nvml, Symbols::Load(library, calls));
  RONDO_RETURN_IF_ERROR(nvml->Check(nvml->init(), "nvmlInit"));
  return std::unique_ptr<Real>(new Real(std::move(nvml)));
}

absl::StatusOr<std::string> Real::DriverVersion() {
  char text[80];
  RONDO_RETURN_IF_ERROR(nvml_->Check(nvml_->driver_version(text, sizeof(text)),
                                     "SystemGetDriverVersion"));
  return std::string(text);
}

absl::StatusOr<int> Real::CudaDriverVersion() {
  int version = 0;
  RONDO_RETURN_IF_ERROR(nvml_->Check(nvml_->cuda_version
                                         ? nvml_->cuda_version(&version)
                                         : nvml_->cuda_version_v1(&version),
                                     "SystemGetCudaDriverVersion"));
  return version;
}

absl::StatusOr<std::vector<absl::StatusOr<Gpu>>> Real::ListGpus() {
  unsigned count = 0;
  RONDO_RETURN_IF_ERROR(nvml_->Check(nvml_->count(&count), "GetCount"));
  std::vector<absl::StatusOr<Gpu>> gpus;
  for (unsigned i = 0; i < count; ++i) {
    abi::Device device = nullptr;
    const absl::Status found =
        nvml_->Check(nvml_->by_index(i, &device), "GetHandleByIndex");
    absl::StatusOr<Gpu> gpu =
        found.ok() ? ReadGpu(*nvml_, device, static_cast<int>(i)) : found;
    if (!gpu.ok()) gpu = Annotate(gpu.status(), absl::StrCat("GPU ", i));
    if (gpu.ok() &&
        (gpu->name == "DGX Display" || gpu->name == "NVIDIA DGX Display"))
      continue;
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

absl::StatusOr<abi::Device> Real::Handle(absl::string_view uuid) {
  abi::Device device = nullptr;
  RONDO_RETURN_IF_ERROR(
      nvml_->Check(nvml_->by_uuid(std::string(uuid).c_str(), &device), uuid));
  return device;
}

absl::StatusOr<Link> Real::LinkBetween(const Gpu& a, const Gpu& b) {
  RONDO_ASSIGN_OR_RETURN(const abi::Device from, Handle(a.uuid));
  RONDO_ASSIGN_OR_RETURN(const abi::Device to, Handle(b.uuid));
  Link link;
  unsigned level = 0;
  RONDO_RETURN_IF_ERROR(nvml_->Check(nvml_->common_ancestor(from, to, &level),
                                     "GetTopologyCommonAncestor"));
  link.ancestor = FromTopology(level);
  for (unsigned i = 0; i < abi::kMaxNvLinks; ++i) {
    unsigned active = 0;
    const abi::Return state = nvml_->nvlink_state(from, i, &active);
    // A GPU without NVLink, or a number past its last link.
    if (state == abi::kNotSupported || state == abi::kInvalidArgument ||
        state == abi::kFunctionNotFound)
      continue;
    RONDO_RETURN_IF_ERROR(nvml_->Check(state, "GetNvLinkState"));
    abi::PciInfoV3 remote{};
    if (active != 1 || nvml_->nvlink_remote(from, i, &remote) != abi::kSuccess)
      continue;
    if (b.bus_id == remote.bus_id) ++link.nvlinks;
  }
  return link;
}

absl::StatusOr<Memory> Real::MemoryInfo(absl::string_view uuid) {
  RONDO_ASSIGN_OR_RETURN(const abi::Device device, Handle(uuid));
  abi::Memory memory{};
  RONDO_RETURN_IF_ERROR(
      nvml_->Check(nvml_->memory(device, &memory), "GetMemoryInfo"));
  return Memory{memory.total, memory.used, memory.free};
}

absl::StatusOr<Utilization> Real::UtilizationRates(absl::string_view uuid) {
  RONDO_ASSIGN_OR_RETURN(const abi::Device device, Handle(uuid));
  abi::Utilization rates{};
  RONDO_RETURN_IF_ERROR(
      nvml_->Check(nvml_->utilization(device, &rates), "GetUtilizationRates"));
  return Utilization{static_cast<int>(rates.gpu),
                     static_cast<int>(rates.memory)};
}

absl::StatusOr<std::vector<Process>> Real::ComputeProcesses(
    absl::string_view uuid) {
  RONDO_ASSIGN_OR_RETURN(const abi::Device device, Handle(uuid));
  std::vector<Process> processes;
  // A struct for each version: reading one as the other swaps pid and memory.
  abi::Return got;
  if (nvml_->processes_v3)
    got =
        ReadProcesses<abi::ProcessV2>(nvml_->processes_v3, device, &processes);
  else if (nvml_->processes_v2)
    got =
        ReadProcesses<abi::ProcessV2>(nvml_->processes_v2, device, &processes);
  else
    got =
        ReadProcesses<abi::ProcessV1>(nvml_->processes_v1, device, &processes);
  RONDO_RETURN_IF_ERROR(nvml_->Check(got, "GetComputeRunningProcesses"));
  return processes;
}

absl::StatusOr<std::vector<ProcessSample>> Real::ProcessSamples(
    absl::string_view uuid, uint64_t since_us) {
  RONDO_ASSIGN_OR_RETURN(const abi::Device device, Handle(uuid));
  std::vector<abi::ProcessSample> list;
  unsigned count = 0;
  abi::Return got = nvml_->process_samples(device, nullptr, &count, since_us);
  for (int attempt = 0; got == abi::kInsufficientSize && attempt < 8;
       ++attempt) {
    list.resize(count + 8);
    count = static_cast<unsigned>(list.size());
    got = nvml_->process_samples(device, list.data(), &count, since_us);
  }
  if (got == abi::kNotFound) return std::vector<ProcessSample>();  // none
  RONDO_RETURN_IF_ERROR(nvml_->Check(got, "GetProcessUtilization"));
  list.resize(std::min<size_t>(count, list.size()));
  std::vector<ProcessSample> samples;
  for (const abi::ProcessSample& sample : list)
    // Places that were not filled have no time.
    if (sample.time_us > since_us)
      samples.push_back(
          {.pid = sample.pid,
           .time_us = sample.time_us,
           .sm_percent = static_cast<int>(std::min<uint32_t>(sample.sm, 100))});
  return samples;
}

absl::Status Real::Probe(absl::string_view uuid) {
  const auto unwell = [&](absl::string_view why) {
    return absl::FailedPreconditionError(absl::StrCat(uuid, ": ", why));
  };
  const absl::StatusOr<abi::Device> device = Handle(uuid);
  if (!device.ok()) return unwell(device.status().message());
  abi::Memory memory{};
  const abi::Return got = nvml_->memory(*device, &memory);
  // Some integrated GPUs have no memory of their own to tell about.
  if (got != abi::kSuccess && got != abi::kNotSupported)
    return unwell(nvml_->Check(got, "GetMemoryInfo").message());
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (nvml_->remapped_rows(*device, &corrected, &uncorrected, &pending,
                           &failed) == abi::kSuccess) {
    if (failed != 0) return unwell("a row of its memory cannot be remapped");
    if (pending != 0)
      return unwell("a row of its memory waits for a reset to be remapped");
  }
  abi::FieldValue field{};
  field.field = abi::kFieldRecoveryAction;
  if (nvml_->field_values(*device, 1, &field) == abi::kSuccess &&
      field.result == abi::kSuccess && field.value.u32 != abi::kRecoveryNone)
    return unwell(
        absl::StrCat("the driver asks for ", RecoveryText(field.value.u32)));
  return absl::OkStatus();
}

absl::StatusOr<abi::EventSet> Real::EventSet() {
  const std::lock_guard<std::mutex> lock(events_mutex_);
  if (event_set_ == nullptr)
    RONDO_RETURN_IF_ERROR(
        nvml_->Check(nvml_->event_set_create(&event_set_), "EventSetCreate"));
  return event_set_;
}

absl::Status Real::RegisterXidEvents(absl::string_view uuid) {
  RONDO_ASSIGN_OR_RETURN(const abi::Device device, Handle(uuid));
  RONDO_ASSIGN_OR_RETURN(const abi::EventSet set, EventSet());
  unsigned long long supported = 0;
  RONDO_RETURN_IF_ERROR(nvml_->Check(
      nvml_->supported_events(device, &supported), "GetSupportedEventTypes"));
  if ((supported & abi::kEventXid) == 0)
    return absl::UnimplementedError(
        absl::StrCat(uuid, " does not report Xid errors"));
  RONDO_RETURN_IF_ERROR(nvml_->Check(
      nvml_->register_events(device, abi::kEventXid, set), "RegisterEvents"));
  const std::lock_guard<std::mutex> lock(events_mutex_);
  registered_[device] = std::string(uuid);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<XidEvent>> Real::WaitForEvent(
    std::chrono::milliseconds timeout) {
  RONDO_ASSIGN_OR_RETURN(const abi::EventSet set, EventSet());
  abi::EventData data{};
  data.gpu_instance = data.compute_instance = abi::kInvalidInstance;
  const auto wait_ms = static_cast<unsigned>(
      std::clamp<int64_t>(timeout.count(), 0, UINT32_MAX));
  const abi::Return got = nvml_->event_wait_v2
                              ? nvml_->event_wait_v2(set, &data, wait_ms)
                              : nvml_->event_wait_v1(set, &data, wait_ms);
  if (got == abi::kTimeout) return std::nullopt;
  RONDO_RETURN_IF_ERROR(nvml_->Check(got, "EventSetWait"));
  if (data.type != abi::kEventXid) return std::nullopt;
  XidEvent event;
  event.xid = data.data;
  if (data.gpu_instance != abi::kInvalidInstance)
    event.gpu_instance = data.gpu_instance;
  if (data.compute_instance != abi::kInvalidInstance)
    event.compute_instance = data.compute_instance;
  const std::lock_guard<std::mutex> lock(events_mutex_);
  if (const auto known = registered_.find(data.device);
      known != registered_.end()) {
    event.uuid = known->second;
  } else if (char uuid[abi::kUuidSize];
             nvml_->uuid(data.device, uuid, sizeof(uuid)) == abi::kSuccess) {
    event.uuid = uuid;
  }
  return event;
}

}  // namespace rondo::nvml
