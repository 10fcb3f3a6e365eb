// SPDX-License-Identifier: Apache-2.0
//
// The text that names a kind of MIG device, as NVIDIA's tools and resource
// names spell it: "1g.5gb", "1c.3g.20gb", "1g.5gb+me". Pure functions, any
// thread. Source: NVIDIA MIG user guide; rounding as NVIDIA's device plugin
// does it.

#ifndef RONDO_NVML_MIG_PROFILE_H_
#define RONDO_NVML_MIG_PROFILE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace rondo::nvml {

struct MigShape {
  int gpu_slices = 0;
  int compute_slices = 0;
  uint64_t memory_mib = 0;        // of the MIG device
  uint64_t gpu_memory_bytes = 0;  // of the whole GPU; 0 if not known
  absl::string_view suffix = {};  // "", "+me", "+me.all", "+gfx", "-me"
};

// Memory is rounded to eighths of the GPU's, and that to whole GiB: the 19968
// MiB of an A100 80GB's 2g instance are two eighths of 80 GiB = "20gb". With an
// unknown GPU size the device's own memory is rounded up.
std::string MigProfileText(const MigShape& shape);

// The suffix for a value of NVML_GPU_INSTANCE_PROFILE_*.
absl::string_view MigProfileSuffix(uint32_t gpu_instance_profile);

}  // namespace rondo::nvml

#endif  // RONDO_NVML_MIG_PROFILE_H_
