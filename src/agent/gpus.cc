// SPDX-License-Identifier: Apache-2.0
#include "agent/gpus.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "config/compile.h"

namespace rondo::agent {
namespace {

int64_t Unreadable(const deviceplugin::GpuList& gpus) {
  return std::count_if(gpus.begin(), gpus.end(),
                       [](const auto& gpu) { return !gpu.ok(); });
}

}  // namespace

Gpus::Gpus(EventLoop& loop, deviceplugin::ManagerOptions options, Open open,
           OnSlots on_slots)
    : loop_(loop),
      manager_options_(std::move(options)),
      open_(std::move(open)),
      on_slots_(std::move(on_slots)) {}

Gpus::~Gpus() { loop_.CancelTimer(rescan_); }

absl::Status Gpus::OpenBackend(const std::string& container_driver_root) {
  if (nvml_ != nullptr) return absl::OkStatus();
  RONDO_ASSIGN_OR_RETURN(nvml_, open_(container_driver_root));
  manager_ =
      std::make_unique<deviceplugin::Manager>(loop_, *nvml_, manager_options_);
  manager_->SetOnChange([this] { on_slots_(manager_->Slots()); });
  return absl::OkStatus();
}

std::vector<std::string> Gpus::Models(
    const std::string& container_driver_root) {
  std::vector<std::string> models;
  if (!OpenBackend(container_driver_root).ok()) return models;
  if (auto gpus = nvml_->ListGpus(); gpus.ok())
    for (const auto& gpu : *gpus)
      if (gpu.ok()) models.push_back(gpu->name);
  return models;
}

absl::Status Gpus::Apply(const config::Plan& plan) {
  loop_.CancelTimer(rescan_);
  if (absl::Status opened = OpenBackend(plan.flags.container_driver_root);
      !opened.ok()) {
    if (plan.flags.fail_on_init_error)
      return Annotate(opened,
                      "NVML, the library of the NVIDIA driver, cannot be used "
                      "(--fail-on-init-error=false waits for it)");
    LogWarning("no NVML: ", opened.message());
    TryAgainLater(plan);
    return absl::OkStatus();
  }
  return List(plan);
}

absl::Status Gpus::List(const config::Plan& plan) {
  RONDO_ASSIGN_OR_RETURN(deviceplugin::GpuList gpus, nvml_->ListGpus());
  std::map<std::string, int> devices;
  for (const auto& gpu : gpus)
    if (gpu.ok()) ++devices["nvidia.com/gpu"];
  if (const auto problems = config::CheckDeviceListSize(plan, devices);
      config::HasErrors(problems))
    return config::ToStatus(problems);
  RONDO_RETURN_IF_ERROR(manager_->Apply(plan, gpus));
  list_ = std::move(gpus);
  if (list_.empty()) {
    LogWarning("No devices found.");
    TryAgainLater(plan);
  } else if (Unreadable(list_) > 0) {
    AwaitUnreadable(plan);
  }
  return absl::OkStatus();
}

void Gpus::AwaitUnreadable(const config::Plan& plan) {
  rescan_ = loop_.RunAfter(manager_options_.recovery_quiet, [this, plan] {
    const auto gpus = nvml_->ListGpus();
    if (!gpus.ok() || Unreadable(*gpus) == Unreadable(list_)) {
      AwaitUnreadable(plan);
      return;
    }
    LogInfo("GPUs: ", Unreadable(*gpus), " of ", gpus->size(),
            " cannot be read now, ", Unreadable(list_), " before");
    if (absl::Status status = Apply(plan); !status.ok()) {
      LogError("GPUs: ", status.message());
      AwaitUnreadable(plan);
    }
  });
}

void Gpus::TryAgainLater(const config::Plan& plan) {
  LogInfo("looking for GPUs again in ", kRescan.count(), " s");
  rescan_ = loop_.RunAfter(kRescan, [this, plan] {
    if (absl::Status status = Apply(plan); !status.ok())
      LogError("GPUs: ", status.message());
  });
}

std::vector<deviceplugin::SlotGroup> Gpus::Slots() const {
  return manager_ == nullptr ? std::vector<deviceplugin::SlotGroup>()
                             : manager_->Slots();
}

std::string Gpus::Describe(metrics::NodeView& view) const {
  if (manager_ == nullptr) return "";
  view.plugin = manager_->Snapshot();
  for (const auto& gpu : list_)
    if (gpu.ok()) view.gpus.push_back({.gpu = *gpu});
  return manager_->Ready() ? "" : "kubelet";
}

void Gpus::AddReadings(metrics::NodeView& view) {
  // nvml_ is set once, before the first GPU can be in a view.
  if (view.gpus.empty()) return;
  if (auto version = nvml_->DriverVersion(); version.ok())
    view.driver_version = *std::move(version);
  if (auto version = nvml_->CudaDriverVersion(); version.ok())
    view.cuda_driver_version = *version;
  for (metrics::GpuView& gpu : view.gpus) {
    if (auto memory = nvml_->MemoryInfo(gpu.gpu.uuid); memory.ok())
      gpu.memory = *memory;
    if (auto rates = nvml_->UtilizationRates(gpu.gpu.uuid); rates.ok())
      gpu.utilization = *rates;
    if (auto processes = nvml_->ComputeProcesses(gpu.gpu.uuid); processes.ok())
      gpu.processes = *std::move(processes);
  }
}

}  // namespace rondo::agent
