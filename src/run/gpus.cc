// SPDX-License-Identifier: Apache-2.0
#include "run/gpus.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nvml/library.h"
#include "nvml/real.h"
#include "rm/client.h"

namespace rondo::run {

absl::Status Gpus::Read() {
  auto nvml = nvml::Real::Load(nvml::FindLibrary(""), calls_);
  if (!nvml.ok())
    return absl::FailedPreconditionError(absl::StrCat(
        "no NVIDIA driver on this machine: ", nvml.status().message()));
  RONDO_ASSIGN_OR_RETURN(const std::string version, (*nvml)->DriverVersion());
  int major = 0;
  if (!absl::SimpleAtoi(version.substr(0, version.find('.')), &major) ||
      major < rm::kOldestDriver)
    return absl::FailedPreconditionError(
        absl::StrCat("driver ", version, ": its interface is not known; ",
                     rm::kOldestDriver, " is the oldest that is"));
  RONDO_ASSIGN_OR_RETURN(const auto gpus, (*nvml)->ListGpus());
  gpus_.clear();
  for (const auto& gpu : gpus) {
    if (!gpu.ok())
      gpus_.push_back({"", gpu.status()});
    else if (gpu->mig_enabled)
      gpus_.push_back(
          {gpu->uuid, absl::FailedPreconditionError(absl::StrCat(
                          "GPU ", gpu->index,
                          " is in MIG mode; rondo run shares whole GPUs"))});
    else
      gpus_.push_back({gpu->uuid, Gpu{static_cast<int>(gpus_.size()), gpu->uuid,
                                      gpu->memory_bytes}});
  }
  return absl::OkStatus();
}

absl::StatusOr<Gpu> Gpus::Find(int index) {
  const auto in_range = [&] {
    return index >= 0 && index < static_cast<int>(gpus_.size());
  };
  if (gpus_.empty() || (in_range() && !gpus_[index].gpu.ok()))
    RONDO_RETURN_IF_ERROR(Read());
  if (!in_range())
    return absl::InvalidArgumentError(
        absl::StrCat("no GPU ", index, ": this machine has ", gpus_.size()));
  return gpus_[index].gpu;
}

absl::StatusOr<Gpu> Gpus::FindVisible(const std::string& entry,
                                      bool bus_order) {
  if (gpus_.empty()) RONDO_RETURN_IF_ERROR(Read());
  const std::string variable = absl::StrCat("CUDA_VISIBLE_DEVICES=", entry);
  int index = 0;
  if (absl::SimpleAtoi(entry, &index)) {
    if (bus_order || gpus_.size() == 1) return Find(index);
    return absl::InvalidArgumentError(absl::StrCat(
        variable,
        " counts the fastest GPU first, unlike nvidia-smi; give --gpu "
        "with the index that nvidia-smi shows"));
  }
  int found = -1;
  for (int i = 0; i < static_cast<int>(gpus_.size()); ++i) {
    if (!absl::StartsWith(gpus_[i].uuid, entry)) continue;
    if (found >= 0)
      return absl::InvalidArgumentError(absl::StrCat(
          variable, " names more than one GPU of this machine; give --gpu"));
    found = i;
  }
  if (found >= 0) return Find(found);
  return absl::InvalidArgumentError(
      absl::StrCat(variable, " names no GPU of this machine; give --gpu"));
}

}  // namespace rondo::run
