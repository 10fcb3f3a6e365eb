// SPDX-License-Identifier: Apache-2.0
//
// Clocks and performance states. Idle data-centre GPUs with HBM stay in P0;
// others fall to P8.

#include <algorithm>

#include "sim/libnvml/library.h"
#include "sim/libnvml/sensors.h"

using namespace rondo::sim::libnvml;  // NOLINT
using rondo::sim::GpuState;
using rondo::sim::kHasHbm;

namespace rondo::sim::libnvml {

uint32_t MaxClock(const GpuState& g, uint32_t type) {
  if (type == kMemoryClock) return g.memory_clock;
  return type == kVideoClock ? g.video_clock_max : g.clock_max;
}

uint32_t CurrentClock(const GpuState& g, uint32_t type) {
  const bool idles = Idles(g);
  if (type == kMemoryClock) return idles ? g.memory_clock_idle : g.memory_clock;
  if (!idles) return MaxClock(g, type);
  return type == kVideoClock ? g.clock_idle * 2 : g.clock_idle;
}

}  // namespace rondo::sim::libnvml

NVML_EXPORT(nvmlDeviceGetPerformanceState)(Device device, unsigned* state) {
  return Put(device, state, [](const Target& t) {
    return Idles(*t.gpu) && !t.has(kHasHbm) ? 8 : 0;
  });
}
NVML_EXPORT(nvmlDeviceGetPowerState)(Device device, unsigned* state) {
  return nvmlDeviceGetPerformanceState(device, state);
}

NVML_EXPORT(nvmlDeviceGetClockInfo)
(Device device, unsigned type, unsigned* mhz) {
  NVML_REQUIRE(type < kClockTypes);
  return Put(device, mhz,
             [&](const Target& t) { return CurrentClock(*t.gpu, type); });
}

NVML_EXPORT(nvmlDeviceGetMaxClockInfo)
(Device device, unsigned type, unsigned* mhz) {
  NVML_REQUIRE(type < kClockTypes);
  return Put(device, mhz,
             [&](const Target& t) { return MaxClock(*t.gpu, type); });
}
NVML_EXPORT(nvmlDeviceGetMaxCustomerBoostClock)
(Device device, unsigned type, unsigned* mhz) {
  return nvmlDeviceGetMaxClockInfo(device, type, mhz);
}

NVML_EXPORT(nvmlDeviceGetApplicationsClock)
(Device device, unsigned type, unsigned* mhz) {
  NVML_REQUIRE(type < kClockTypes);
  return Put(device, mhz, [&](const Target& t) {
    return type == kMemoryClock ? t.gpu->memory_clock : t.gpu->clock_base;
  });
}
NVML_EXPORT(nvmlDeviceGetDefaultApplicationsClock)
(Device device, unsigned type, unsigned* mhz) {
  return nvmlDeviceGetApplicationsClock(device, type, mhz);
}

// id: 0 current, 1 and 2 the application clocks, 3 the highest.
NVML_EXPORT(nvmlDeviceGetClock)
(Device device, unsigned type, unsigned id, unsigned* mhz) {
  NVML_REQUIRE(id < 4);
  if (id == 0) return nvmlDeviceGetClockInfo(device, type, mhz);
  if (id == 3) return nvmlDeviceGetMaxClockInfo(device, type, mhz);
  return nvmlDeviceGetApplicationsClock(device, type, mhz);
}

NVML_EXPORT(nvmlDeviceGetCurrentClocksEventReasons)
(Device device, unsigned long long* reasons) {
  return Put(device, reasons,
             [](const Target& t) { return Idles(*t.gpu) ? 1 : 0; });
}
NVML_EXPORT(nvmlDeviceGetCurrentClocksThrottleReasons)
(Device device, unsigned long long* reasons) {
  return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}
NVML_EXPORT(nvmlDeviceGetSupportedClocksEventReasons)
(Device device, unsigned long long* reasons) {
  return Put(device, reasons, [](const Target&) { return 0x1FF; });
}
NVML_EXPORT(nvmlDeviceGetSupportedClocksThrottleReasons)
(Device device, unsigned long long* reasons) {
  return nvmlDeviceGetSupportedClocksEventReasons(device, reasons);
}

// The rule of NVML's lists; values come highest first.
template <typename Value>
static Return PutList(unsigned* count, unsigned* out, unsigned found,
                      Value value) {
  NVML_REQUIRE(count != nullptr);
  const bool fits = out != nullptr && *count >= found;
  *count = found;
  if (!fits) return kInsufficientSize;
  for (unsigned i = 0; i < found; ++i) out[i] = value(i);
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetSupportedMemoryClocks)
(Device device, unsigned* count, unsigned* mhz) {
  NVML_FIND(FindGpu, device, target);
  const GpuState& g = *target.gpu;
  const bool one = g.memory_clock == g.memory_clock_idle;
  return PutList(count, mhz, one ? 1 : 2, [&](unsigned i) {
    return i == 0 ? g.memory_clock : g.memory_clock_idle;
  });
}

// Steps of 15 MHz, as real GPUs have; at the idle memory clock only the lowest.
NVML_EXPORT(nvmlDeviceGetSupportedGraphicsClocks)
(Device device, unsigned memory_mhz, unsigned* count, unsigned* mhz) {
  NVML_FIND(FindGpu, device, target);
  const GpuState& g = *target.gpu;
  if (memory_mhz != g.memory_clock && memory_mhz != g.memory_clock_idle)
    return kNotFound;
  constexpr unsigned kStep = 15;
  const unsigned top =
      memory_mhz == g.memory_clock ? g.clock_max : g.clock_idle;
  return PutList(count, mhz, (top - g.clock_idle) / kStep + 1,
                 [&](unsigned i) { return top - i * kStep; });
}

// size is in bytes; places that are left over hold 32, "unknown".
NVML_EXPORT(nvmlDeviceGetSupportedPerformanceStates)
(Device device, unsigned* states, unsigned size) {
  NVML_FIND(FindGpu, device, target);
  NVML_REQUIRE(states != nullptr && size >= 2 * sizeof(*states));
  std::fill(states, states + size / sizeof(*states), 32u);
  states[0] = 0;
  if (!target.has(kHasHbm)) states[1] = 8;
  return kSuccess;
}

// domain 0 the GPU, 1 its memory, 2 video, 3 the bus.
NVML_EXPORT(nvmlDeviceGetDynamicPstatesInfo)
(Device device, DynamicPstates* out) {
  NVML_FIND(FindGpu, device, target);
  if (target.mig_enabled()) return kNotSupported;
  NVML_REQUIRE(out != nullptr);
  *out = {};
  const Load load = LoadOf(*target.gpu);
  out->domains[0] = {1, load.sm, 0, 0};
  out->domains[1] = {1, load.memory, 0, 0};
  out->domains[2] = {1, load.decoder, 0, 0};
  out->domains[3] = {1, 0, 0, 0};
  return kSuccess;
}
