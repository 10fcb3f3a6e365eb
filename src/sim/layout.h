// SPDX-License-Identifier: Apache-2.0
//
// From a Profile to the bytes of a NodeState: identities, PCI places, NVLinks,
// MIG placements. A pure function of its arguments (UUIDs are hashes of seed,
// model and place), so the same profile gives the same node everywhere.

#ifndef RONDO_SIM_LAYOUT_H_
#define RONDO_SIM_LAYOUT_H_

#include <string>

#include "absl/status/status.h"
#include "sim/profile.h"
#include "sim/state.h"

namespace rondo::sim {

// state must be zeroed. InvalidArgument where a MIG layout does not fit the GPU
// or a GPU would have more NVLinks than there are.
absl::Status FillState(const Profile& profile, NodeState* state);

// NVML's spelling, "00000000:17:00.0".
std::string BusId(const GpuState& gpu);

// Puts the process in a free place of the GPU, or in that of the same pid and
// MIG device. ResourceExhausted where all are taken, InvalidArgument for a MIG
// slot that is not there.
absl::Status StoreProcess(const SimProcess& process, GpuState* gpu);

}  // namespace rondo::sim

#endif  // RONDO_SIM_LAYOUT_H_
