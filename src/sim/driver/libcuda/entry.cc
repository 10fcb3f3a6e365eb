// SPDX-License-Identifier: Apache-2.0
//
// cuInit, what is asked of devices, and how functions are found by name.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <mutex>

#include "rm/abi.h"
#include "sim/driver/libcuda/context.h"
#include "sim/driver/libcuda/functions.h"
#include "sim/driver/libcuda/node.h"

namespace rondo::sim::cuda {
namespace {

std::mutex g_mutex;
RmClient* g_rm = nullptr;  // guarded by g_mutex until it is set, once
pid_t g_pid = 0;

const VisibleGpu* FindGpu(Device device) {
  const auto& gpus = VisibleGpus();
  return device >= 0 && static_cast<size_t>(device) < gpus.size()
             ? &gpus[device]
             : nullptr;
}

struct Named {
  const char* name;
  const char* symbol;
  void* function;
};
constexpr size_t kNamedCount = 0
#define X(name, symbol, parameters) +1
    RONDO_CUDA_FUNCTIONS(X)
#undef X
    ;
const Named* Table() {
  static const Named kTable[kNamedCount] = {
#define X(name, symbol, parameters) \
  {#name, #symbol, reinterpret_cast<void*>(symbol)},
      RONDO_CUDA_FUNCTIONS(X)
#undef X
  };
  return kTable;
}

void* FindFunction(const char* name) {
  const Named* const table = Table();
  for (size_t i = 0; i < kNamedCount; ++i)
    if (strcmp(table[i].name, name) == 0) return table[i].function;
  for (size_t i = 0; i < kNamedCount; ++i)
    if (strcmp(table[i].symbol, name) == 0) return table[i].function;
  return nullptr;
}

}  // namespace

// A forked child has its parent's memory but no CUDA, as on a real driver.
RmClient* Rm() { return g_pid == getpid() ? g_rm : nullptr; }

Result cuInit(unsigned flags) {
  if (flags != 0) return kInvalidValue;
  std::lock_guard lock(g_mutex);
  if (g_rm != nullptr) return g_pid == getpid() ? kSuccess : kNotInitialized;
  if (!LoadNode() || VisibleGpus().empty()) return kNoDevice;
  auto* const rm = new RmClient;
  if (rm->Open() != rm::kOk) {
    delete rm;
    return kSystemNotReady;
  }
  g_pid = getpid();
  g_rm = rm;
  return kSuccess;
}

Result cuDriverGetVersion(int* version) {
  if (version == nullptr) return kInvalidValue;
  if (!LoadNode()) return kNoDevice;
  *version = static_cast<int>(Node().cuda_version);
  return kSuccess;
}

#define X(name, value, text, words) {value, text, words},
constexpr struct {
  int value;
  const char *name, *words;
} kResults[] = {RONDO_CUDA_RESULTS(X)};
#undef X

Result cuGetErrorName(int error, const char** text) {
  for (const auto& r : kResults)
    if (r.value == error) return *text = r.name, kSuccess;
  *text = nullptr;
  return kInvalidValue;
}

Result cuGetErrorString(int error, const char** text) {
  for (const auto& r : kResults)
    if (r.value == error) return *text = r.words, kSuccess;
  *text = nullptr;
  return kInvalidValue;
}

Result cuGetProcAddress(const char* name, void** found, int version,
                        uint64_t flags) {
  int status = 0;
  return cuGetProcAddress_v2(name, found, version, flags, &status);
}

// status: 0 found, 1 there is no such function.
Result cuGetProcAddress_v2(const char* name, void** found, int, uint64_t,
                           int* status) {
  if (name == nullptr || found == nullptr) return kInvalidValue;
  *found = FindFunction(name);
  if (status != nullptr) *status = *found != nullptr ? 0 : 1;
  return *found != nullptr ? kSuccess : kNotFound;
}

Result cuDeviceGet(Device* device, int ordinal) {
  if (Rm() == nullptr) return kNotInitialized;
  if (FindGpu(ordinal) == nullptr) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}

Result cuDeviceGetCount(int* count) {
  if (Rm() == nullptr) return kNotInitialized;
  *count = static_cast<int>(VisibleGpus().size());
  return kSuccess;
}

Result cuDeviceGetName(char* name, int size, Device device) {
  const VisibleGpu* const gpu = FindGpu(device);
  if (gpu == nullptr) return kInvalidDevice;
  snprintf(name, size, "%s", gpu->state->name);
  return kSuccess;
}

Result cuDeviceGetUuid(Uuid* uuid, Device device) {
  const VisibleGpu* const gpu = FindGpu(device);
  if (gpu == nullptr) return kInvalidDevice;
  const char* at = gpu->state->uuid + strlen("GPU-");
  for (unsigned char& byte : uuid->bytes) {
    if (*at == '-') ++at;
    unsigned value = 0;
    sscanf(at, "%2x", &value);
    byte = static_cast<unsigned char>(value);
    at += 2;
  }
  return kSuccess;
}

Result cuDeviceGetUuid_v2(Uuid* uuid, Device device) {
  return cuDeviceGetUuid(uuid, device);
}

Result cuDeviceComputeCapability(int* major, int* minor, Device device) {
  const VisibleGpu* const gpu = FindGpu(device);
  if (gpu == nullptr) return kInvalidDevice;
  *major = static_cast<int>(gpu->state->compute_major);
  *minor = static_cast<int>(gpu->state->compute_minor);
  return kSuccess;
}

Result cuDeviceGetPCIBusId(char* text, int size, Device device) {
  const VisibleGpu* const gpu = FindGpu(device);
  if (gpu == nullptr) return kInvalidDevice;
  snprintf(text, size, "%04X:%02X:%02X.0", gpu->state->pci_domain,
           gpu->state->pci_bus, gpu->state->pci_device);
  return kSuccess;
}

Result cuDeviceGetAttribute(int* value, int attribute, Device device) {
  const VisibleGpu* const gpu = FindGpu(device);
  if (gpu == nullptr) return kInvalidDevice;
  const GpuState& g = *gpu->state;
  const struct {
    int attribute;
    uint32_t value;
  } kValues[] = {
      {kMaxThreadsPerBlock, 1024},
      {kMaxBlockDimX, 1024},
      {kMaxBlockDimY, 1024},
      {kMaxBlockDimZ, 64},
      {kMaxGridDimX, 0x7fffffff},
      {kMaxGridDimY, 65535},
      {kMaxGridDimZ, 65535},
      {kMaxSharedPerBlock, 48 << 10},
      {kWarpSize, 32},
      {kClockRateKhz, g.clock_max * 1000},
      {kMultiprocessors, g.multiprocessors},
      {kUnifiedAddressing, 1},
      {kPciBusId, g.pci_bus},
      {kPciDeviceId, g.pci_device},
      {kPciDomainId, g.pci_domain},
      {kComputeMajor, g.compute_major},
      {kComputeMinor, g.compute_minor},
      {kManagedMemory, 1},
      {kVirtualMemoryManagement, 1},
      {kPosixHandles, 1},
      {kMemoryPools, 1},
  };
  *value = 0;  // "not supported", for most attributes
  for (const auto& v : kValues)
    if (v.attribute == attribute) *value = static_cast<int>(v.value);
  return kSuccess;
}

}  // namespace rondo::sim::cuda
