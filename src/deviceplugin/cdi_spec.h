// SPDX-License-Identifier: Apache-2.0
//
// CDI specifications (Container Device Interface, tags.cncf.io, version 0.5.0):
// what a container runtime must do to give a container one of our devices.
// Written on every Apply when a cdi-* strategy is on; read by containerd and
// CRI-O. Blocking file work; any one thread.

#ifndef RONDO_DEVICEPLUGIN_CDI_SPEC_H_
#define RONDO_DEVICEPLUGIN_CDI_SPEC_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "config/plan.h"
#include "deviceplugin/allocate.h"
#include "deviceplugin/device.h"
#include "deviceplugin/driver_files.h"

namespace rondo::deviceplugin {

// The text of the "gpu" spec: one CDI device for each of ours, and "all".
std::string GpuCdiSpec(const config::Flags& flags,
                       const std::vector<Device>& devices,
                       const std::vector<std::string>& control_devices,
                       const DriverFiles& driver);

// The text of a spec of device nodes only: CDI device name -> nodes.
std::string NodesCdiSpec(
    const std::string& cdi_class, const config::Flags& flags,
    const std::vector<std::pair<std::string, std::vector<std::string>>>&
        devices);

// Writes cdi_dir/k8s.device-plugin.nvidia.com-<class>.json, each atomically,
// for gpu, imex-channel and those of gdrcopy, gds, mofed that are on and
// present; answers with the latter.
absl::StatusOr<std::vector<std::string>> WriteCdiSpecs(
    const config::Flags& flags, const std::vector<Device>& devices,
    const AllocateSettings& settings, const std::string& root,
    const std::string& cdi_dir);

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_CDI_SPEC_H_
