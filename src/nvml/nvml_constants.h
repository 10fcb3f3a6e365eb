// SPDX-License-Identifier: Apache-2.0
//
// NVML's handles and numbers, as far as Rondo and its simulator use them.
// Freestanding. Source: NVIDIA's NVML API reference and nvidia-ml-py (pynvml).

#ifndef RONDO_NVML_NVML_CONSTANTS_H_
#define RONDO_NVML_NVML_CONSTANTS_H_

#include <cstddef>
#include <cstdint>

namespace rondo::nvml::abi {

struct DeviceObject;
struct GpuInstanceObject;
struct ComputeInstanceObject;
struct EventSetObject;
using Device = DeviceObject*;
using GpuInstance = GpuInstanceObject*;
using ComputeInstance = ComputeInstanceObject*;
using EventSet = EventSetObject*;

// nvmlReturn_t.
enum Return : int32_t {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kLibraryNotFound = 12,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kOperatingSystem = 17,
  kLibRmVersionMismatch = 18,
  kInsufficientResources = 23,
  kArgumentVersionMismatch = 25,
  kGpuNotFound = 28,
  kUnknown = 999,
};

inline constexpr uint32_t kInvalidInstance = 0xFFFFFFFF;
inline constexpr uint64_t kNotAvailable = ~uint64_t{0};
inline constexpr unsigned kMaxNvLinks = 18;
inline constexpr size_t kUuidSize = 96;
inline constexpr size_t kNameSize = 96;

enum TopologyLevel : uint32_t {
  kTopologyInternal = 0,
  kTopologySingle = 10,
  kTopologyMultiple = 20,
  kTopologyHostBridge = 30,
  kTopologyNode = 40,
  kTopologySystem = 50,
};

inline constexpr uint64_t kEventXid = 0x8;

// NVML_GPU_INSTANCE_PROFILE_*: what the slices are good for.
enum GpuInstanceProfile : uint32_t {
  kProfile1Slice = 0x0,
  kProfile2Slice = 0x1,
  kProfile3Slice = 0x2,
  kProfile4Slice = 0x3,
  kProfile7Slice = 0x4,
  kProfile8Slice = 0x5,
  kProfile6Slice = 0x6,
  kProfile1SliceMe = 0x7,      // REV1: media extensions
  kProfile2SliceMe = 0x8,      // REV1
  kProfile1SliceMemory = 0x9,  // REV2: double memory
  kProfile1SliceGfx = 0xA,
  kProfile2SliceGfx = 0xB,
  kProfile4SliceGfx = 0xC,
  kProfile1SliceNoMe = 0xD,
  kProfile2SliceNoMe = 0xE,
  kProfile1SliceAllMe = 0xF,
  kProfile2SliceAllMe = 0x10,
  kProfile3SliceGfx = 0x11,
  kProfileCount = 0x12,
};

inline constexpr uint32_t kFieldRecoveryAction = 230;
enum RecoveryAction : uint32_t {
  kRecoveryNone = 0,
  kRecoveryGpuReset = 1,
  kRecoveryNodeReboot = 2,
  kRecoveryDrainP2p = 3,
  kRecoveryDrainAndReset = 4,
};

}  // namespace rondo::nvml::abi

#endif  // RONDO_NVML_NVML_CONSTANTS_H_
