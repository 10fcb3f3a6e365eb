// SPDX-License-Identifier: Apache-2.0
//
// GPUs + plan -> the resources that this node advertises. A function of values
// and of a few small files of the system below `root` (empty: the machine
// itself): /proc/driver/nvidia-caps/mig-minors, /sys/bus/pci/devices.
//
// The rules are those of NVIDIA's plugin (MIG strategies, names, error texts),
// with two differences: `devices` and `rename` of a sharing entry are honoured,
// and one GPU that cannot be read is a warning, not the end of the node.

#ifndef RONDO_DEVICEPLUGIN_INVENTORY_H_
#define RONDO_DEVICEPLUGIN_INVENTORY_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "config/plan.h"
#include "deviceplugin/device.h"
#include "nvml/backend.h"

namespace rondo::deviceplugin {

struct Inventory {
  std::vector<Resource> resources;    // by name; none is empty
  std::vector<std::string> warnings;  // one line each

  std::vector<Device> AllDevices() const;
};

// InvalidArgument where plan and GPUs contradict each other.
absl::StatusOr<Inventory> BuildInventory(
    const std::vector<absl::StatusOr<nvml::Gpu>>& gpus,
    const config::Plan& plan, const std::string& root);

// InvalidArgument, with a number that fits, where a resource's list would be
// larger than the message that kubelet takes (4 MiB, k8s #109304): kubelet
// would show the resource as 0 and say why in its own log only.
absl::Status CheckListSizes(const Inventory& inventory);

// By UUID: every device of this node, advertised or not.
std::map<std::string, Device> KnownDevices(
    const std::vector<absl::StatusOr<nvml::Gpu>>& gpus,
    const std::vector<Device>& advertised);

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_INVENTORY_H_
