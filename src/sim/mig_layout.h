// SPDX-License-Identifier: Apache-2.0
//
// Cuts a GPU into the MIG devices that a profile asks for, by the driver's
// rules of placement. Pure, any thread.

#ifndef RONDO_SIM_MIG_LAYOUT_H_
#define RONDO_SIM_MIG_LAYOUT_H_

#include <string>

#include "absl/status/status.h"
#include "sim/profile.h"
#include "sim/state.h"

namespace rondo::sim {

// Fills the profiles that the GPU can make and the devices that spec asks for.
// key makes their UUIDs. InvalidArgument where they do not fit.
absl::Status FillMig(const GpuSpec& spec, const std::string& key,
                     GpuState* gpu);

}  // namespace rondo::sim

#endif  // RONDO_SIM_MIG_LAYOUT_H_
