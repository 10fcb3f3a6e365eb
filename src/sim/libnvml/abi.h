// SPDX-License-Identifier: Apache-2.0
//
// The NVML structures and constants that only the simulated library needs; see
// nvml/nvml_abi.h for the rest, for the rules and for the source.

#ifndef RONDO_SIM_LIBNVML_ABI_H_
#define RONDO_SIM_LIBNVML_ABI_H_

#include "nvml/nvml_abi.h"

namespace rondo::nvml::abi {

inline constexpr uint64_t kEventSingleBitEcc = 0x1;
inline constexpr uint64_t kEventDoubleBitEcc = 0x2;
inline constexpr uint64_t kEventPState = 0x4;
inline constexpr uint64_t kEventClock = 0x10;
inline constexpr uint64_t kEventMigConfigChange = 0x100;

// Versioned structs carry their size and version in the first word.
template <typename T>
constexpr uint32_t Version(uint32_t version) {
  return static_cast<uint32_t>(sizeof(T)) | version << 24;
}

enum ValueType : uint32_t {
  kValueDouble = 0,
  kValueUnsigned = 1,
  kValueUnsignedLongLong = 3,
  kValueSigned = 5,
};

struct Bar1Memory {
  uint64_t total, free, used;
};

struct ProcessDetail {
  uint32_t pid, pad;
  uint64_t used;
  uint32_t gpu_instance, compute_instance;
  uint64_t protected_used;
};
static_assert(sizeof(ProcessDetail) == 32);

// nvmlDeviceGetRunningProcessDetailList.
struct ProcessDetailList {
  uint32_t version, mode, count;
  ProcessDetail* processes;
};
static_assert(sizeof(ProcessDetailList) == 24);

struct ProcessUtilizationInfo {
  uint64_t time_us;
  uint32_t pid, sm, memory, encoder, decoder, jpeg, ofa, pad;
};
static_assert(sizeof(ProcessUtilizationInfo) == 40);

// nvmlDeviceGetProcessesUtilizationInfo.
struct ProcessesUtilizationInfo {
  uint32_t version, count;
  uint64_t last_seen_us;
  ProcessUtilizationInfo* processes;
};
static_assert(sizeof(ProcessesUtilizationInfo) == 24);

// nvmlDeviceGetHandleByUUIDV.
struct UuidValue {
  uint32_t version, type;
  char text[41];
  char pad[3];
};
static_assert(sizeof(UuidValue) == 52);

// nvmlDeviceGetPciInfoExt.
struct PciInfoExt {
  uint32_t version, domain, bus, device, device_id, subsystem_id;
  uint32_t base_class, sub_class;
  char bus_id[32];
};
static_assert(sizeof(PciInfoExt) == 64);

struct EccCounts {
  uint64_t l1_cache, l2_cache, device_memory, register_file;
};

struct Sample {
  uint64_t time_us;
  uint64_t value;
};

struct RowRemapHistogram {
  uint32_t max, high, partial, low, none;
};

struct Temperature {  // nvmlDeviceGetTemperatureV
  uint32_t version, sensor;
  int32_t celsius;
};
static_assert(sizeof(Temperature) == 12);

// nvmlDeviceGetGpuFabricInfo; V with a version in front and more at the end.
struct FabricInfo {
  uint8_t cluster[16];
  Return status;
  uint32_t clique, state;
};
static_assert(sizeof(FabricInfo) == 28);

struct FabricInfoV2 {
  uint32_t version;
  FabricInfo info;
  uint32_t health_mask;
};
static_assert(sizeof(FabricInfoV2) == 36);

struct FabricInfoV3 {
  FabricInfoV2 v2;
  uint8_t health_summary;
};
static_assert(sizeof(FabricInfoV3) == 40);

struct DynamicPstates {
  uint32_t flags;
  struct {
    uint32_t present, percent, increase_at, decrease_at;
  } domains[8];
};
static_assert(sizeof(DynamicPstates) == 132);

}  // namespace rondo::nvml::abi

#endif  // RONDO_SIM_LIBNVML_ABI_H_
