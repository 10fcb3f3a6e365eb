// SPDX-License-Identifier: Apache-2.0
//
// The node-local half of a kubelet that tells about pods: PodResources v1 and
// the Pods API v1alpha1, in-process, on real unix sockets. For tests
// and `rondo demo`.
//
// Rules follow kubernetes pkg/kubelet 1.37: a list is what is true at that
// moment; the Pods API fails until kubelet has heard from its sources.
//
// Threads: all methods from any thread.

#ifndef RONDO_DEMO_STAND_IN_POD_APIS_H_
#define RONDO_DEMO_STAND_IN_POD_APIS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rondo::demo {

class StandInPodApis {
 public:
  StandInPodApis(std::string pod_resources_socket, std::string pods_api_socket);
  ~StandInPodApis();
  StandInPodApis(const StandInPodApis&) = delete;
  StandInPodApis& operator=(const StandInPodApis&) = delete;

  // Each starts or ends one of the two; the socket file goes at the end.
  void ServeHolders(bool on);
  void ServePods(bool on);
  // Not ready: the Pods API answers FAILED_PRECONDITION.
  void SetReady(bool ready);

  // A pod of the namespace "default", with one container, "main", that holds
  // the devices. No devices: it holds none.
  void Hold(const std::string& pod, std::vector<std::string> device_ids);
  // uid: that of the pod is its name with "-uid".
  void SetPod(const std::string& pod,
              std::map<std::string, std::string> annotations);
  // Its phase is Succeeded from now on.
  void End(const std::string& pod);
  void Remove(const std::string& pod);
  // How often PodResources was asked.
  int lists() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rondo::demo

#endif  // RONDO_DEMO_STAND_IN_POD_APIS_H_
