// SPDX-License-Identifier: Apache-2.0
//
// Temperature, power, clocks, fans, utilisation and PCIe. Values follow the
// GPU's simulated load, so that a monitor shows a busy GPU busy.

#include "sim/libnvml/sensors.h"

#include <algorithm>

#include "sim/libnvml/library.h"

using namespace rondo::sim::libnvml;  // NOLINT
using rondo::sim::GpuState;
using rondo::sim::kHasEcc;
using rondo::sim::kHasFan;
using rondo::sim::kHasHbm;

namespace rondo::sim::libnvml {

uint32_t PowerMilliwatt(const GpuState& g) {
  const uint64_t range = g.power_default_mw - g.power_idle_mw;
  return g.power_idle_mw +
         static_cast<uint32_t>(range * LoadOf(g).sm / 100 * 9 / 10);
}

uint32_t Celsius(const GpuState& g) {
  return g.temperature_idle + LoadOf(g).sm * 2 / 5;
}

uint64_t EnergyMillijoule(const NodeState& node, const GpuState& g) {
  return (NowUs() - node.started_us) / 1000 * g.power_idle_mw / 1000;
}

}  // namespace rondo::sim::libnvml

namespace {

// Percentages of the whole GPU are not known once it is cut into MIG devices.
template <typename Value>
Return PutUtilization(Device device, unsigned* percent, unsigned* period_us,
                      Value value) {
  NVML_FIND(FindGpu, device, target);
  if (target.mig_enabled()) return kNotSupported;
  NVML_REQUIRE(percent != nullptr && period_us != nullptr);
  *percent = value(LoadOf(*target.gpu));
  *period_us = 167000;
  return kSuccess;
}

}  // namespace

NVML_EXPORT(nvmlDeviceGetTemperature)
(Device device, unsigned sensor, unsigned* celsius) {
  NVML_REQUIRE(sensor == 0);
  return Put(device, celsius, [](const Target& t) { return Celsius(*t.gpu); });
}

NVML_EXPORT(nvmlDeviceGetTemperatureV)(Device device, Temperature* out) {
  NVML_FIND(FindGpu, device, target);
  NVML_REQUIRE(out != nullptr);
  if (out->version != Version<Temperature>(1)) return kArgumentVersionMismatch;
  NVML_REQUIRE(out->sensor == 0);
  out->celsius = static_cast<int32_t>(Celsius(*target.gpu));
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetTemperatureThreshold)
(Device device, unsigned which, unsigned* celsius) {
  NVML_FIND(FindGpu, device, target);
  NVML_REQUIRE(celsius != nullptr);
  const GpuState& g = *target.gpu;
  switch (which) {
    case 0:
      *celsius = g.temperature_shutdown;
      return kSuccess;
    case 1:
      *celsius = g.temperature_slowdown;
      return kSuccess;
    case 2:
      if (!target.has(kHasHbm)) return kNotSupported;
      *celsius = 95;
      return kSuccess;
    case 3:
      *celsius = g.temperature_slowdown - 4;
      return kSuccess;
    default:
      return which < 8 ? kNotSupported : kInvalidArgument;
  }
}

NVML_EXPORT(nvmlDeviceGetMarginTemperature)(Device device, int32_t* info) {
  NVML_FIND(FindGpu, device, target);
  NVML_REQUIRE(info != nullptr);  // { version, margin }
  info[1] = static_cast<int32_t>(target.gpu->temperature_slowdown - 4) -
            static_cast<int32_t>(Celsius(*target.gpu));
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetPowerUsage)(Device device, unsigned* milliwatt) {
  return Put(device, milliwatt,
             [](const Target& t) { return PowerMilliwatt(*t.gpu); });
}

NVML_EXPORT(nvmlDeviceGetTotalEnergyConsumption)
(Device device, unsigned long long* millijoule) {
  return Put(device, millijoule,
             [](const Target& t) { return EnergyMillijoule(*t.node, *t.gpu); });
}

NVML_EXPORT(nvmlDeviceGetPowerManagementMode)(Device device, unsigned* mode) {
  return Put(device, mode, [](const Target&) { return 1; });
}

NVML_EXPORT(nvmlDeviceGetPowerManagementLimit)(Device device, unsigned* mw) {
  return Put(device, mw,
             [](const Target& t) { return t.gpu->power_default_mw; });
}
NVML_EXPORT(nvmlDeviceGetPowerManagementDefaultLimit)
(Device device, unsigned* mw) {
  return nvmlDeviceGetPowerManagementLimit(device, mw);
}
NVML_EXPORT(nvmlDeviceGetEnforcedPowerLimit)(Device device, unsigned* mw) {
  return nvmlDeviceGetPowerManagementLimit(device, mw);
}

NVML_EXPORT(nvmlDeviceGetPowerManagementLimitConstraints)
(Device device, unsigned* min_mw, unsigned* max_mw) {
  NVML_REQUIRE(max_mw != nullptr);
  const Return put =
      Put(device, min_mw, [](const Target& t) { return t.gpu->power_min_mw; });
  if (put != kSuccess) return put;
  return Put(device, max_mw,
             [](const Target& t) { return t.gpu->power_max_mw; });
}

NVML_EXPORT(nvmlDeviceGetPowerSource)(Device device, unsigned* source) {
  return Put(device, source, [](const Target&) { return 0; });  // mains
}

NVML_EXPORT(nvmlDeviceGetNumFans)(Device device, unsigned* fans) {
  return Put(device, fans, [](const Target& t) { return t.has(kHasFan); });
}

NVML_EXPORT(nvmlDeviceGetFanSpeed)(Device device, unsigned* percent) {
  NVML_FIND(FindGpu, device, target);
  if (!target.has(kHasFan)) return kNotSupported;
  NVML_REQUIRE(percent != nullptr);
  *percent = 30 + LoadOf(*target.gpu).sm / 2;
  return kSuccess;
}
NVML_EXPORT(nvmlDeviceGetFanSpeed_v2)
(Device device, unsigned fan, unsigned* percent) {
  NVML_REQUIRE(fan == 0);
  return nvmlDeviceGetFanSpeed(device, percent);
}

NVML_EXPORT(nvmlDeviceGetUtilizationRates)(Device device, Utilization* out) {
  NVML_FIND(FindGpu, device, target);
  if (target.mig_enabled()) return kNotSupported;
  NVML_REQUIRE(out != nullptr);
  const Load load = LoadOf(*target.gpu);
  *out = {load.sm, load.memory};
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetEncoderUtilization)
(Device device, unsigned* percent, unsigned* us) {
  return PutUtilization(device, percent, us,
                        [](const Load& load) { return load.encoder; });
}
NVML_EXPORT(nvmlDeviceGetDecoderUtilization)
(Device device, unsigned* percent, unsigned* us) {
  return PutUtilization(device, percent, us,
                        [](const Load& load) { return load.decoder; });
}
NVML_EXPORT(nvmlDeviceGetJpgUtilization)
(Device device, unsigned* percent, unsigned* us) {
  return PutUtilization(device, percent, us, [](const Load&) { return 0; });
}
NVML_EXPORT(nvmlDeviceGetOfaUtilization)
(Device device, unsigned* percent, unsigned* us) {
  return nvmlDeviceGetJpgUtilization(device, percent, us);
}

// One sample a quarter of a second, for the last two seconds.
NVML_EXPORT(nvmlDeviceGetSamples)
(Device device, unsigned type, unsigned long long last_seen,
 unsigned* value_type, unsigned* count, Sample* samples) {
  NVML_FIND(FindGpu, device, target);
  if (target.mig_enabled() || type > 6) return kNotSupported;
  NVML_REQUIRE(value_type != nullptr && count != nullptr);
  const GpuState& g = *target.gpu;
  const Load load = LoadOf(g);
  const uint32_t values[] = {PowerMilliwatt(g),
                             load.sm,
                             load.memory,
                             load.encoder,
                             load.decoder,
                             CurrentClock(g, kSmClock),
                             CurrentClock(g, kMemoryClock)};
  constexpr uint64_t kPeriodUs = 250000;
  *value_type = kValueUnsigned;
  const uint64_t newest = NowUs() / kPeriodUs * kPeriodUs;
  const uint64_t oldest = std::max<uint64_t>(
      newest - 7 * kPeriodUs, (last_seen / kPeriodUs + 1) * kPeriodUs);
  if (oldest > newest) return kNotFound;
  const auto found = static_cast<uint32_t>((newest - oldest) / kPeriodUs + 1);
  if (samples == nullptr) {
    *count = found;
    return kSuccess;
  }
  if (*count < found) return kInsufficientSize;
  *count = found;
  for (uint32_t i = 0; i < found; ++i)
    samples[i] = {oldest + i * kPeriodUs, values[type]};
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetPcieThroughput)
(Device device, unsigned counter, unsigned* kib) {
  NVML_REQUIRE(counter < 2);
  return Put(device, kib,
             [](const Target& t) { return LoadOf(*t.gpu).sm * 512; });
}

NVML_EXPORT(nvmlDeviceGetPcieReplayCounter)(Device device, unsigned* count) {
  return Put(device, count, [](const Target&) { return 0; });
}

#define PCIE_NUMBER(name, member)                                           \
  NVML_EXPORT(name)(Device device, unsigned* out) {                         \
    return Put(device, out, [](const Target& t) { return t.gpu->member; }); \
  }
PCIE_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, pcie_generation)
PCIE_NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, pcie_generation)
PCIE_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, pcie_generation)
PCIE_NUMBER(nvmlDeviceGetMaxPcieLinkWidth, pcie_width)
PCIE_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, pcie_width)
#undef PCIE_NUMBER

// { reference time ns, time held back ns }: nothing holds a simulated GPU back.
NVML_EXPORT(nvmlDeviceGetViolationStatus)
(Device device, unsigned policy, unsigned long long* times) {
  NVML_FIND(FindGpu, device, target);
  NVML_REQUIRE(times != nullptr && policy < 12);
  times[0] = NowUs() * 1000;
  times[1] = 0;
  return kSuccess;
}
