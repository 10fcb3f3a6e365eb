// SPDX-License-Identifier: Apache-2.0
//
// Tells which pod holds which slot, and what the pods' annotations are.
//
// Holders come from kubelet's PodResources, which leaves out init containers
// that do not restart: theirs come from kubelet's checkpoint. Annotations come
// from kubelet's Pods API where that answers, else from the API server, else
// not at all; it goes over from one to the other by itself, and says so once.
//
// kubelet is asked twice a second while a slot is held (both are lists): its
// Pods API can be watched, but kubelet 1.37 sends nothing when an annotation
// changes and the pod's status does not. After an Allocate it is asked at once
// and a few times shortly after, for it knows the new holder only when it has
// our answer; while nothing is held, every ten seconds, for nothing changes
// without an Allocate. What did not change is not reported.
//
// Threads: one of its own, from which on_report is called; Poke from any.
// Failure: none of the caller's; the report says what is not known and why.

#ifndef RONDO_AGENT_POD_FEED_H_
#define RONDO_AGENT_POD_FEED_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/api_client.h"
#include "kube/kubelet_client.h"
#include "kube/pod.h"
#include "kube/pod_watcher.h"
#include "metrics/node_view.h"

namespace rondo::agent {

struct PodReport {
  // All that was asked for was asked for after the Poke of this number.
  uint64_t number = 0;
  std::optional<std::vector<kube::DeviceHolder>> holders;  // empty: not known
  std::string holders_problem;
  // From kubelet's checkpoint, of pods that have not ended: also init
  // containers, which it does not list. Only uids are known. Nothing where it
  // cannot be read.
  std::vector<kube::DeviceHolder> recorded;
  metrics::PodSource source = metrics::PodSource::kNone;
  std::vector<kube::Pod> pods;  // nothing where the source is kNone
  std::string pods_problem;
  bool operator==(const PodReport&) const = default;
};

class PodFeed {
 public:
  struct Options {
    kube::KubeletClient::Options kubelet;
    // Or why there is none.
    absl::StatusOr<kube::ApiClient::Options> api_server =
        absl::NotFoundError("not in a cluster");
    std::string node_name;          // empty: the API server cannot be asked
    std::string device_plugin_dir;  // of the checkpoint; empty: is not read
    std::chrono::milliseconds after_poke{10};  // doubled up to period
    std::chrono::milliseconds period{500};
    std::chrono::milliseconds idle_period{10'000};
    std::chrono::milliseconds idle_after{30'000};  // since the last Poke
  };
  using OnReport = std::function<void(const PodReport&)>;

  PodFeed(Options options, OnReport on_report);
  ~PodFeed();
  PodFeed(const PodFeed&) = delete;
  PodFeed& operator=(const PodFeed&) = delete;

  // Something was allocated. Reports with the returned number or a higher one
  // were collected after this call.
  uint64_t Poke();

 private:
  void Run();
  PodReport Collect(uint64_t number);
  void CollectPods(PodReport& report);
  // After the pods.
  void CollectRecorded(PodReport& report);
  void AskApiServer(const absl::Status& kubelet, PodReport& report);
  void StartWatcher();
  void Log(const PodReport& report) const;

  const Options options_;
  const OnReport on_report_;
  kube::KubeletClient kubelet_;
  PodReport last_;
  std::string checkpoint_problem_;  // the last one told

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;    // guarded by mutex_, as are the next four
  uint64_t number_ = 0;  // of the last Poke
  bool asked_ = true;    // look at once
  std::optional<std::vector<kube::Pod>> api_pods_;
  absl::Status api_status_;  // why there are no newer ones

  std::unique_ptr<kube::PodWatcher> watcher_;  // of thread_ only
  std::thread thread_;
};

}  // namespace rondo::agent

#endif  // RONDO_AGENT_POD_FEED_H_
