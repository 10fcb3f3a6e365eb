// SPDX-License-Identifier: Apache-2.0
//
// Writes the files of a simulated node: a folder that stands for the root of a
// host with NVIDIA's driver. Existing files are replaced. Single-threaded per
// folder; failure is the system's reason with the path.

#ifndef RONDO_SIM_STAGE_H_
#define RONDO_SIM_STAGE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "sim/state.h"

namespace rondo::sim {

inline constexpr char kLibraryFolder[] = "/usr/lib64";
inline constexpr char kLibraryName[] = "libnvidia-ml.so.1";

// The simulated libnvidia-ml.so.1, held by this executable.
absl::string_view NvmlLibrary();

// Library, state file, device nodes, procfs and sysfs parts.
absl::Status StageNode(const NodeState& state, const std::string& dir);

// The minor number of /dev/nvidia-caps/nvidia-cap<minor> for an instance of the
// GPU with this minor, as the driver counts them; compute_instance -1 = the GPU
// instance itself.
int CapMinor(int gpu_minor, int gpu_instance, int compute_instance);

}  // namespace rondo::sim

#endif  // RONDO_SIM_STAGE_H_
