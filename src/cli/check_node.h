// SPDX-License-Identifier: Apache-2.0
//
// What `rondo check` wants to know of a node, read from the JSON of
// `kubectl get node NAME -o json`. Pure; any thread.

#ifndef RONDO_CLI_CHECK_NODE_H_
#define RONDO_CLI_CHECK_NODE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "config/node.h"

namespace rondo::cli {

struct NodeFacts {
  std::string name;
  std::string config_label;         // nvidia.com/device-plugin.config
  std::vector<std::string> models;  // product text of GPU Feature Discovery
  config::DeviceGroups groups;
};

// From the labels of GPU Feature Discovery where they are set, else from
// status.allocatable. InvalidArgument where the text is no Node or tells of no
// GPU.
absl::StatusOr<NodeFacts> ReadNode(absl::string_view json);

}  // namespace rondo::cli

#endif  // RONDO_CLI_CHECK_NODE_H_
