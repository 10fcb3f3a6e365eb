// SPDX-License-Identifier: Apache-2.0
//
// MIG: the kinds of GPU instance that a GPU can make, and how many more fit.

#include <stdio.h>

#include "sim/libnvml/library.h"
#include "sim/libnvml/mig_abi.h"

using namespace rondo::sim::libnvml;  // NOLINT
using rondo::sim::GpuState;
using rondo::sim::MigProfileState;

namespace {

// by: the profile's NVML constant or the driver's number for it.
const MigProfileState* FindProfile(const GpuState& g, uint32_t value,
                                   uint32_t MigProfileState::*by) {
  for (uint32_t i = 0; i < g.mig_profile_count; ++i)
    if (g.mig_profiles[i].*by == value) return &g.mig_profiles[i];
  return nullptr;
}

void Put(const MigProfileState& p, GpuInstanceProfileInfo* out) {
  *out = {
      p.id,           0,          p.slices, p.max_instances, p.multiprocessors,
      p.copy_engines, p.decoders, 0,        p.jpegs,         p.ofas,
      p.memory_mib};
}

void PutV2(const MigProfileState& p, GpuInstanceProfileInfoV2* out) {
  GpuInstanceProfileInfo info;
  Put(p, &info);
  out->id = info.id;
  out->p2p_supported = info.p2p_supported;
  out->slices = info.slices;
  out->instances = info.instances;
  out->multiprocessors = info.multiprocessors;
  out->copy_engines = info.copy_engines;
  out->decoders = info.decoders;
  out->encoders = info.encoders;
  out->jpegs = info.jpegs;
  out->ofas = info.ofas;
  out->memory_mib = info.memory_mib;
  snprintf(out->name, sizeof(out->name), "MIG %s", p.name);
}

void PutV3(const MigProfileState& p, GpuInstanceProfileInfoV3* out) {
  out->id = p.id;
  out->slices = p.slices;
  out->instances = p.max_instances;
  out->multiprocessors = p.multiprocessors;
  out->copy_engines = p.copy_engines;
  out->decoders = p.decoders;
  out->encoders = 0;
  out->jpegs = p.jpegs;
  out->ofas = p.ofas;
  out->memory_mib = p.memory_mib;
  snprintf(out->name, sizeof(out->name), "MIG %s", p.name);
  out->capabilities = 0;
}

// The V calls take either version and tell them by the first word.
Return PutVersioned(const MigProfileState& p, void* out) {
  const uint32_t version = *static_cast<const uint32_t*>(out);
  if (version == Version<GpuInstanceProfileInfoV2>(2)) {
    PutV2(p, static_cast<GpuInstanceProfileInfoV2*>(out));
    return kSuccess;
  }
  if (version == Version<GpuInstanceProfileInfoV3>(3)) {
    PutV3(p, static_cast<GpuInstanceProfileInfoV3*>(out));
    return kSuccess;
  }
  return kArgumentVersionMismatch;
}

// Memory slices that GPU instances lie on.
uint32_t UsedSlices(const GpuState& g) {
  uint32_t used = 0;
  for (uint32_t slot = 0; slot < g.mig_count; ++slot)
    used |= ((1u << g.migs[slot].size) - 1) << g.migs[slot].start;
  return used;
}

// Where an instance of the profile may begin: every multiple of its size, but
// the last slices belong to no instance of one or two compute slices.
template <typename Each>
void ForEachStart(const MigProfileState& p, Each each) {
  const uint32_t size = p.memory_slices;
  const uint32_t last = size == 1       ? 6
                        : p.slices == 2 ? 4
                        : p.slices == 4 ? 0
                                        : 8 - size;
  for (uint32_t start = 0; start <= last; start += size) each(start);
}

}  // namespace

NVML_EXPORT(nvmlDeviceGetGpuInstanceProfileInfo)
(Device device, unsigned profile, GpuInstanceProfileInfo* out) {
  NVML_FIND(FindMigGpu, device, target);
  NVML_REQUIRE(out != nullptr && profile < kProfileCount);
  const auto* const found =
      FindProfile(*target.gpu, profile, &MigProfileState::profile);
  if (found == nullptr) return kNotSupported;
  Put(*found, out);
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetGpuInstanceProfileInfoV)
(Device device, unsigned profile, void* out) {
  NVML_FIND(FindMigGpu, device, target);
  NVML_REQUIRE(out != nullptr && profile < kProfileCount);
  const auto* const found =
      FindProfile(*target.gpu, profile, &MigProfileState::profile);
  return found == nullptr ? kNotSupported : PutVersioned(*found, out);
}

NVML_EXPORT(nvmlDeviceGetGpuInstanceProfileInfoByIdV)
(Device device, unsigned id, void* out) {
  NVML_FIND(FindMigGpu, device, target);
  NVML_REQUIRE(out != nullptr);
  const auto* const found = FindProfile(*target.gpu, id, &MigProfileState::id);
  return found == nullptr ? kNotSupported : PutVersioned(*found, out);
}

NVML_EXPORT(nvmlDeviceGetGpuInstancePossiblePlacements_v2)
(Device device, unsigned id, Placement* out, unsigned* count) {
  NVML_FIND(FindMigGpu, device, target);
  NVML_REQUIRE(count != nullptr);
  const auto* const p = FindProfile(*target.gpu, id, &MigProfileState::id);
  if (p == nullptr) return kNotSupported;
  unsigned found = 0;
  ForEachStart(*p, [&](uint32_t start) {
    if (out != nullptr) out[found] = {start, p->memory_slices};
    ++found;
  });
  *count = found;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetGpuInstanceRemainingCapacity)
(Device device, unsigned id, unsigned* count) {
  NVML_FIND(FindMigGpu, device, target);
  NVML_REQUIRE(count != nullptr);
  const auto* const p = FindProfile(*target.gpu, id, &MigProfileState::id);
  if (p == nullptr) return kNotSupported;
  const uint32_t used = UsedSlices(*target.gpu);
  *count = 0;
  if (!target.mig_enabled()) return kSuccess;
  ForEachStart(*p, [&](uint32_t start) {
    *count += (used & ((1u << p->memory_slices) - 1) << start) == 0;
  });
  return kSuccess;
}
