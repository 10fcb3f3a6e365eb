// SPDX-License-Identifier: Apache-2.0
//
// Plain memory: device, pooled, managed and host; copies and fills. Device
// addresses are addresses of this process, so copies are plain copies, made
// once the work before them is done.
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "rm/abi.h"
#include "sim/driver/libcuda/context.h"
#include "sim/driver/libcuda/functions.h"
#include "sim/driver/libcuda/node.h"

namespace rondo::sim::cuda {
namespace {

constexpr size_t kSmallSlab = 2 << 20;
constexpr size_t kPoolSlab = 32 << 20;
constexpr size_t kHostAlignment = 4096;

// The default stream waits for all others and they for it.
Result Synchronous(DevicePtr to, const void* from, size_t bytes) {
  Context* const context = Current();
  if (context == nullptr) return kInvalidContext;
  if (!context->channels->WaitAll()) return kUnknown;
  memcpy(reinterpret_cast<void*>(to), from, bytes);
  return kSuccess;
}

}  // namespace

Result cuMemGetInfo_v2(size_t* free, size_t* total) {
  Context* const context = Current();
  if (context == nullptr) return kInvalidContext;
  uint64_t free_bytes = 0, total_bytes = 0;
  const Result result = context->MemoryInfo(&free_bytes, &total_bytes);
  if (free != nullptr) *free = free_bytes;
  if (total != nullptr) *total = total_bytes;
  return result;
}

// Asked of the driver too, so that it is what the shim lets the process see.
Result cuDeviceTotalMem_v2(size_t* bytes, Device device) {
  if (Rm() == nullptr) return kNotInitialized;
  const auto& gpus = VisibleGpus();
  if (device < 0 || static_cast<size_t>(device) >= gpus.size())
    return kInvalidDevice;
  Context probe;
  uint32_t params[14] = {gpus[device].instance};
  uint32_t zero = 0;
  uint32_t status = Rm()->Alloc(Rm()->client(), rm::kClassDevice, params,
                                sizeof(params), &probe.device_handle);
  if (status == rm::kOk)
    status = Rm()->Alloc(probe.device_handle, rm::kClassSubdevice, &zero,
                         sizeof(zero), &probe.subdevice);
  if (status != rm::kOk) return FromStatus(status);
  uint64_t free = 0, total = 0;
  const Result result = probe.MemoryInfo(&free, &total);
  *bytes = total;
  return result;
}

Result cuMemAlloc_v2(DevicePtr* pointer, size_t bytes) {
  Context* const context = Current();
  if (context == nullptr) return kInvalidContext;
  return context->AllocMemory(bytes, kSmallSlab, pointer);
}

Result cuMemFree_v2(DevicePtr pointer) {
  Context* const context = Current();
  if (context == nullptr) return kInvalidContext;
  if (!context->channels->WaitAll()) return kUnknown;
  return context->FreeMemory(pointer);
}

Result cuMemAllocAsync(DevicePtr* pointer, size_t bytes, Stream* stream) {
  Context* context = nullptr;
  uint32_t ring = 0;
  if (!ResolveStream(stream, &context, &ring)) return kInvalidContext;
  return context->AllocMemory(bytes, kPoolSlab, pointer);
}

Result cuMemFreeAsync(DevicePtr pointer, Stream* stream) {
  Context* context = nullptr;
  uint32_t ring = 0;
  if (!ResolveStream(stream, &context, &ring)) return kInvalidContext;
  return context->FreeMemory(pointer);
}

Result cuMemAllocManaged(DevicePtr* pointer, size_t bytes, unsigned) {
  Context* const context = Current();
  if (context == nullptr) return kInvalidContext;
  return context->AllocManaged(bytes, pointer);
}

Result cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  if (bytes == 0) return kInvalidValue;
  const size_t rounded =
      (bytes + kHostAlignment - 1) / kHostAlignment * kHostAlignment;
  *pointer = aligned_alloc(kHostAlignment, rounded);
  return *pointer != nullptr ? kSuccess : kOutOfMemory;
}

Result cuMemAllocHost_v2(void** pointer, size_t bytes) {
  return cuMemHostAlloc(pointer, bytes, 0);
}

Result cuMemFreeHost(void* pointer) {
  free(pointer);
  return kSuccess;
}

Result cuMemcpyHtoD_v2(DevicePtr to, const void* from, size_t bytes) {
  return Synchronous(to, from, bytes);
}

Result cuMemcpyDtoH_v2(void* to, DevicePtr from, size_t bytes) {
  return Synchronous(reinterpret_cast<DevicePtr>(to),
                     reinterpret_cast<const void*>(from), bytes);
}

Result cuMemcpyDtoD_v2(DevicePtr to, DevicePtr from, size_t bytes) {
  return Synchronous(to, reinterpret_cast<const void*>(from), bytes);
}

Result cuMemcpyHtoDAsync_v2(DevicePtr to, const void* from, size_t bytes,
                            Stream* stream) {
  const Result result = cuStreamSynchronize(stream);
  if (result == kSuccess) memcpy(reinterpret_cast<void*>(to), from, bytes);
  return result;
}

Result cuMemcpyDtoHAsync_v2(void* to, DevicePtr from, size_t bytes,
                            Stream* stream) {
  const Result result = cuStreamSynchronize(stream);
  if (result == kSuccess)
    memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return result;
}

Result cuMemsetD8_v2(DevicePtr to, unsigned char value, size_t count) {
  Context* const context = Current();
  if (context == nullptr) return kInvalidContext;
  if (!context->channels->WaitAll()) return kUnknown;
  memset(reinterpret_cast<void*>(to), value, count);
  return kSuccess;
}

Result cuMemsetD32_v2(DevicePtr to, unsigned value, size_t count) {
  Context* const context = Current();
  if (context == nullptr) return kInvalidContext;
  if (!context->channels->WaitAll()) return kUnknown;
  std::fill_n(reinterpret_cast<unsigned*>(to), count, value);
  return kSuccess;
}

}  // namespace rondo::sim::cuda
