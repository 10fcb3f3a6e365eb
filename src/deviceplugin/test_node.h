// SPDX-License-Identifier: Apache-2.0
//
// Values that the device plugin's tests share.

#ifndef RONDO_DEVICEPLUGIN_TEST_NODE_H_
#define RONDO_DEVICEPLUGIN_TEST_NODE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "config/plan.h"
#include "deviceplugin/device.h"
#include "deviceplugin/view.h"
#include "nvml/backend.h"

namespace rondo::deviceplugin {

inline std::string GpuUuid(int index) {
  return absl::StrCat("GPU-00000000-0000-0000-0000-00000000000", index);
}

inline nvml::Gpu TestGpu(int index) {
  nvml::Gpu gpu;
  gpu.index = index;
  gpu.uuid = GpuUuid(index);
  gpu.name = "NVIDIA A100-SXM4-80GB";
  gpu.minor = index;
  gpu.bus_id = absl::StrCat("00000000:1", index, ":00.0");
  gpu.memory_bytes = uint64_t{80} << 30;
  gpu.compute_major = 8;
  return gpu;
}

inline nvml::MigDevice TestMig(int gpu, int slot,
                               const std::string& profile = "1g.10gb") {
  nvml::MigDevice mig;
  mig.slot = slot;
  mig.uuid = absl::StrCat("MIG-", gpu, "-", slot);
  mig.gpu_instance = slot + 1;
  mig.compute_instance = 0;
  mig.gpu_slices = mig.compute_slices = profile[0] - '0';
  mig.memory_mib = 9728;
  mig.profile = profile;
  return mig;
}

inline std::vector<absl::StatusOr<nvml::Gpu>> TestGpus(int count) {
  std::vector<absl::StatusOr<nvml::Gpu>> gpus;
  for (int i = 0; i < count; ++i) gpus.push_back(TestGpu(i));
  return gpus;
}

inline config::SharedResource Share(const std::string& name, int replicas,
                                    const std::string& rename = "") {
  config::SharedResource entry;
  entry.name = name;
  entry.replicas = replicas;
  entry.rename = rename;
  entry.line = 7;
  return entry;
}

inline config::Plan SharedPlan(int replicas, const std::string& rename = "") {
  config::Plan plan;
  plan.flags.nvidia_dev_root = plan.flags.nvidia_driver_root;
  plan.sharing.resources = {Share("nvidia.com/gpu", replicas, rename)};
  return plan;
}

// One resource "nvidia.com/gpu" with devices named by letters.
struct NamedDevice {
  std::string uuid;
  int replicas = 0;
};

inline std::unique_ptr<const View> TestView(
    const std::vector<NamedDevice>& named) {
  Resource resource;
  resource.name = resource.original_name = "nvidia.com/gpu";
  for (size_t i = 0; i < named.size(); ++i) {
    Device device;
    device.uuid = device.gpu_uuid = named[i].uuid;
    device.gpu_index = static_cast<int>(i);
    device.index = absl::StrCat(i);
    device.paths = {absl::StrCat("/dev/nvidia", i)};
    device.replicas = named[i].replicas;
    resource.devices.push_back(device);
  }
  return std::unique_ptr<const View>(
      new View(MakeView(resource, std::vector<bool>(named.size(), true), {})));
}

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_TEST_NODE_H_
