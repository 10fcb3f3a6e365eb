// SPDX-License-Identifier: Apache-2.0
//
// Which GPUs there are and what they are: handles, names, ids, PCI.

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sim/libnvml/library.h"

using namespace rondo::sim::libnvml;  // NOLINT
using rondo::sim::GpuState;
using rondo::sim::NodeState;

namespace {

// A lost GPU still counts and still has its place.
Return HandleOf(uint32_t index, Device* device) {
  const Device handle = DeviceHandle(index);
  NVML_FIND(Find, handle, target);
  *device = handle;
  return kSuccess;
}

template <typename Match>
Return HandleWhere(Device* device, Match match) {
  const NodeState* const node = State();
  if (node == nullptr) return kUninitialized;
  NVML_REQUIRE(device != nullptr);
  for (uint32_t i = 0; i < node->gpu_count; ++i)
    if (match(node->gpus[i])) return HandleOf(i, device);
  return kNotFound;
}

// The domain is written with four or eight digits, in either case.
bool SameBusId(const GpuState& g, const char* text) {
  unsigned domain, bus, device, function = 0;
  if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &device, &function) < 3)
    return false;
  return domain == g.pci_domain && bus == g.pci_bus && device == g.pci_device &&
         function == 0;
}

template <typename T>
Return Put(Device device, T* out, uint32_t GpuState::*member) {
  NVML_FIND(Find, device, target);
  NVML_REQUIRE(out != nullptr);
  *out = static_cast<T>(target.gpu->*member);
  return kSuccess;
}

template <typename T>
void PutPci(const GpuState& g, T* pci) {
  char bus_id[32];
  FormatBusId(g, bus_id);
  // The older, shorter form has a domain of four digits.
  memcpy(pci->bus_id_legacy, bus_id + 4, sizeof(pci->bus_id_legacy) - 1);
  pci->bus_id_legacy[sizeof(pci->bus_id_legacy) - 1] = '\0';
  pci->domain = g.pci_domain;
  pci->bus = g.pci_bus;
  pci->device = g.pci_device;
  pci->device_id = g.device_id;
  pci->subsystem_id = g.subsystem_id;
}

}  // namespace

NVML_EXPORT(nvmlDeviceGetCount_v2)(unsigned* count) {
  const NodeState* const node = State();
  if (node == nullptr) return kUninitialized;
  NVML_REQUIRE(count != nullptr);
  *count = node->gpu_count;
  return kSuccess;
}
NVML_EXPORT(nvmlDeviceGetCount)(unsigned* count) {
  return nvmlDeviceGetCount_v2(count);
}

NVML_EXPORT(nvmlDeviceGetHandleByIndex_v2)(unsigned index, Device* device) {
  const NodeState* const node = State();
  if (node == nullptr) return kUninitialized;
  NVML_REQUIRE(device != nullptr && index < node->gpu_count);
  return HandleOf(index, device);
}
NVML_EXPORT(nvmlDeviceGetHandleByIndex)(unsigned index, Device* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

NVML_EXPORT(nvmlDeviceGetHandleByUUID)(const char* uuid, Device* device) {
  const NodeState* const node = State();
  if (node == nullptr) return kUninitialized;
  NVML_REQUIRE(uuid != nullptr && device != nullptr);
  for (uint32_t i = 0; i < node->gpu_count; ++i) {
    const GpuState& g = node->gpus[i];
    for (uint32_t slot = 0; slot < g.mig_count; ++slot) {
      if (strcmp(g.migs[slot].uuid, uuid) != 0) continue;
      const Device handle = MigHandle(i, slot);
      NVML_FIND(Find, handle, target);
      *device = handle;
      return kSuccess;
    }
  }
  return HandleWhere(
      device, [&](const GpuState& g) { return strcmp(g.uuid, uuid) == 0; });
}

// { version, type, value }: type 1 is the text, 2 its 16 bytes.
NVML_EXPORT(nvmlDeviceGetHandleByUUIDV)(const UuidValue* uuid, Device* device) {
  NVML_REQUIRE(uuid != nullptr);
  if (uuid->version != Version<UuidValue>(1)) return kArgumentVersionMismatch;
  if (uuid->type == 1) return nvmlDeviceGetHandleByUUID(uuid->text, device);
  NVML_REQUIRE(uuid->type == 2);
  char text[48] = "GPU-";
  int at = 4;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text[at++] = '-';
    at += snprintf(text + at, sizeof(text) - at, "%02x",
                   static_cast<unsigned char>(uuid->text[i]));
  }
  const Return gpu = nvmlDeviceGetHandleByUUID(text, device);
  if (gpu != kNotFound) return gpu;
  memcpy(text, "MIG-", 4);
  return nvmlDeviceGetHandleByUUID(text, device);
}

NVML_EXPORT(nvmlDeviceGetHandleByPciBusId_v2)(const char* id, Device* device) {
  NVML_REQUIRE(id != nullptr);
  return HandleWhere(device,
                     [&](const GpuState& g) { return SameBusId(g, id); });
}
NVML_EXPORT(nvmlDeviceGetHandleByPciBusId)(const char* id, Device* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

NVML_EXPORT(nvmlDeviceGetHandleBySerial)(const char* serial, Device* device) {
  NVML_REQUIRE(serial != nullptr);
  return HandleWhere(
      device, [&](const GpuState& g) { return strcmp(g.serial, serial) == 0; });
}

NVML_EXPORT(nvmlDeviceGetIndex)(Device device, unsigned* index) {
  NVML_FIND(Find, device, target);
  NVML_REQUIRE(index != nullptr);
  *index = target.mig != nullptr ? target.slot : target.index;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetName)(Device device, char* name, unsigned length) {
  NVML_FIND(Find, device, target);
  if (target.mig == nullptr) return CopyText(target.gpu->name, name, length);
  const auto& profile = target.gpu->mig_profiles[target.mig->profile];
  char text[160];
  if (target.mig->compute_slices == profile.slices)
    snprintf(text, sizeof(text), "%s MIG %s", target.gpu->name, profile.name);
  else
    snprintf(text, sizeof(text), "%s MIG %uc.%s", target.gpu->name,
             target.mig->compute_slices, profile.name);
  return CopyText(text, name, length);
}

NVML_EXPORT(nvmlDeviceGetUUID)(Device device, char* uuid, unsigned length) {
  NVML_FIND(Find, device, target);
  return CopyText(target.mig ? target.mig->uuid : target.gpu->uuid, uuid,
                  length);
}

NVML_EXPORT(nvmlDeviceGetMinorNumber)(Device device, unsigned* minor) {
  NVML_FIND(FindGpu, device, target);
  return Put(device, minor, &GpuState::minor);
}

NVML_EXPORT(nvmlDeviceGetSerial)(Device device, char* serial, unsigned length) {
  NVML_FIND(FindGpu, device, target);
  return CopyText(target.gpu->serial, serial, length);
}

NVML_EXPORT(nvmlDeviceGetVbiosVersion)
(Device device, char* text, unsigned length) {
  NVML_FIND(FindGpu, device, target);
  return CopyText(target.gpu->vbios, text, length);
}

NVML_EXPORT(nvmlDeviceGetBoardPartNumber)
(Device device, char* text, unsigned length) {
  NVML_FIND(FindGpu, device, target);
  return CopyText(target.gpu->part_number, text, length);
}

NVML_EXPORT(nvmlDeviceGetBrand)(Device device, unsigned* brand) {
  return Put(device, brand, &GpuState::brand);
}

NVML_EXPORT(nvmlDeviceGetArchitecture)(Device device, unsigned* architecture) {
  return Put(device, architecture, &GpuState::architecture);
}

NVML_EXPORT(nvmlDeviceGetCudaComputeCapability)
(Device device, int* major, int* minor) {
  const Return put = Put(device, major, &GpuState::compute_major);
  return put != kSuccess ? put : Put(device, minor, &GpuState::compute_minor);
}

NVML_EXPORT(nvmlDeviceGetNumGpuCores)(Device device, unsigned* cores) {
  return Put(device, cores, &GpuState::cores);
}

NVML_EXPORT(nvmlDeviceGetMemoryBusWidth)(Device device, unsigned* width) {
  return Put(device, width, &GpuState::bus_width);
}

NVML_EXPORT(nvmlDeviceGetBoardId)(Device device, unsigned* id) {
  NVML_FIND(FindGpu, device, target);
  NVML_REQUIRE(id != nullptr);
  *id = target.gpu->pci_bus << 8;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetMultiGpuBoard)(Device device, unsigned* multi) {
  NVML_FIND(FindGpu, device, target);
  NVML_REQUIRE(multi != nullptr);
  *multi = 0;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetPciInfo_v3)(Device device, PciInfoV3* pci) {
  NVML_FIND(Find, device, target);
  NVML_REQUIRE(pci != nullptr);
  PutPci(*target.gpu, pci);
  FormatBusId(*target.gpu, pci->bus_id);
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetPciInfo_v2)(Device device, PciInfoV2* pci) {
  NVML_FIND(Find, device, target);
  NVML_REQUIRE(pci != nullptr);
  PutPci(*target.gpu, pci);
  return kSuccess;
}
NVML_EXPORT(nvmlDeviceGetPciInfo)(Device device, PciInfoV2* pci) {
  return nvmlDeviceGetPciInfo_v2(device, pci);
}

NVML_EXPORT(nvmlDeviceGetPciInfoExt)(Device device, PciInfoExt* pci) {
  NVML_FIND(Find, device, target);
  NVML_REQUIRE(pci != nullptr);
  if (pci->version != Version<PciInfoExt>(1)) return kArgumentVersionMismatch;
  const GpuState& g = *target.gpu;
  pci->domain = g.pci_domain;
  pci->bus = g.pci_bus;
  pci->device = g.pci_device;
  pci->device_id = g.device_id;
  pci->subsystem_id = g.subsystem_id;
  pci->base_class = 3;  // display controller
  pci->sub_class = 2;   // 3D
  FormatBusId(g, pci->bus_id);
  return kSuccess;
}
