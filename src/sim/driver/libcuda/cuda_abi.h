// SPDX-License-Identifier: Apache-2.0
//
// The part of the CUDA driver API's binary interface that the simulated
// libcuda.so.1 has and the tenant program calls. Our own declarations; values
// as documented in the CUDA driver API reference. Freestanding.

#ifndef RONDO_SIM_DRIVER_LIBCUDA_CUDA_ABI_H_
#define RONDO_SIM_DRIVER_LIBCUDA_CUDA_ABI_H_

#include <cstddef>
#include <cstdint>

namespace rondo::sim::cuda {

#define RONDO_CUDA_RESULTS(X)                                                  \
  X(kSuccess, 0, "CUDA_SUCCESS", "no error")                                   \
  X(kInvalidValue, 1, "CUDA_ERROR_INVALID_VALUE", "invalid argument")          \
  X(kOutOfMemory, 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory")              \
  X(kNotInitialized, 3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error")  \
  X(kNoDevice, 100, "CUDA_ERROR_NO_DEVICE",                                    \
    "no CUDA-capable device is detected")                                      \
  X(kInvalidDevice, 101, "CUDA_ERROR_INVALID_DEVICE",                          \
    "invalid device ordinal")                                                  \
  X(kInvalidImage, 200, "CUDA_ERROR_INVALID_IMAGE",                            \
    "device kernel image is invalid")                                          \
  X(kInvalidContext, 201, "CUDA_ERROR_INVALID_CONTEXT",                        \
    "invalid device context")                                                  \
  X(kOperatingSystem, 304, "CUDA_ERROR_OPERATING_SYSTEM",                      \
    "OS call failed or operation not supported on this OS")                    \
  X(kInvalidHandle, 400, "CUDA_ERROR_INVALID_HANDLE",                          \
    "invalid resource handle")                                                 \
  X(kNotFound, 500, "CUDA_ERROR_NOT_FOUND", "named symbol not found")          \
  X(kNotReady, 600, "CUDA_ERROR_NOT_READY", "device not ready")                \
  X(kSystemNotReady, 802, "CUDA_ERROR_SYSTEM_NOT_READY",                       \
    "system not yet initialized")                                              \
  X(kNotSupported, 801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported") \
  X(kUnknown, 999, "CUDA_ERROR_UNKNOWN", "unknown error")

enum Result : int {
#define X(name, value, text, words) name = value,
  RONDO_CUDA_RESULTS(X)
#undef X
};

using Device = int;
using DevicePtr = unsigned long long;
struct Context;
struct Module;
struct Function;
struct Stream;
struct Event;
using MemHandle = unsigned long long;

struct Uuid {
  unsigned char bytes[16];
};

enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxBlockDimX = 2,
  kMaxBlockDimY = 3,
  kMaxBlockDimZ = 4,
  kMaxGridDimX = 5,
  kMaxGridDimY = 6,
  kMaxGridDimZ = 7,
  kMaxSharedPerBlock = 8,
  kWarpSize = 10,
  kClockRateKhz = 13,
  kMultiprocessors = 16,
  kUnifiedAddressing = 41,
  kPciBusId = 33,
  kPciDeviceId = 34,
  kPciDomainId = 50,
  kComputeMajor = 75,
  kComputeMinor = 76,
  kManagedMemory = 83,
  kVirtualMemoryManagement = 102,
  kPosixHandles = 103,
  kMemoryPools = 115,
};

// cuMemCreate and friends.
struct MemLocation {
  int type, id;  // type 1 = device
};
struct MemAllocationProp {
  int type, handle_types;  // type 1 = pinned; handle type 1 = descriptor
  MemLocation location;
  void* win32;
  unsigned char flags[8];
};
static_assert(sizeof(MemAllocationProp) == 32);
struct MemAccessDesc {
  MemLocation location;
  int flags;  // 0 none, 1 read, 3 read and write
};

}  // namespace rondo::sim::cuda

#endif  // RONDO_SIM_DRIVER_LIBCUDA_CUDA_ABI_H_
