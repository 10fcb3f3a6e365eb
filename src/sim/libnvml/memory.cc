// SPDX-License-Identifier: Apache-2.0
//
// Memory in use, and what is wrong with it: ECC, retired pages, remapped rows.

#include <algorithm>

#include "sim/libnvml/library.h"

using namespace rondo::sim::libnvml;  // NOLINT
using rondo::sim::kHasEcc;
using rondo::sim::kHasRowRemap;
using rondo::sim::kNoMig;

namespace {

struct Amounts {
  uint64_t total, reserved, used;  // used: by processes
};

// A MIG device owns its slice outright: what the driver reserves is taken off
// before the slice is made.
Amounts AmountsOf(const Target& t) {
  constexpr uint64_t kMiB = 1 << 20;
  Amounts a{};
  if (t.mig != nullptr) {
    a.total = t.gpu->mig_profiles[t.mig->profile].memory_mib * kMiB;
    // Devices that share a GPU instance share its memory.
    for (uint32_t slot = 0; slot < t.gpu->mig_count; ++slot)
      if (t.gpu->migs[slot].gpu_instance == t.mig->gpu_instance)
        a.used += LoadOf(*t.gpu, slot).used_bytes;
  } else {
    a.total = t.gpu->memory_mib * kMiB;
    a.reserved = t.gpu->reserved_mib * kMiB;
    a.used = LoadOf(*t.gpu).used_bytes;
  }
  a.used = std::min(a.used, a.total - a.reserved);
  return a;
}

Return NeedEcc(Device device, Target* target) {
  const Return found = FindGpu(device, target);
  if (found != kSuccess) return found;
  return target->has(kHasEcc) ? kSuccess : kNotSupported;
}

// type: 0 corrected, 1 uncorrected. counter: 0 since the reset, 1 ever.
uint64_t EccCount(const Target& t, unsigned type, unsigned counter) {
  const auto& g = *t.gpu;
  if (type == 0) return counter == 0 ? g.ecc_corrected : g.ecc_corrected_ever;
  return counter == 0 ? g.ecc_uncorrected : g.ecc_uncorrected_ever;
}

}  // namespace

NVML_EXPORT(nvmlDeviceGetMemoryInfo)(Device device, Memory* out) {
  NVML_FIND(Find, device, target);
  NVML_REQUIRE(out != nullptr);
  const Amounts a = AmountsOf(target);
  *out = {a.total, a.total - a.reserved - a.used, a.reserved + a.used};
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetMemoryInfo_v2)(Device device, MemoryV2* out) {
  NVML_FIND(Find, device, target);
  NVML_REQUIRE(out != nullptr);
  if (out->version != Version<MemoryV2>(2)) return kArgumentVersionMismatch;
  const Amounts a = AmountsOf(target);
  out->total = a.total;
  out->reserved = a.reserved;
  out->used = a.used;
  out->free = a.total - a.reserved - a.used;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetBAR1MemoryInfo)(Device device, Bar1Memory* out) {
  NVML_FIND(Find, device, target);
  NVML_REQUIRE(out != nullptr);
  const uint64_t total = static_cast<uint64_t>(target.gpu->bar1_mib) << 20;
  const uint64_t used = std::min<uint64_t>(total, 1 << 20);
  *out = {total, total - used, used};
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetEccMode)
(Device device, unsigned* current, unsigned* pending) {
  NVML_FIND(NeedEcc, device, target);
  NVML_REQUIRE(current != nullptr && pending != nullptr);
  *current = *pending = 1;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetDefaultEccMode)(Device device, unsigned* mode) {
  NVML_FIND(NeedEcc, device, target);
  NVML_REQUIRE(mode != nullptr);
  *mode = 1;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetTotalEccErrors)
(Device device, unsigned type, unsigned counter, unsigned long long* count) {
  NVML_FIND(NeedEcc, device, target);
  NVML_REQUIRE(count != nullptr && type < 2 && counter < 2);
  *count = EccCount(target, type, counter);
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetDetailedEccErrors)
(Device device, unsigned type, unsigned counter, EccCounts* out) {
  NVML_FIND(NeedEcc, device, target);
  NVML_REQUIRE(out != nullptr && type < 2 && counter < 2);
  *out = {0, 0, EccCount(target, type, counter), 0};
  return kSuccess;
}

// Simulated errors are in device memory (location 2); the caches have none.
NVML_EXPORT(nvmlDeviceGetMemoryErrorCounter)
(Device device, unsigned type, unsigned counter, unsigned location,
 unsigned long long* count) {
  NVML_FIND(NeedEcc, device, target);
  NVML_REQUIRE(count != nullptr && type < 2 && counter < 2 && location < 8);
  *count = location == 2 ? EccCount(target, type, counter) : 0;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetRemappedRows)
(Device device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
 unsigned* failure) {
  NVML_FIND(FindGpu, device, target);
  if (!target.has(kHasRowRemap)) return kNotSupported;
  NVML_REQUIRE(corrected && uncorrected && pending && failure);
  *corrected = 0;
  *uncorrected = target.gpu->rows_remapped;
  *pending = target.gpu->rows_pending;
  *failure = target.gpu->rows_failed;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetRowRemapperHistogram)
(Device device, RowRemapHistogram* out) {
  NVML_FIND(FindGpu, device, target);
  if (!target.has(kHasRowRemap)) return kNotSupported;
  NVML_REQUIRE(out != nullptr);
  // Banks by how many spare rows they have left; one error uses one bank's row.
  constexpr uint32_t kBanks = 640;
  const uint32_t used = std::min<uint32_t>(target.gpu->rows_remapped, kBanks);
  *out = {kBanks - used, used, 0, 0, 0};
  return kSuccess;
}

// cause: 0 several single-bit errors, 1 a double-bit error. Only GPUs that do
// not remap rows retire pages.
NVML_EXPORT(nvmlDeviceGetRetiredPages)
(Device device, unsigned cause, unsigned* count,
 unsigned long long* addresses) {
  NVML_FIND(NeedEcc, device, target);
  if (target.has(kHasRowRemap)) return kNotSupported;
  NVML_REQUIRE(count != nullptr && cause < 2);
  const auto pages = static_cast<uint32_t>(
      cause == 1 ? EccCount(target, 1, 1) : EccCount(target, 0, 1) / 2);
  const bool fits = *count >= pages;
  *count = pages;
  if (!fits) return kInsufficientSize;
  NVML_REQUIRE(addresses != nullptr || pages == 0);
  for (uint32_t i = 0; i < pages; ++i) addresses[i] = 0x10000ull * (i + 1);
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetRetiredPages_v2)
(Device device, unsigned cause, unsigned* count, unsigned long long* addresses,
 unsigned long long* times) {
  const Return got = nvmlDeviceGetRetiredPages(device, cause, count, addresses);
  for (uint32_t i = 0; got == kSuccess && times != nullptr && i < *count; ++i)
    times[i] = NowUs();
  return got;
}

NVML_EXPORT(nvmlDeviceGetRetiredPagesPendingStatus)
(Device device, unsigned* pending) {
  NVML_FIND(NeedEcc, device, target);
  if (target.has(kHasRowRemap)) return kNotSupported;
  NVML_REQUIRE(pending != nullptr);
  *pending = target.gpu->ecc_uncorrected != 0;
  return kSuccess;
}
