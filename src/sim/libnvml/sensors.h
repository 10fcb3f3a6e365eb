// SPDX-License-Identifier: Apache-2.0
//
// Values that more than one call gives, and the way to give one of a whole GPU.
// Any thread.

#ifndef RONDO_SIM_LIBNVML_SENSORS_H_
#define RONDO_SIM_LIBNVML_SENSORS_H_

#include <cstdint>

#include "sim/libnvml/library.h"
#include "sim/state.h"

namespace rondo::sim::libnvml {

uint32_t PowerMilliwatt(const GpuState& gpu);
uint32_t Celsius(const GpuState& gpu);
// Since the node was staged, at idle power.
uint64_t EnergyMillijoule(const NodeState& node, const GpuState& gpu);

// NVML_CLOCK_*.
enum ClockType : uint32_t {
  kGraphicsClock,
  kSmClock,
  kMemoryClock,
  kVideoClock,
  kClockTypes
};
uint32_t CurrentClock(const GpuState& gpu, uint32_t type);
uint32_t MaxClock(const GpuState& gpu, uint32_t type);

// No process is on the GPU.
inline bool Idles(const GpuState& gpu) { return LoadOf(gpu).processes == 0; }

// Writes value(target) for a whole GPU.
template <typename T, typename Value>
Return Put(Device device, T* out, Value value) {
  NVML_FIND(FindGpu, device, target);
  NVML_REQUIRE(out != nullptr);
  *out = static_cast<T>(value(target));
  return kSuccess;
}

}  // namespace rondo::sim::libnvml

#endif  // RONDO_SIM_LIBNVML_SENSORS_H_
