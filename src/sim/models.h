// SPDX-License-Identifier: Apache-2.0
//
// The GPU models that the simulator knows, with the numbers that NVML gives on
// real ones. A constant table; any thread. Sources: NVIDIA data sheets, the MIG
// user guide's profile tables, and NVML output seen on such GPUs.

#ifndef RONDO_SIM_MODELS_H_
#define RONDO_SIM_MODELS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace rondo::sim {

struct MigProfileModel {
  const char* name;
  uint32_t profile;  // NVML_GPU_INSTANCE_PROFILE_*
  uint32_t id;       // the driver's number for it
  uint32_t slices, memory_slices, max_instances, multiprocessors, memory_mib;
};

struct Model {
  const char* id;  // "A100-SXM4-80GB", as profiles name it
  // Other spellings, separated by blanks.
  const char* aliases;
  const char* name;  // NVML's
  uint32_t device_id, brand, architecture, compute_major, compute_minor;
  uint32_t cores, multiprocessors, bus_width, pcie_generation;
  uint32_t memory_mib, reserved_mib, bar1_mib;
  // Watts; the limit is the default one.
  uint32_t power_idle, power_limit, power_min, power_max;
  // MHz.
  uint32_t clock_idle, clock_base, clock_max, memory_clock_idle, memory_clock;
  uint32_t flags;       // kHas... of state.h
  bool on_switch;       // sits on a PCI switch with its neighbour
  int numa_nodes;       // sockets that a node of these has; 0 = no NUMA
  uint32_t nvlinks;     // 0 = none
  uint32_t nvswitches;  // 0 = the links go from GPU to GPU
  uint32_t nvlink_version, nvlink_mbps;
  std::vector<MigProfileModel> mig;
};

// In the order that `rondo sim list` prints.
const std::vector<Model>& Models();

// By id or alias, whatever the case; null where unknown.
const Model* FindModel(absl::string_view text);

}  // namespace rondo::sim

#endif  // RONDO_SIM_MODELS_H_
