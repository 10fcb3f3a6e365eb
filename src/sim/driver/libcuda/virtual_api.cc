// SPDX-License-Identifier: Apache-2.0
//
// Virtual memory management: physical memory apart from addresses, shared
// between processes by descriptors. The bytes live in the simulated driver, so
// that all who map an allocation see the same ones.
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "rm/abi.h"
#include "sim/driver/libcuda/context.h"
#include "sim/driver/libcuda/functions.h"
#include "sim/driver/libcuda/node.h"

namespace rondo::sim::cuda {
namespace {

constexpr size_t kGranularity = 2 << 20;

// A location of another type is host memory.
constexpr int kDeviceLocation = 1;

struct Physical {
  Context* context = nullptr;
  uint32_t handle = 0;
  int host_fd = -1;  // host memory: no object of the driver
  uint64_t bytes = 0;
  uint32_t maps = 0;
  bool released = false;
};

std::mutex g_mutex;
std::map<MemHandle, Physical> g_physical;  // guarded by g_mutex
std::map<DevicePtr, MemHandle> g_maps;     // guarded by g_mutex
MemHandle g_last = 0;

// Memory goes when it is released and mapped nowhere.
void Collect(MemHandle handle) {
  const auto at = g_physical.find(handle);
  if (at == g_physical.end() || !at->second.released || at->second.maps != 0)
    return;
  if (at->second.host_fd >= 0)
    close(at->second.host_fd);
  else
    Rm()->Free(at->second.context->device_handle, at->second.handle);
  g_physical.erase(at);
}

MemHandle Add(const Physical& physical) {
  std::lock_guard lock(g_mutex);
  g_physical.emplace(++g_last, physical);
  return g_last;
}

Result CreateOnHost(MemHandle* handle, size_t bytes) {
  Physical physical;
  physical.bytes = bytes;
  physical.host_fd = memfd_create("rondo-sim-host", MFD_CLOEXEC);
  if (physical.host_fd < 0) return kOutOfMemory;
  if (ftruncate(physical.host_fd, static_cast<off_t>(bytes)) != 0) {
    close(physical.host_fd);
    return kOutOfMemory;
  }
  *handle = Add(physical);
  return kSuccess;
}

void* ReserveNoAccess(void* at, size_t bytes) {
  return mmap(at, bytes, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
                  (at != nullptr ? MAP_FIXED : 0),
              -1, 0);
}

}  // namespace

Result cuMemAddressReserve(DevicePtr* pointer, size_t bytes, size_t, DevicePtr,
                           unsigned long long) {
  if (bytes == 0 || bytes % kGranularity != 0) return kInvalidValue;
  void* const at = ReserveNoAccess(nullptr, bytes);
  if (at == MAP_FAILED) return kOutOfMemory;
  *pointer = reinterpret_cast<DevicePtr>(at);
  return kSuccess;
}

Result cuMemAddressFree(DevicePtr pointer, size_t bytes) {
  return munmap(reinterpret_cast<void*>(pointer), bytes) == 0 ? kSuccess
                                                              : kInvalidValue;
}

Result cuMemCreate(MemHandle* handle, size_t bytes,
                   const MemAllocationProp* properties, unsigned long long) {
  if (bytes == 0 || bytes % kGranularity != 0 || properties == nullptr)
    return kInvalidValue;
  if (properties->location.type != kDeviceLocation)
    return CreateOnHost(handle, bytes);
  Context* const context = Current();
  if (context == nullptr) return kInvalidContext;
  Physical physical;
  physical.context = context;
  physical.bytes = bytes;
  const uint32_t status = Rm()->AllocMemory(context->device_handle,
                                            &physical.bytes, &physical.handle);
  if (status != rm::kOk) return FromStatus(status);
  *handle = Add(physical);
  return kSuccess;
}

Result cuMemRelease(MemHandle handle) {
  std::lock_guard lock(g_mutex);
  const auto at = g_physical.find(handle);
  if (at == g_physical.end() || at->second.released) return kInvalidValue;
  at->second.released = true;
  Collect(handle);
  return kSuccess;
}

Result cuMemMap(DevicePtr pointer, size_t bytes, size_t offset,
                MemHandle handle, unsigned long long) {
  std::lock_guard lock(g_mutex);
  const auto at = g_physical.find(handle);
  // The driver knows how large imported memory is.
  if (at == g_physical.end() || offset != 0 ||
      (at->second.bytes != 0 && bytes != at->second.bytes))
    return kInvalidValue;
  uint32_t status = rm::kOk;
  void* const place = reinterpret_cast<void*>(pointer);
  void* mapped = nullptr;
  if (at->second.host_fd < 0) {
    mapped = Rm()->Map(at->second.context->device_handle, at->second.handle,
                       bytes, place, &status);
  } else {
    mapped = mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                  at->second.host_fd, 0);
    if (mapped == MAP_FAILED) return kOutOfMemory;
  }
  if (mapped == nullptr) return FromStatus(status);
  ++at->second.maps;
  g_maps[pointer] = handle;
  return kSuccess;
}

Result cuMemUnmap(DevicePtr pointer, size_t bytes) {
  std::lock_guard lock(g_mutex);
  const auto at = g_maps.find(pointer);
  if (at == g_maps.end()) return kInvalidValue;
  ReserveNoAccess(reinterpret_cast<void*>(pointer), bytes);
  const MemHandle handle = at->second;
  g_maps.erase(at);
  --g_physical[handle].maps;
  Collect(handle);
  return kSuccess;
}

Result cuMemSetAccess(DevicePtr, size_t, const MemAccessDesc* access,
                      size_t count) {
  return access != nullptr && count > 0 ? kSuccess : kInvalidValue;
}

Result cuMemGetAllocationGranularity(size_t* bytes, const MemAllocationProp*,
                                     int) {
  *bytes = kGranularity;
  return kSuccess;
}

// type 1: a descriptor, written to *(int*)shareable.
Result cuMemExportToShareableHandle(void* shareable, MemHandle handle, int type,
                                    unsigned long long) {
  if (type != 1) return kNotSupported;
  std::lock_guard lock(g_mutex);
  const auto at = g_physical.find(handle);
  if (at == g_physical.end()) return kInvalidValue;
  if (at->second.host_fd >= 0) return kNotSupported;
  const int fd =
      Rm()->Export(at->second.context->device_handle, at->second.handle);
  if (fd < 0) return kUnknown;
  *static_cast<int*>(shareable) = fd;
  return kSuccess;
}

// shareable is the descriptor itself, as a pointer.
Result cuMemImportFromShareableHandle(MemHandle* handle, void* shareable,
                                      int type) {
  Context* const context = Current();
  if (context == nullptr) return kInvalidContext;
  if (type != 1) return kNotSupported;
  Physical physical;
  physical.context = context;
  const int fd = static_cast<int>(reinterpret_cast<intptr_t>(shareable));
  const uint32_t status =
      Rm()->Import(fd, context->device_handle, &physical.handle);
  if (status != rm::kOk) return FromStatus(status);
  *handle = Add(physical);
  return kSuccess;
}

}  // namespace rondo::sim::cuda
