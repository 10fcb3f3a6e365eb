// SPDX-License-Identifier: Apache-2.0
//
// Follows the labels of one node. Has a thread of its own; calls back from that
// thread.
//
// Failure: never gives up. Each error is reported once per change of text by
// on_error and tried again after a pause (1 s, doubling to 30 s); the labels
// last seen stay in force meanwhile.

#ifndef RONDO_KUBE_NODE_WATCHER_H_
#define RONDO_KUBE_NODE_WATCHER_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/api_client.h"

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
  ~NodeWatcher();

 private:
  void Run();
  absl::Status ListAndWatch();
  void Deliver(const NodeState& state);

  const std::unique_ptr<ApiClient> client_;
  const Options options_;
  const OnLabels on_labels_;
  const OnError on_error_;
  Labels last_;
  bool delivered_ = false;
  std::string resource_version_;

  std::mutex mutex_;
  std::condition_variable stop_changed_;
  bool stop_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace rondo::kube

#endif  // RONDO_KUBE_NODE_WATCHER_H_
