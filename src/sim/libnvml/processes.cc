// SPDX-License-Identifier: Apache-2.0
//
// Who uses the GPU: process lists in their three binary forms, and the sampled
// utilisation of each process.

#include "sim/libnvml/library.h"

using namespace rondo::sim::libnvml;  // NOLINT
using rondo::sim::kMaxProcesses;
using rondo::sim::kNoMig;
using rondo::sim::ProcessState;
using rondo::sim::ProcessType;

namespace {

// Where nothing is measured, samples are six a second.
constexpr uint64_t kSampleUs = 1000000 / 6;

void SetInstance(const Target& t, const ProcessState& p, uint32_t* gpu_instance,
                 uint32_t* compute_instance) {
  const uint32_t slot = p.mig_slot;
  const bool mig = slot != kNoMig && slot < t.gpu->mig_count;
  *gpu_instance = mig ? t.gpu->migs[slot].gpu_instance : kInvalidInstance;
  *compute_instance =
      mig ? t.gpu->migs[slot].compute_instance : kInvalidInstance;
}

void Put(const Target&, const ProcessState& p, ProcessV1* out) {
  out->pid = p.pid;
  out->used = p.used_bytes;
}
void Put(const Target& t, const ProcessState& p, ProcessV2* out) {
  out->pid = p.pid;
  out->used = p.used_bytes;
  SetInstance(t, p, &out->gpu_instance, &out->compute_instance);
}
void Put(const Target& t, const ProcessState& p, ProcessDetail* out) {
  out->pid = p.pid;
  out->used = p.used_bytes;
  SetInstance(t, p, &out->gpu_instance, &out->compute_instance);
  out->protected_used = kNotAvailable;  // confidential computing is off
}

// Calls each for the processes of the device; a MIG device has its own, a GPU
// those of all its MIG devices.
template <typename Each>
uint32_t ForEach(const Target& t, Each each) {
  uint32_t count = 0;
  for (const ProcessState& p : t.gpu->processes) {
    if (p.pid == 0) continue;
    if (t.mig != nullptr && p.mig_slot != t.slot) continue;
    count += each(p) ? 1 : 0;
  }
  return count;
}

// The rule of all NVML lists: count says how many fit, and comes back as how
// many there are; too few is INSUFFICIENT_SIZE. Processes may come and go
// between two passes, so the second one counts again.
template <typename T>
Return List(Device device, ProcessType type, unsigned* count, T* out) {
  NVML_FIND(Find, device, target);
  NVML_REQUIRE(count != nullptr);
  const uint32_t room = out == nullptr ? 0 : *count;
  uint32_t used = 0;
  const uint32_t found = ForEach(target, [&](const ProcessState& p) {
    if (p.type != static_cast<uint32_t>(type)) return false;
    if (used < room) Put(target, p, &out[used++]);
    return true;
  });
  *count = found;
  return found > room ? kInsufficientSize : kSuccess;
}

// To be read before the shares: they are written before it.
uint64_t LastSampleUs(const Target& t) {
  const uint64_t measured_us = t.gpu->measured_us;
  return measured_us != 0 ? measured_us : NowUs() / kSampleUs * kSampleUs;
}

bool HasSample(const ProcessState& p) {
  return (p.sm_percent | p.memory_percent | p.encoder_percent |
          p.decoder_percent) != 0;
}

}  // namespace

#define PROCESS_LISTS(name, type)                                          \
  NVML_EXPORT(name)(Device device, unsigned* count, ProcessV1* out) {      \
    return List(device, ProcessType::type, count, out);                    \
  }                                                                        \
  NVML_EXPORT(name##_v2)(Device device, unsigned* count, ProcessV2* out) { \
    return List(device, ProcessType::type, count, out);                    \
  }                                                                        \
  NVML_EXPORT(name##_v3)(Device device, unsigned* count, ProcessV2* out) { \
    return List(device, ProcessType::type, count, out);                    \
  }
PROCESS_LISTS(nvmlDeviceGetComputeRunningProcesses, kCompute)
PROCESS_LISTS(nvmlDeviceGetGraphicsRunningProcesses, kGraphics)
PROCESS_LISTS(nvmlDeviceGetMPSComputeRunningProcesses, kMps)
#undef PROCESS_LISTS

// mode: a ProcessType, or 3 for all.
NVML_EXPORT(nvmlDeviceGetRunningProcessDetailList)
(Device device, ProcessDetailList* list) {
  NVML_FIND(Find, device, target);
  NVML_REQUIRE(list != nullptr && list->mode <= 3);
  if (list->version != Version<ProcessDetailList>(1))
    return kArgumentVersionMismatch;
  const uint32_t room = list->processes == nullptr ? 0 : list->count;
  uint32_t used = 0;
  list->count = ForEach(target, [&](const ProcessState& p) {
    if (list->mode != 3 && p.type != list->mode) return false;
    if (used < room) Put(target, p, &list->processes[used++]);
    return true;
  });
  return list->count > room ? kInsufficientSize : kSuccess;
}

// Only processes that used the GPU have samples; none newer than asked for is
// NOT_FOUND, which is normal on an idle GPU.
NVML_EXPORT(nvmlDeviceGetProcessUtilization)
(Device device, ProcessSample* out, unsigned* count,
 unsigned long long last_seen_us) {
  NVML_FIND(FindGpu, device, target);
  if (target.mig_enabled()) return kNotSupported;
  NVML_REQUIRE(count != nullptr);
  if (out == nullptr) {
    *count = kMaxProcesses;
    return kInsufficientSize;
  }
  const uint64_t now_us = LastSampleUs(target);
  const uint32_t room = *count;
  uint32_t used = 0;
  if (now_us > last_seen_us) {
    ForEach(target, [&](const ProcessState& p) {
      if (!HasSample(p) || used == room) return false;
      out[used++] = {p.pid,
                     0,
                     now_us,
                     p.sm_percent,
                     p.memory_percent,
                     p.encoder_percent,
                     p.decoder_percent};
      return true;
    });
  }
  *count = used;
  return used == 0 ? kNotFound : kSuccess;
}

NVML_EXPORT(nvmlDeviceGetProcessesUtilizationInfo)
(Device device, ProcessesUtilizationInfo* info) {
  NVML_FIND(FindGpu, device, target);
  if (target.mig_enabled()) return kNotSupported;
  NVML_REQUIRE(info != nullptr);
  if (info->version != Version<ProcessesUtilizationInfo>(1))
    return kArgumentVersionMismatch;
  if (info->processes == nullptr) {
    info->count = kMaxProcesses;
    return kInsufficientSize;
  }
  const uint64_t now_us = LastSampleUs(target);
  const uint32_t room = info->count;
  uint32_t used = 0;
  if (now_us > info->last_seen_us) {
    ForEach(target, [&](const ProcessState& p) {
      if (!HasSample(p) || used == room) return false;
      info->processes[used++] = {now_us,
                                 p.pid,
                                 p.sm_percent,
                                 p.memory_percent,
                                 p.encoder_percent,
                                 p.decoder_percent,
                                 0,
                                 0,
                                 0};
      return true;
    });
  }
  info->count = used;
  return used == 0 ? kNotFound : kSuccess;
}
