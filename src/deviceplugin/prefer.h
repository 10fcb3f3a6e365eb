// SPDX-License-Identifier: Apache-2.0
//
// GetPreferredAllocation: which ids a container should get. Pure; any thread;
// the same question has the same answer.
//
// Whole GPUs, none of them shared: the set that lies best together (aligned.h).
// Everything else, device by device:
//   distributed  the device with the fewest ids in use
//   packed       the device with the most ids in use
//   spread       the device this container has the fewest ids of, then
//                distributed
// Ties: picked least often in this call, then the lowest device, then the
// lowest replica. "In use" counts required ids and everything not available,
// unhealthy ids too, as NVIDIA's plugin does.

#ifndef RONDO_DEVICEPLUGIN_PREFER_H_
#define RONDO_DEVICEPLUGIN_PREFER_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "config/plan.h"
#include "deviceplugin/view.h"

namespace rondo::deviceplugin {

// Score of each pair of GPUs by UUID, smaller UUID first; a pair that is not
// there scores 0.
using LinkScores = std::map<std::pair<std::string, std::string>, int>;

struct PreferRequest {
  std::vector<absl::string_view> available;
  std::vector<absl::string_view> required;  // must be in the answer
  int size = 0;                             // of the answer, required included
};

// Empty when nothing can be advised (kubelet then chooses by itself).
// ResourceExhausted with NVIDIA's text when shared devices do not suffice.
absl::StatusOr<std::vector<std::string>> Prefer(const View& view,
                                                config::AllocationPolicy policy,
                                                const LinkScores& links,
                                                const PreferRequest& request);

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_PREFER_H_
