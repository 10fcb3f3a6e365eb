// SPDX-License-Identifier: Apache-2.0
//
// What kubelet tells on the node itself: who holds which device (PodResources
// v1) and what the pods are (Pods API v1alpha1, since Kubernetes 1.37).
//
// Threads: one thread at a time; Cancel from any thread. Calls block, at most
// for the timeout. Failure: NotFound where the socket does not exist,
// Unavailable where nobody listens on it, Unimplemented for a kubelet of
// another protocol, FailedPrecondition while kubelet starts; each call connects
// anew where the last one failed, so a kubelet that comes back is found.

#ifndef RONDO_KUBE_KUBELET_CLIENT_H_
#define RONDO_KUBE_KUBELET_CLIENT_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/pod.h"

namespace rondo::kube {

class KubeletClient {
 public:
  struct Options {
    std::string pod_resources_socket;
    std::string pods_api_socket;
    std::chrono::milliseconds timeout{2000};
    // Of one answer. A node may have hundreds of pods, and a pod many
    // kilobytes; but who may write pods may make them larger.
    int most_bytes = 32 << 20;
    // After a list that was larger, pods are asked for one by one so long.
    std::chrono::milliseconds one_by_one{60'000};
  };

  explicit KubeletClient(Options options);
  ~KubeletClient();
  KubeletClient(const KubeletClient&) = delete;
  KubeletClient& operator=(const KubeletClient&) = delete;

  absl::StatusOr<std::vector<DeviceHolder>> ListHolders();
  // With the annotations whose keys start with the prefix. Where the list is
  // larger than one answer may be, by the beginning of a watch, which has a
  // message for each pod: nobody's pod keeps the others from being known. (Not
  // always so: of a watch kubelet 1.37 writes five lines to its log, of a list
  // one.)
  absl::StatusOr<std::vector<Pod>> ListPods(absl::string_view prefix);

  // Ends a running call, and every later one at once.
  void Cancel();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rondo::kube

#endif  // RONDO_KUBE_KUBELET_CLIENT_H_
