// SPDX-License-Identifier: Apache-2.0
#include "sim/libnvml/library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace rondo::sim::libnvml {
namespace {

Mutex g_mutex;
int g_users = 0;  // guarded by g_mutex
std::atomic<const NodeState*> g_node{nullptr};
const NodeState* g_mapped = nullptr;  // guarded by g_mutex; may outlive g_node
dev_t g_device = 0;
ino_t g_inode = 0;

constexpr uint32_t kHandlesPerGpu = 1 + kMaxMigs;
constexpr uint32_t kInstancesPerGpu = 16;
char g_devices[kMaxGpus * kHandlesPerGpu];
char g_gpu_instances[kMaxGpus * kInstancesPerGpu];
char g_compute_instances[kMaxGpus * kMaxMigs];

// The place of a handle in its table; -1 where it is none of ours.
template <size_t N>
int Place(const void* handle, const char (&table)[N]) {
  const auto at = reinterpret_cast<uintptr_t>(handle);
  const auto begin = reinterpret_cast<uintptr_t>(table);
  return at >= begin && at < begin + N ? static_cast<int>(at - begin) : -1;
}

bool IsFile(const char* path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

// The node that this copy of the library was staged with is beside it; only a
// copy without one asks the environment. So a program that loads two nodes gets
// two, whatever its environment says.
bool FindStateFile(char (&path)[PATH_MAX + 64]) {
  Dl_info info;
  char library[PATH_MAX];
  if (dladdr(reinterpret_cast<const void*>(&FindStateFile), &info) != 0 &&
      realpath(info.dli_fname, library) != nullptr) {
    if (char* const slash = strrchr(library, '/')) *slash = '\0';
    snprintf(path, sizeof(path), "%s/%s", library, kStateFileName);
    if (IsFile(path)) return true;
  }
  const char* const named = getenv(kStateVariable);
  if (named == nullptr || *named == '\0') return false;
  for (const char* format : {"%s", "%s/%s", "%s/usr/lib64/%s"}) {
    snprintf(path, sizeof(path), format, named, kStateFileName);
    if (IsFile(path)) return true;
  }
  return false;
}

Return MapNode() {
  char path[PATH_MAX + 64];
  if (!FindStateFile(path)) return kDriverNotLoaded;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return kNoPermission;
  struct stat info;
  const bool sized = fstat(fd, &info) == 0 && info.st_size == sizeof(NodeState);
  if (sized && g_mapped && info.st_dev == g_device && info.st_ino == g_inode) {
    close(fd);
    g_node = g_mapped;
    return kSuccess;
  }
  void* const at =
      sized ? mmap(nullptr, sizeof(NodeState), PROT_READ, MAP_SHARED, fd, 0)
            : MAP_FAILED;
  close(fd);
  if (at == MAP_FAILED) return kLibRmVersionMismatch;
  const auto* const node = static_cast<const NodeState*>(at);
  if (node->magic != kStateMagic || node->version != kStateVersion) {
    munmap(at, sizeof(NodeState));
    return kLibRmVersionMismatch;
  }
  // An older mapping stays: another thread may be reading it still.
  g_mapped = node;
  g_device = info.st_dev;
  g_inode = info.st_ino;
  g_node = node;
  return kSuccess;
}

Return Init() {
  const Lock lock(g_mutex);
  if (g_users == 0) {
    const Return mapped = MapNode();
    if (mapped != kSuccess) return mapped;
  }
  ++g_users;
  return kSuccess;
}

}  // namespace

const NodeState* State() { return g_node.load(std::memory_order_acquire); }

Device DeviceHandle(uint32_t gpu) {
  return reinterpret_cast<Device>(&g_devices[gpu * kHandlesPerGpu]);
}
Device MigHandle(uint32_t gpu, uint32_t slot) {
  return reinterpret_cast<Device>(&g_devices[gpu * kHandlesPerGpu + 1 + slot]);
}
GpuInstance GpuInstanceHandle(uint32_t gpu, uint32_t id) {
  return reinterpret_cast<GpuInstance>(
      &g_gpu_instances[gpu * kInstancesPerGpu + id]);
}
ComputeInstance ComputeInstanceHandle(uint32_t gpu, uint32_t slot) {
  return reinterpret_cast<ComputeInstance>(
      &g_compute_instances[gpu * kMaxMigs + slot]);
}

namespace {

Return FindIndex(int gpu, Target* out) {
  out->node = State();
  if (out->node == nullptr) return kUninitialized;
  if (gpu < 0 || gpu >= static_cast<int>(out->node->gpu_count))
    return kInvalidArgument;
  out->index = gpu;
  out->gpu = &out->node->gpus[gpu];
  return out->gpu->lost != 0 ? kGpuIsLost : kSuccess;
}

}  // namespace

Return Find(Device device, Target* out) {
  const int place = Place(device, g_devices);
  const Return found =
      FindIndex(place < 0 ? -1 : place / static_cast<int>(kHandlesPerGpu), out);
  if (found != kSuccess) return found;
  const uint32_t rest = place % kHandlesPerGpu;
  if (rest == 0) return kSuccess;
  out->slot = rest - 1;
  if (out->slot >= out->gpu->mig_count) return kInvalidArgument;
  out->mig = &out->gpu->migs[out->slot];
  return kSuccess;
}

Return FindGpu(Device device, Target* out) {
  const Return found = Find(device, out);
  if (found != kSuccess) return found;
  return out->mig != nullptr ? kNotSupported : kSuccess;
}

Return FindMigGpu(Device device, Target* out) {
  const Return found = FindGpu(device, out);
  if (found != kSuccess) return found;
  return out->has(kHasMig) ? kSuccess : kNotSupported;
}

Return FindGpuInstance(GpuInstance instance, Target* out, uint32_t* id) {
  const int place = Place(instance, g_gpu_instances);
  const Return found = FindIndex(
      place < 0 ? -1 : place / static_cast<int>(kInstancesPerGpu), out);
  if (found != kSuccess) return found;
  *id = place % kInstancesPerGpu;
  for (uint32_t slot = 0; slot < out->gpu->mig_count; ++slot) {
    if (out->gpu->migs[slot].gpu_instance != *id) continue;
    out->slot = slot;
    out->mig = &out->gpu->migs[slot];
    return kSuccess;
  }
  return kInvalidArgument;
}

Return FindComputeInstance(ComputeInstance instance, Target* out) {
  const int place = Place(instance, g_compute_instances);
  const Return found =
      FindIndex(place < 0 ? -1 : place / static_cast<int>(kMaxMigs), out);
  if (found != kSuccess) return found;
  out->slot = place % kMaxMigs;
  if (out->slot >= out->gpu->mig_count) return kInvalidArgument;
  out->mig = &out->gpu->migs[out->slot];
  return kSuccess;
}

Return CopyText(const char* text, char* out, uint32_t size) {
  NVML_REQUIRE(out != nullptr);
  if (strlen(text) + 1 > size) return kInsufficientSize;
  memcpy(out, text, strlen(text) + 1);
  return kSuccess;
}

void FormatBusId(const GpuState& g, char (&out)[32]) {
  snprintf(out, sizeof(out), "%08X:%02X:%02X.0", g.pci_domain, g.pci_bus,
           g.pci_device);
}

Load LoadOf(const GpuState& gpu, uint32_t mig_slot) {
  Load load;
  for (const ProcessState& p : gpu.processes) {
    if (p.pid == 0 || (mig_slot != kNoMig && p.mig_slot != mig_slot)) continue;
    ++load.processes;
    load.used_bytes += p.used_bytes;
    load.sm += p.sm_percent;
    load.memory += p.memory_percent;
    load.encoder += p.encoder_percent;
    load.decoder += p.decoder_percent;
  }
  for (uint32_t* percent :
       {&load.sm, &load.memory, &load.encoder, &load.decoder})
    *percent = std::min(*percent, 100u);
  return load;
}

uint64_t NowUs() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000 + now.tv_nsec / 1000;
}

}  // namespace rondo::sim::libnvml

using namespace rondo::sim::libnvml;  // NOLINT: exported names have no
                                      // namespace

NVML_EXPORT(nvmlInit)() { return Init(); }
NVML_EXPORT(nvmlInit_v2)() { return Init(); }
NVML_EXPORT(nvmlInitWithFlags)(unsigned) { return Init(); }

NVML_EXPORT(nvmlShutdown)() {
  const Lock lock(g_mutex);
  if (g_users == 0) return kUninitialized;
  if (--g_users == 0) g_node = nullptr;
  return kSuccess;
}
