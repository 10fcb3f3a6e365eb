// SPDX-License-Identifier: Apache-2.0
//
// Follows the labels of one node. Has a thread of its own (watch_thread.h);
// calls back from that thread.
//
// Failure: never gives up. Errors are told by on_error and tried again after a
// pause (1 s, doubling to 30 s); the labels last seen stay in force meanwhile.

#ifndef RONDO_KUBE_NODE_WATCHER_H_
#define RONDO_KUBE_NODE_WATCHER_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/api_client.h"
#include "kube/watch_thread.h"

namespace rondo::kube {

using Labels = std::map<std::string, std::string>;

struct NodeState {
  Labels labels;
  std::string resource_version;
};

// The labels and version in the JSON of a Node object. InvalidArgument where it
// is not one.
absl::StatusOr<NodeState> ParseNode(absl::string_view json);

// One line of a watch: the node it carries. OutOfRange where the server says
// that the watch is too old; NotFound where the node was deleted;
// InvalidArgument otherwise.
absl::StatusOr<NodeState> ParseNodeEvent(absl::string_view line);

class NodeWatcher {
 public:
  struct Options {
    std::string node_name;
    std::chrono::milliseconds first_pause{1000};
    std::chrono::milliseconds longest_pause{30'000};
  };
  using OnLabels = std::function<void(const Labels&)>;
  using OnError = std::function<void(const absl::Status&)>;

  NodeWatcher(std::unique_ptr<ApiClient> client, Options options,
              OnLabels on_labels, OnError on_error);

 private:
  void Deliver(const Labels& labels);

  const OnLabels on_labels_;
  std::optional<Labels> delivered_;
  WatchThread thread_;  // last: ends before the rest does
};

}  // namespace rondo::kube

#endif  // RONDO_KUBE_NODE_WATCHER_H_
