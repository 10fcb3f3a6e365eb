// SPDX-License-Identifier: Apache-2.0
//
// Follows the pods of one node on the API server: a list, then a watch. Has a
// thread of its own (watch_thread.h); calls back from that thread.
//
// Failure: never gives up. Errors are told by on_error and tried again after a
// pause (1 s, doubling to 30 s); the pods last delivered stay true as far as is
// known, and are delivered again after an error.

#ifndef RONDO_KUBE_POD_WATCHER_H_
#define RONDO_KUBE_POD_WATCHER_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/api_client.h"
#include "kube/item_splitter.h"
#include "kube/pod.h"
#include "kube/watch_thread.h"

namespace rondo::kube {

struct PodList {
  std::vector<Pod> pods;
  std::string resource_version;
};

// Reads the JSON of a PodList as it comes, in pieces of any size, and keeps no
// more of it than Pod holds: whatever pods have in them, a list of all of a
// node's can be read. One thread.
class PodListReader {
 public:
  // With the annotations whose keys start with prefix.
  explicit PodListReader(std::string prefix);
  PodListReader(const PodListReader&) = delete;
  PodListReader& operator=(const PodListReader&) = delete;

  // InvalidArgument where it is no such list, ResourceExhausted where it is
  // larger than one can be; then no more of it must be added.
  absl::Status Add(absl::string_view bytes);
  // Once, when all of it was added.
  absl::StatusOr<PodList> Finish();

 private:
  absl::Status OnItem(absl::string_view item);

  const std::string prefix_;
  PodList list_;
  ItemSplitter splitter_;
};

// The JSON of a PodList, with the annotations whose keys start with prefix.
// InvalidArgument where it is not one.
absl::StatusOr<PodList> ParsePodList(absl::string_view json,
                                     absl::string_view prefix);

struct PodEvent {
  enum class Type { kChanged, kDeleted, kBookmark };
  Type type = Type::kChanged;
  Pod pod;
  std::string resource_version;
};

// One line of a watch. OutOfRange where the server says that the watch is too
// old; InvalidArgument where it is no event.
absl::StatusOr<PodEvent> ParsePodEvent(absl::string_view line,
                                       absl::string_view prefix);

class PodWatcher {
 public:
  struct Options {
    std::string node_name;
    std::string annotation_prefix;
    std::chrono::milliseconds first_pause{1000};
    std::chrono::milliseconds longest_pause{30'000};
  };
  // All pods of the node, after the first list, after each change of what Pod
  // holds (most of a pod's life changes nothing of it), and after an error.
  using OnPods = std::function<void(const std::vector<Pod>&)>;
  using OnError = std::function<void(const absl::Status&)>;

  PodWatcher(std::unique_ptr<ApiClient> client, Options options, OnPods on_pods,
             OnError on_error);

 private:
  class List;                        // one that is being read
  std::string OnList(PodList list);  // its version
  absl::Status OnLine(absl::string_view line);
  void Deliver();

  const std::string annotation_prefix_;
  const OnPods on_pods_;
  const OnError on_error_;
  std::map<std::string, Pod> pods_;  // by uid
  std::vector<Pod> delivered_;
  bool in_doubt_ = true;  // nothing delivered yet, or an error told since
  WatchThread thread_;    // last: ends before the rest does
};

}  // namespace rondo::kube

#endif  // RONDO_KUBE_POD_WATCHER_H_
