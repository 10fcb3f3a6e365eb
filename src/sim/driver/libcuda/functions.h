// SPDX-License-Identifier: Apache-2.0
//
// Every function that the simulated libcuda.so.1 exports, in one list: X(name
// as cuGetProcAddress knows it, exported symbol, parameters). Definitions that
// differ from this list do not compile, and one that is missing does not link.
// All return a Result and are thread-safe.

#ifndef RONDO_SIM_DRIVER_LIBCUDA_FUNCTIONS_H_
#define RONDO_SIM_DRIVER_LIBCUDA_FUNCTIONS_H_

#include "sim/driver/libcuda/cuda_abi.h"

// clang-format off
#define RONDO_CUDA_FUNCTIONS(X)                                                 \
  X(cuInit, cuInit, (unsigned flags))                                           \
  X(cuDriverGetVersion, cuDriverGetVersion, (int* version))                     \
  X(cuGetErrorName, cuGetErrorName, (int error, const char** text))             \
  X(cuGetErrorString, cuGetErrorString, (int error, const char** text))         \
  X(cuGetProcAddress_v1, cuGetProcAddress,                                      \
    (const char* name, void** found, int version, uint64_t flags))              \
  X(cuGetProcAddress, cuGetProcAddress_v2,                                      \
    (const char* name, void** found, int version, uint64_t flags, int* status)) \
  X(cuDeviceGet, cuDeviceGet, (Device* device, int ordinal))                    \
  X(cuDeviceGetCount, cuDeviceGetCount, (int* count))                           \
  X(cuDeviceGetName, cuDeviceGetName, (char* name, int size, Device device))    \
  X(cuDeviceGetUuid_v1, cuDeviceGetUuid, (Uuid* uuid, Device device))           \
  X(cuDeviceGetUuid, cuDeviceGetUuid_v2, (Uuid* uuid, Device device))           \
  X(cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t* bytes, Device device))      \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute,                                 \
    (int* value, int attribute, Device device))                                 \
  X(cuDeviceComputeCapability, cuDeviceComputeCapability,                       \
    (int* major, int* minor, Device device))                                    \
  X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId,                                   \
    (char* text, int size, Device device))                                      \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain,                         \
    (Context** context, Device device))                                         \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (Device device))   \
  X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, (Device device))       \
  X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState,                     \
    (Device device, unsigned* flags, int* active))                              \
  X(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2,                  \
    (Device device, unsigned flags))                                            \
  X(cuCtxCreate, cuCtxCreate_v2,                                                \
    (Context** context, unsigned flags, Device device))                         \
  X(cuCtxDestroy, cuCtxDestroy_v2, (Context* context))                          \
  X(cuCtxPushCurrent, cuCtxPushCurrent_v2, (Context* context))                  \
  X(cuCtxPopCurrent, cuCtxPopCurrent_v2, (Context** context))                   \
  X(cuCtxSetCurrent, cuCtxSetCurrent, (Context* context))                       \
  X(cuCtxGetCurrent, cuCtxGetCurrent, (Context** context))                      \
  X(cuCtxGetDevice, cuCtxGetDevice, (Device* device))                           \
  X(cuCtxSynchronize, cuCtxSynchronize, ())                                     \
  X(cuMemGetInfo, cuMemGetInfo_v2, (size_t* free, size_t* total))               \
  X(cuMemAlloc, cuMemAlloc_v2, (DevicePtr* pointer, size_t bytes))              \
  X(cuMemFree, cuMemFree_v2, (DevicePtr pointer))                               \
  X(cuMemAllocAsync, cuMemAllocAsync,                                           \
    (DevicePtr* pointer, size_t bytes, Stream* stream))                         \
  X(cuMemFreeAsync, cuMemFreeAsync, (DevicePtr pointer, Stream* stream))        \
  X(cuMemAllocManaged, cuMemAllocManaged,                                       \
    (DevicePtr* pointer, size_t bytes, unsigned flags))                         \
  X(cuMemAllocHost, cuMemAllocHost_v2, (void** pointer, size_t bytes))          \
  X(cuMemHostAlloc, cuMemHostAlloc,                                             \
    (void** pointer, size_t bytes, unsigned flags))                             \
  X(cuMemFreeHost, cuMemFreeHost, (void* pointer))                              \
  X(cuMemcpyHtoD, cuMemcpyHtoD_v2,                                              \
    (DevicePtr to, const void* from, size_t bytes))                             \
  X(cuMemcpyDtoH, cuMemcpyDtoH_v2, (void* to, DevicePtr from, size_t bytes))    \
  X(cuMemcpyDtoD, cuMemcpyDtoD_v2, (DevicePtr to, DevicePtr from, size_t bytes))\
  X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                    \
    (DevicePtr to, const void* from, size_t bytes, Stream* stream))             \
  X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                    \
    (void* to, DevicePtr from, size_t bytes, Stream* stream))                   \
  X(cuMemsetD8, cuMemsetD8_v2,                                                  \
    (DevicePtr to, unsigned char value, size_t count))                          \
  X(cuMemsetD32, cuMemsetD32_v2, (DevicePtr to, unsigned value, size_t count))  \
  X(cuMemAddressReserve, cuMemAddressReserve,                                   \
    (DevicePtr* pointer, size_t bytes, size_t alignment, DevicePtr at,          \
     unsigned long long flags))                                                 \
  X(cuMemAddressFree, cuMemAddressFree, (DevicePtr pointer, size_t bytes))      \
  X(cuMemCreate, cuMemCreate,                                                   \
    (MemHandle* handle, size_t bytes, const MemAllocationProp* properties,      \
     unsigned long long flags))                                                 \
  X(cuMemRelease, cuMemRelease, (MemHandle handle))                             \
  X(cuMemMap, cuMemMap,                                                         \
    (DevicePtr pointer, size_t bytes, size_t offset, MemHandle handle,          \
     unsigned long long flags))                                                 \
  X(cuMemUnmap, cuMemUnmap, (DevicePtr pointer, size_t bytes))                  \
  X(cuMemSetAccess, cuMemSetAccess,                                             \
    (DevicePtr pointer, size_t bytes, const MemAccessDesc* access,              \
     size_t count))                                                             \
  X(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity,               \
    (size_t* bytes, const MemAllocationProp* properties, int option))           \
  X(cuMemExportToShareableHandle, cuMemExportToShareableHandle,                 \
    (void* shareable, MemHandle handle, int type, unsigned long long flags))    \
  X(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle,             \
    (MemHandle* handle, void* shareable, int type))                             \
  X(cuModuleLoadData, cuModuleLoadData, (Module** module, const void* image))   \
  X(cuModuleLoadDataEx, cuModuleLoadDataEx,                                     \
    (Module** module, const void* image, unsigned count, int* options,          \
     void** values))                                                            \
  X(cuModuleUnload, cuModuleUnload, (Module* module))                           \
  X(cuModuleGetFunction, cuModuleGetFunction,                                   \
    (Function** function, Module* module, const char* name))                    \
  X(cuLaunchKernel, cuLaunchKernel,                                             \
    (Function* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,     \
     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,     \
     Stream* stream, void** params, void** extra))                              \
  X(cuStreamCreate, cuStreamCreate, (Stream** stream, unsigned flags))          \
  X(cuStreamCreateWithPriority, cuStreamCreateWithPriority,                     \
    (Stream** stream, unsigned flags, int priority))                            \
  X(cuStreamDestroy, cuStreamDestroy_v2, (Stream* stream))                      \
  X(cuStreamSynchronize, cuStreamSynchronize, (Stream* stream))                 \
  X(cuStreamQuery, cuStreamQuery, (Stream* stream))                             \
  X(cuStreamWaitEvent, cuStreamWaitEvent,                                       \
    (Stream* stream, Event* event, unsigned flags))                             \
  X(cuEventCreate, cuEventCreate, (Event** event, unsigned flags))              \
  X(cuEventDestroy, cuEventDestroy_v2, (Event* event))                          \
  X(cuEventRecord, cuEventRecord, (Event* event, Stream* stream))               \
  X(cuEventSynchronize, cuEventSynchronize, (Event* event))                     \
  X(cuEventQuery, cuEventQuery, (Event* event))                                 \
  X(cuEventElapsedTime, cuEventElapsedTime,                                     \
    (float* milliseconds, Event* from, Event* to))                              \
  X(cuEventElapsedTime_v2, cuEventElapsedTime_v2,                               \
    (float* milliseconds, Event* from, Event* to))                              \
  /* The simulation's own, found by programs that can live in its time. */      \
  X(rondoSimNow, rondoSimNow, (int64_t* ns))                                    \
  X(rondoSimSleepUntil, rondoSimSleepUntil, (int64_t ns))
// clang-format on

namespace rondo::sim::cuda {

#define X(name, symbol, parameters)                                           \
  extern "C" __attribute__((visibility("default"))) Result symbol parameters; \
  using symbol##Fn = Result parameters;
RONDO_CUDA_FUNCTIONS(X)
#undef X

}  // namespace rondo::sim::cuda

#endif  // RONDO_SIM_DRIVER_LIBCUDA_FUNCTIONS_H_
