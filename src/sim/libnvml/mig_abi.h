// SPDX-License-Identifier: Apache-2.0
//
// The NVML structures for MIG that only the simulated library needs; see
// nvml/nvml_abi.h for the rules and the source.

#ifndef RONDO_SIM_LIBNVML_MIG_ABI_H_
#define RONDO_SIM_LIBNVML_MIG_ABI_H_

#include "nvml/nvml_abi.h"

namespace rondo::nvml::abi {

struct GpuInstanceProfileInfoV2 {
  uint32_t version, id, p2p_supported, slices, instances, multiprocessors;
  uint32_t copy_engines, decoders, encoders, jpegs, ofas, pad;
  uint64_t memory_mib;
  char name[kNameSize];
};
static_assert(sizeof(GpuInstanceProfileInfoV2) == 152);

struct GpuInstanceProfileInfoV3 {
  uint32_t version, id, slices, instances, multiprocessors, copy_engines;
  uint32_t decoders, encoders, jpegs, ofas;
  uint64_t memory_mib;
  char name[kNameSize];
  uint32_t capabilities, pad;
};
static_assert(sizeof(GpuInstanceProfileInfoV3) == 152);

struct ComputeInstanceProfileInfo {
  uint32_t id, slices, instances, multiprocessors;
  uint32_t copy_engines, decoders, encoders, jpegs, ofas;
};
static_assert(sizeof(ComputeInstanceProfileInfo) == 36);

struct ComputeInstanceProfileInfoV2 {
  uint32_t version;
  ComputeInstanceProfileInfo info;
  char name[kNameSize];
};
static_assert(sizeof(ComputeInstanceProfileInfoV2) == 136);

// nvmlComputeInstanceGetInfo_v2.
struct ComputeInstanceInfo {
  Device device;
  GpuInstance gpu_instance;
  uint32_t id, profile_id;
  Placement placement;
};
static_assert(sizeof(ComputeInstanceInfo) == 32);

}  // namespace rondo::nvml::abi

#endif  // RONDO_SIM_LIBNVML_MIG_ABI_H_
