// SPDX-License-Identifier: Apache-2.0
//
// Sensor values that more than one call gives. Any thread, never fail.

#ifndef RONDO_SIM_LIBNVML_SENSORS_H_
#define RONDO_SIM_LIBNVML_SENSORS_H_

#include <cstdint>

#include "sim/state.h"

namespace rondo::sim::libnvml {

uint32_t PowerMilliwatt(const GpuState& gpu);
uint32_t Celsius(const GpuState& gpu);
// Since the node was staged, at idle power.
uint64_t EnergyMillijoule(const NodeState& node, const GpuState& gpu);

}  // namespace rondo::sim::libnvml

#endif  // RONDO_SIM_LIBNVML_SENSORS_H_
