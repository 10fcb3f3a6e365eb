// SPDX-License-Identifier: Apache-2.0
//
// The GPUs that this process may use: the staged node's, as
// CUDA_VISIBLE_DEVICES chooses, else NVIDIA_VISIBLE_DEVICES (on a real node the
// container runtime acts on that one). Read once; any thread.

#ifndef RONDO_SIM_DRIVER_LIBCUDA_NODE_H_
#define RONDO_SIM_DRIVER_LIBCUDA_NODE_H_

#include <cstdint>
#include <vector>

#include "sim/state.h"

namespace rondo::sim::cuda {

struct VisibleGpu {
  const GpuState* state = nullptr;
  uint32_t instance = 0;  // the driver's number for it
};

// Maps the node's state; false: there is none.
bool LoadNode();
const NodeState& Node();
const std::vector<VisibleGpu>& VisibleGpus();

}  // namespace rondo::sim::cuda

#endif  // RONDO_SIM_DRIVER_LIBCUDA_NODE_H_
