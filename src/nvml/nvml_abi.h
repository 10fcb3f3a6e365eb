// SPDX-License-Identifier: Apache-2.0
//
// Our own declarations of the NVML structures that Rondo and its simulator use;
// nvml_constants.h has the numbers. NVML promises binary compatibility: a
// struct never changes under a symbol, a new one comes with a new suffix (_v2,
// _v3). So each struct belongs to the symbols named above it; never cast one to
// another.
//
// Freestanding: no library, no function. Source: NVIDIA's NVML API reference
// and nvidia-ml-py (pynvml). Units are NVML's.

#ifndef RONDO_NVML_NVML_ABI_H_
#define RONDO_NVML_NVML_ABI_H_

#include <cstdint>

#include "nvml/nvml_constants.h"

namespace rondo::nvml::abi {

// nvmlDeviceGetMemoryInfo. `used` includes what the driver reserves.
struct Memory {
  uint64_t total, free, used;
};
static_assert(sizeof(Memory) == 24);

// nvmlDeviceGetMemoryInfo_v2. `used` does not include `reserved`.
struct MemoryV2 {
  uint32_t version, pad;
  uint64_t total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40);
inline constexpr uint32_t kMemoryV2Version = sizeof(MemoryV2) | 2u << 24;

// nvmlDeviceGet{Compute,Graphics,MPSCompute}RunningProcesses.
struct ProcessV1 {
  uint32_t pid, pad;
  uint64_t used;
};
static_assert(sizeof(ProcessV1) == 16);

// The same calls with _v2 and _v3.
struct ProcessV2 {
  uint32_t pid, pad;
  uint64_t used;
  uint32_t gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessV2) == 24);

// nvmlDeviceGetProcessUtilization. Time: CPU's, in us since the epoch.
struct ProcessSample {
  uint32_t pid, pad;
  uint64_t time_us;
  uint32_t sm, memory, encoder, decoder;  // percent
};
static_assert(sizeof(ProcessSample) == 32);

// nvmlDeviceGetUtilizationRates.
struct Utilization {
  uint32_t gpu, memory;
};
static_assert(sizeof(Utilization) == 8);

// nvmlDeviceGetPciInfo and _v2.
struct PciInfoV2 {
  char bus_id_legacy[16];
  uint32_t domain, bus, device, device_id, subsystem_id, reserved[4];
};
static_assert(sizeof(PciInfoV2) == 52);

// nvmlDeviceGetPciInfo_v3, nvmlDeviceGetNvLinkRemotePciInfo_v2.
struct PciInfoV3 {
  char bus_id_legacy[16];
  uint32_t domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfoV3) == 68);

// nvmlDeviceGetAttributes_v2, for MIG devices.
struct Attributes {
  uint32_t multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
  uint32_t gpu_instance_slices, compute_instance_slices;
  uint64_t memory_mib;
};
static_assert(sizeof(Attributes) == 40);

struct Placement {
  uint32_t start, size;
};

// nvmlGpuInstanceGetInfo. profile_id is the driver's number: the profile info
// with that `id` says which profile it is.
struct GpuInstanceInfo {
  Device device;
  uint32_t id, profile_id;
  Placement placement;
};
static_assert(sizeof(GpuInstanceInfo) == 24);

// nvmlDeviceGetGpuInstanceProfileInfo(profile = GpuInstanceProfile).
struct GpuInstanceProfileInfo {
  uint32_t id, p2p_supported, slices, instances, multiprocessors, copy_engines;
  uint32_t decoders, encoders, jpegs, ofas;
  uint64_t memory_mib;
};
static_assert(sizeof(GpuInstanceProfileInfo) == 48);

// nvmlEventSetWait_v2. nvmlEventSetWait knows the first 24 bytes only.
struct EventData {
  Device device;
  uint64_t type, data;
  uint32_t gpu_instance, compute_instance;
};
static_assert(sizeof(EventData) == 32);

// nvmlDeviceGetFieldValues.
struct FieldValue {
  uint32_t field, scope;
  int64_t timestamp_us, latency_us;
  uint32_t value_type;
  Return result;
  union {
    double d;
    uint32_t u32;
    uint64_t u64;
    int64_t i64;
    int32_t i32;
  } value;
};
static_assert(sizeof(FieldValue) == 40);

}  // namespace rondo::nvml::abi

#endif  // RONDO_NVML_NVML_ABI_H_
