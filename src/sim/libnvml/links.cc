// SPDX-License-Identifier: Apache-2.0
//
// How GPUs are joined: NVLink, the PCI tree, NUMA, the NVLink fabric.

#include <stdio.h>
#include <string.h>

#include "sim/libnvml/library.h"

using namespace rondo::sim::libnvml;  // NOLINT
using rondo::sim::GpuState;
using rondo::sim::kHasFabric;
using rondo::sim::LinkPeer;
using rondo::sim::LinkState;

namespace {

Return FindLink(Device device, unsigned link, Target* target,
                const LinkState** out) {
  const Return found = FindGpu(device, target);
  if (found != kSuccess) return found;
  if (target->gpu->nvlink_version == 0) return kNotSupported;
  if (link >= rondo::sim::kMaxLinks) return kInvalidArgument;
  *out = &target->gpu->links[link];
  return kSuccess;
}

#define NVML_FIND_LINK(device, link, target, state)                 \
  Target target;                                                    \
  const LinkState* state = nullptr;                                 \
  if (const Return found = FindLink(device, link, &target, &state); \
      found != kSuccess)                                            \
  return found

// Both GPUs of a pair; each may be a MIG device, which is where its GPU is.
Return FindPair(Device a, Device b, Target* first, Target* second) {
  const Return found = Find(a, first);
  return found != kSuccess ? found : Find(b, second);
}

TopologyLevel Level(const Target& a, const Target& b) {
  const GpuState &x = *a.gpu, &y = *b.gpu;
  if (a.index == b.index) return kTopologyInternal;
  if (x.pci_switch != 0 && x.pci_switch == y.pci_switch) return kTopologySingle;
  if (x.host_bridge == y.host_bridge)
    return x.pci_switch != 0 && y.pci_switch != 0 ? kTopologyMultiple
                                                  : kTopologyHostBridge;
  return x.numa == y.numa ? kTopologyNode : kTopologySystem;
}

int LinksTo(const GpuState& from, uint32_t to) {
  int count = 0;
  for (const LinkState& link : from.links)
    count += link.peer == LinkPeer::kSwitch ||
             (link.peer == LinkPeer::kGpu && link.index == to);
  return count;
}

// A word of CPU bits; the simulated node has no say in which CPUs this machine
// has, so every CPU is near.
Return PutAffinity(Device device, unsigned size, unsigned long* words) {
  NVML_FIND(Find, device, target);
  NVML_REQUIRE(words != nullptr && size != 0);
  for (unsigned i = 0; i < size; ++i) words[i] = i == 0 ? ~0ul : 0;
  return kSuccess;
}

void PutFabric(FabricInfo* out) {
  *out = {};
  out->status = kSuccess;
  out->state = 3;  // registration completed
}

}  // namespace

NVML_EXPORT(nvmlDeviceGetNvLinkState)
(Device device, unsigned link, unsigned* active) {
  NVML_FIND_LINK(device, link, target, state);
  NVML_REQUIRE(active != nullptr);
  *active = state->peer != LinkPeer::kNone;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetNvLinkVersion)
(Device device, unsigned link, unsigned* version) {
  NVML_FIND_LINK(device, link, target, state);
  NVML_REQUIRE(version != nullptr);
  *version = target.gpu->nvlink_version;
  return kSuccess;
}

// P2P, system memory and atomics work; SLI and others do not.
NVML_EXPORT(nvmlDeviceGetNvLinkCapability)
(Device device, unsigned link, unsigned capability, unsigned* result) {
  NVML_FIND_LINK(device, link, target, state);
  NVML_REQUIRE(result != nullptr && capability < 6);
  *result = capability != 4 && state->peer != LinkPeer::kNone;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetNvLinkRemoteDeviceType)
(Device device, unsigned link, unsigned* type) {
  NVML_FIND_LINK(device, link, target, state);
  NVML_REQUIRE(type != nullptr);
  *type = state->peer == LinkPeer::kGpu      ? 0
          : state->peer == LinkPeer::kSwitch ? 2
                                             : 0xFF;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetNvLinkErrorCounter)
(Device device, unsigned link, unsigned counter, unsigned long long* value) {
  NVML_FIND_LINK(device, link, target, state);
  NVML_REQUIRE(value != nullptr && counter < 5);
  *value = 0;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetNvLinkRemotePciInfo_v2)
(Device device, unsigned link, PciInfoV3* pci) {
  NVML_FIND_LINK(device, link, target, state);
  NVML_REQUIRE(pci != nullptr);
  switch (state->peer) {
    case LinkPeer::kNone:
      return kNotSupported;
    case LinkPeer::kGpu: {
      const GpuState& peer = target.node->gpus[state->index];
      *pci = {};
      pci->domain = peer.pci_domain;
      pci->bus = peer.pci_bus;
      pci->device = peer.pci_device;
      pci->device_id = peer.device_id;
      pci->subsystem_id = peer.subsystem_id;
      break;
    }
    case LinkPeer::kSwitch:
      *pci = {};
      pci->bus = 0xE0 + state->index;
      pci->device_id = 0x22A310DE;  // an NVSwitch
      break;
  }
  snprintf(pci->bus_id, sizeof(pci->bus_id), "%08X:%02X:%02X.0", pci->domain,
           pci->bus, pci->device);
  memcpy(pci->bus_id_legacy, pci->bus_id + 4, 12);
  return kSuccess;
}
NVML_EXPORT(nvmlDeviceGetNvLinkRemotePciInfo)
(Device device, unsigned link, PciInfoV3* pci) {
  PciInfoV3 whole;
  const Return got = nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &whole);
  if (got != kSuccess) return got;
  NVML_REQUIRE(pci != nullptr);
  memcpy(pci, &whole, offsetof(PciInfoV3, bus_id));
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetTopologyCommonAncestor)
(Device a, Device b, unsigned* level) {
  Target first, second;
  const Return found = FindPair(a, b, &first, &second);
  if (found != kSuccess) return found;
  NVML_REQUIRE(level != nullptr);
  *level = Level(first, second);
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetTopologyNearestGpus)
(Device device, unsigned level, unsigned* count, Device* out) {
  NVML_FIND(FindGpu, device, target);
  NVML_REQUIRE(count != nullptr);
  const unsigned room = out == nullptr ? 0 : *count;
  unsigned found = 0;
  for (uint32_t i = 0; i < target.node->gpu_count; ++i) {
    Target other;
    if (i == target.index || Find(DeviceHandle(i), &other) != kSuccess ||
        Level(target, other) > level)
      continue;
    if (found < room) out[found] = DeviceHandle(i);
    ++found;
  }
  *count = found;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceOnSameBoard)(Device a, Device b, int* same) {
  Target first, second;
  const Return found = FindPair(a, b, &first, &second);
  if (found != kSuccess) return found;
  NVML_REQUIRE(same != nullptr);
  *same = first.index == second.index;
  return kSuccess;
}

// index: 0 read, 1 write, 2 NVLink, 3 atomics, 4 PCI. 0 = fine, 5 = no.
NVML_EXPORT(nvmlDeviceGetP2PStatus)
(Device a, Device b, unsigned index, unsigned* status) {
  Target first, second;
  const Return found = FindPair(a, b, &first, &second);
  if (found != kSuccess) return found;
  NVML_REQUIRE(status != nullptr && index < 5 && first.index != second.index);
  const bool linked = LinksTo(*first.gpu, second.index) != 0;
  const bool near = Level(first, second) != kTopologySystem;
  const bool fine = index == 2 || index == 3 ? linked : linked || near;
  *status = fine ? 0 : 5;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetNumaNodeId)(Device device, unsigned* node) {
  NVML_FIND(FindGpu, device, target);
  // The call is for GPUs whose memory is a NUMA node of its own.
  NVML_REQUIRE(node != nullptr);
  return kNotSupported;
}

NVML_EXPORT(nvmlDeviceGetMemoryAffinity)
(Device device, unsigned size, unsigned long* nodes, unsigned scope) {
  NVML_FIND(Find, device, target);
  NVML_REQUIRE(nodes != nullptr && size != 0 && scope < 2);
  if (target.gpu->numa < 0) return kNotSupported;
  for (unsigned i = 0; i < size; ++i) nodes[i] = 0;
  nodes[0] = 1ul << target.gpu->numa;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetCpuAffinity)
(Device device, unsigned size, unsigned long* cpus) {
  return PutAffinity(device, size, cpus);
}
NVML_EXPORT(nvmlDeviceGetCpuAffinityWithinScope)
(Device device, unsigned size, unsigned long* cpus, unsigned scope) {
  NVML_REQUIRE(scope < 2);
  return PutAffinity(device, size, cpus);
}

NVML_EXPORT(nvmlDeviceGetGpuFabricInfo)(Device device, FabricInfo* out) {
  NVML_FIND(FindGpu, device, target);
  if (!target.has(kHasFabric)) return kNotSupported;
  NVML_REQUIRE(out != nullptr);
  PutFabric(out);
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetGpuFabricInfoV)(Device device, FabricInfoV3* out) {
  NVML_FIND(FindGpu, device, target);
  if (!target.has(kHasFabric)) return kNotSupported;
  NVML_REQUIRE(out != nullptr);
  const bool v3 = out->v2.version == Version<FabricInfoV3>(3);
  if (!v3 && out->v2.version != Version<FabricInfoV2>(2))
    return kArgumentVersionMismatch;
  PutFabric(&out->v2.info);
  out->v2.health_mask = 0;
  if (v3) out->health_summary = 1;  // healthy
  return kSuccess;
}
