// SPDX-License-Identifier: Apache-2.0
//
// MIG: the devices that exist, and the GPU and compute instances behind them.
// Layouts are fixed when the node is staged, so the calls that create or
// destroy are not supported.

#include <stdio.h>

#include "sim/libnvml/library.h"
#include "sim/libnvml/mig_abi.h"

using namespace rondo::sim::libnvml;  // NOLINT
using rondo::sim::GpuState;
using rondo::sim::kHasMig;
using rondo::sim::kMigEnabled;
using rondo::sim::MigProfileState;
using rondo::sim::MigState;

namespace {

Return FindMig(Device device, Target* out) {
  const Return found = Find(device, out);
  if (found != kSuccess) return found;
  return out->mig == nullptr ? kInvalidArgument : kSuccess;
}

// NVML_COMPUTE_INSTANCE_PROFILE_* of so many slices; the driver's own numbers
// for them are the same here.
uint32_t ComputeProfile(uint32_t slices) {
  return slices == 7 ? 4 : slices == 6 ? 6 : slices - 1;
}

Return ComputeProfileInfo(const Target& t, unsigned profile, unsigned engine,
                          ComputeInstanceProfileInfo* out) {
  NVML_REQUIRE(out != nullptr && engine == 0 && profile < 9);
  const MigProfileState& gi = t.gpu->mig_profiles[t.mig->profile];
  for (uint32_t slices = 1; slices <= gi.slices; ++slices) {
    if (ComputeProfile(slices) != profile || slices == 5) continue;
    *out = {profile,
            slices,
            gi.slices / slices,
            gi.multiprocessors * slices / gi.slices,
            gi.copy_engines,
            gi.decoders,
            0,
            gi.jpegs,
            gi.ofas};
    return kSuccess;
  }
  return kNotSupported;
}

// The first of the devices in a GPU instance stands for it.
bool IsFirstOfInstance(const GpuState& g, uint32_t slot) {
  for (uint32_t i = 0; i < slot; ++i)
    if (g.migs[i].gpu_instance == g.migs[slot].gpu_instance) return false;
  return true;
}

}  // namespace

NVML_EXPORT(nvmlDeviceGetMigMode)
(Device device, unsigned* current, unsigned* pending) {
  NVML_FIND(FindMigGpu, device, target);
  NVML_REQUIRE(current != nullptr && pending != nullptr);
  *current = *pending = target.mig_enabled();
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetMaxMigDeviceCount)(Device device, unsigned* count) {
  NVML_FIND(FindGpu, device, target);
  NVML_REQUIRE(count != nullptr);
  *count = target.has(kHasMig) ? target.gpu->max_migs : 0;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetMigDeviceHandleByIndex)
(Device device, unsigned index, Device* mig) {
  NVML_FIND(FindMigGpu, device, target);
  NVML_REQUIRE(mig != nullptr && index < target.gpu->max_migs);
  if (index >= target.gpu->mig_count) return kNotFound;
  *mig = MigHandle(target.index, index);
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceIsMigDeviceHandle)(Device device, unsigned* is_mig) {
  NVML_FIND(Find, device, target);
  NVML_REQUIRE(is_mig != nullptr);
  *is_mig = target.mig != nullptr;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetDeviceHandleFromMigDeviceHandle)
(Device device, Device* parent) {
  NVML_FIND(FindMig, device, target);
  NVML_REQUIRE(parent != nullptr);
  *parent = DeviceHandle(target.index);
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetGpuInstanceId)(Device device, unsigned* id) {
  NVML_FIND(FindMig, device, target);
  NVML_REQUIRE(id != nullptr);
  *id = target.mig->gpu_instance;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetComputeInstanceId)(Device device, unsigned* id) {
  NVML_FIND(FindMig, device, target);
  NVML_REQUIRE(id != nullptr);
  *id = target.mig->compute_instance;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetAttributes_v2)(Device device, Attributes* out) {
  NVML_FIND(FindMig, device, target);
  NVML_REQUIRE(out != nullptr);
  const MigState& mig = *target.mig;
  const MigProfileState& p = target.gpu->mig_profiles[mig.profile];
  *out = {mig.multiprocessors,
          p.copy_engines,
          p.decoders,
          0,
          p.jpegs,
          p.ofas,
          p.slices,
          mig.compute_slices,
          p.memory_mib};
  return kSuccess;
}
NVML_EXPORT(nvmlDeviceGetAttributes)(Device device, Attributes* out) {
  return nvmlDeviceGetAttributes_v2(device, out);
}

NVML_EXPORT(nvmlDeviceGetGpuInstances)
(Device device, unsigned profile_id, GpuInstance* out, unsigned* count) {
  NVML_FIND(FindMigGpu, device, target);
  NVML_REQUIRE(out != nullptr && count != nullptr);
  *count = 0;
  const GpuState& g = *target.gpu;
  for (uint32_t slot = 0; slot < g.mig_count; ++slot)
    if (g.mig_profiles[g.migs[slot].profile].id == profile_id &&
        IsFirstOfInstance(g, slot))
      out[(*count)++] =
          GpuInstanceHandle(target.index, g.migs[slot].gpu_instance);
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetGpuInstanceById)
(Device device, unsigned id, GpuInstance* out) {
  NVML_FIND(FindMigGpu, device, target);
  NVML_REQUIRE(out != nullptr);
  for (uint32_t slot = 0; slot < target.gpu->mig_count; ++slot) {
    if (target.gpu->migs[slot].gpu_instance != id) continue;
    *out = GpuInstanceHandle(target.index, id);
    return kSuccess;
  }
  return kNotFound;
}

NVML_EXPORT(nvmlGpuInstanceGetInfo)
(GpuInstance instance, GpuInstanceInfo* out) {
  Target target;
  uint32_t id = 0;
  const Return found = FindGpuInstance(instance, &target, &id);
  if (found != kSuccess) return found;
  NVML_REQUIRE(out != nullptr);
  *out = {DeviceHandle(target.index),
          id,
          target.gpu->mig_profiles[target.mig->profile].id,
          {target.mig->start, target.mig->size}};
  return kSuccess;
}

NVML_EXPORT(nvmlGpuInstanceGetComputeInstanceProfileInfo)
(GpuInstance instance, unsigned profile, unsigned engine,
 ComputeInstanceProfileInfo* out) {
  Target target;
  uint32_t id = 0;
  const Return found = FindGpuInstance(instance, &target, &id);
  if (found != kSuccess) return found;
  return ComputeProfileInfo(target, profile, engine, out);
}

NVML_EXPORT(nvmlGpuInstanceGetComputeInstanceProfileInfoV)
(GpuInstance instance, unsigned profile, unsigned engine,
 ComputeInstanceProfileInfoV2* out) {
  Target target;
  uint32_t id = 0;
  const Return found = FindGpuInstance(instance, &target, &id);
  if (found != kSuccess) return found;
  NVML_REQUIRE(out != nullptr);
  if (out->version != Version<ComputeInstanceProfileInfoV2>(2))
    return kArgumentVersionMismatch;
  const Return got = ComputeProfileInfo(target, profile, engine, &out->info);
  if (got != kSuccess) return got;
  snprintf(out->name, sizeof(out->name), "MIG %uc.%s", out->info.slices,
           target.gpu->mig_profiles[target.mig->profile].name);
  return kSuccess;
}

NVML_EXPORT(nvmlGpuInstanceGetComputeInstances)
(GpuInstance instance, unsigned profile_id, ComputeInstance* out,
 unsigned* count) {
  Target target;
  uint32_t id = 0;
  const Return found = FindGpuInstance(instance, &target, &id);
  if (found != kSuccess) return found;
  NVML_REQUIRE(out != nullptr && count != nullptr);
  *count = 0;
  for (uint32_t slot = 0; slot < target.gpu->mig_count; ++slot) {
    const MigState& mig = target.gpu->migs[slot];
    if (mig.gpu_instance == id &&
        ComputeProfile(mig.compute_slices) == profile_id)
      out[(*count)++] = ComputeInstanceHandle(target.index, slot);
  }
  return kSuccess;
}

NVML_EXPORT(nvmlGpuInstanceGetComputeInstanceById)
(GpuInstance instance, unsigned compute_id, ComputeInstance* out) {
  Target target;
  uint32_t id = 0;
  const Return found = FindGpuInstance(instance, &target, &id);
  if (found != kSuccess) return found;
  NVML_REQUIRE(out != nullptr);
  for (uint32_t slot = 0; slot < target.gpu->mig_count; ++slot) {
    const MigState& mig = target.gpu->migs[slot];
    if (mig.gpu_instance != id || mig.compute_instance != compute_id) continue;
    *out = ComputeInstanceHandle(target.index, slot);
    return kSuccess;
  }
  return kNotFound;
}

NVML_EXPORT(nvmlComputeInstanceGetInfo_v2)
(ComputeInstance instance, ComputeInstanceInfo* out) {
  NVML_FIND(FindComputeInstance, instance, target);
  NVML_REQUIRE(out != nullptr);
  const MigState& mig = *target.mig;
  *out = {DeviceHandle(target.index),
          GpuInstanceHandle(target.index, mig.gpu_instance),
          mig.compute_instance,
          ComputeProfile(mig.compute_slices),
          {mig.compute_instance * mig.compute_slices, mig.compute_slices}};
  return kSuccess;
}
NVML_EXPORT(nvmlComputeInstanceGetInfo)
(ComputeInstance instance, ComputeInstanceInfo* out) {
  return nvmlComputeInstanceGetInfo_v2(instance, out);
}
