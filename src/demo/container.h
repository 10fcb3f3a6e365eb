// SPDX-License-Identifier: Apache-2.0
//
// A container without a container runtime: what Allocate answered, as the
// environment of a program on the same machine. What would be mounted is found
// at the host's paths; instead of the GPUs that a container does not have,
// CUDA_VISIBLE_DEVICES hides them.
//
// Pure. Failure: Aborted where the answer brings no library, or one that is not
// mounted.

#ifndef RONDO_DEMO_CONTAINER_H_
#define RONDO_DEMO_CONTAINER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "demo/plugin_client.h"

namespace rondo::demo {

// image: the variables that are there anyway, NAME=value. Those of the grant
// win; of LD_PRELOAD the grant's comes first and the image's after it, where a
// simulated driver has to be.
absl::StatusOr<std::vector<std::string>> ContainerEnvironment(
    const Grant& grant, const std::vector<std::string>& image);

}  // namespace rondo::demo

#endif  // RONDO_DEMO_CONTAINER_H_
