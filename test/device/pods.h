// SPDX-License-Identifier: Apache-2.0
//
// Pods on a machine with GPUs: the real agent, stand-ins for kubelet, and
// programs started with what Allocate answered. For pods_on_gpu.
//
// One thread; all methods block, none for ever. Failure: a Status where
// something did not work at all; what is claimed is said by Say, and counted.

#ifndef RONDO_TEST_DEVICE_PODS_H_
#define RONDO_TEST_DEVICE_PODS_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "demo/agent_process.h"
#include "demo/stand_in_kubelet.h"
#include "demo/stand_in_pod_apis.h"
#include "nlohmann/json.hpp"
#include "sim/driver/tenant_process.h"
#include "stall_watch.h"

namespace rondo::device {

using nlohmann::json;
using Annotations = std::map<std::string, std::string>;
using Tenant = std::unique_ptr<sim::driver::TenantProcess>;
using Progress = sim::driver::TenantProcess::Progress;

inline constexpr int kReplicas = 4;

struct Pod {
  std::string name;
  demo::Grant grant;
  std::vector<std::string> gpus;  // UUIDs, by the ordinal of its programs

  int Ordinal(const std::string& gpu) const;
  std::string SlotOn(const std::string& gpu) const;
};

class Pods {
 public:
  // rondo: the executable; scratch: a folder for everything.
  Pods(std::string rondo, std::string scratch);

  // memory: enforce or observe.
  absl::Status WriteConfig(const std::string& memory);
  // Kubelet and the agent; how long a loop turn takes.
  absl::Status Start();
  absl::Status StartAgent();
  demo::AgentProcess& agent() { return *agent_; }
  const std::vector<std::string>& gpus() const { return gpus_; }
  double card_bytes() const { return card_bytes_; }

  // A running pod with a slot on each of these GPUs.
  absl::StatusOr<Pod> Place(const Annotations& annotations,
                            const std::set<std::string>& gpus);
  absl::StatusOr<Pod> Place(const Annotations& annotations) {
    return Place(annotations, {gpus_[0]});
  }
  void Annotate(const Pod& pod, const Annotations& annotations);
  // A program in the pod, or on the bare machine where there is none; options
  // of rondo-tenant. It is set up when this returns and waits to begin.
  absl::StatusOr<Tenant> Run(const Pod* pod, const std::string& options);
  // All pods end. Their programs are the caller's.
  void EndPods();

  // GET /api/v1/node.
  absl::StatusOr<json> Node();
  // Of that: the slot; null where there is none.
  static json Slot(const json& node, const std::string& slot);
  absl::StatusOr<json> Slot(const Pod& pod);
  // Seconds until it holds; DeadlineExceeded with the text otherwise.
  absl::StatusOr<double> Until(const std::string& what,
                               const std::function<bool(const json&)>& holds,
                               std::chrono::milliseconds deadline);

  void Say(bool ok, const std::string& claim, const std::string& numbers);
  // Of a claim that asks for an agent that comes when it wants to. On a
  // simulated node, whose machine may be small and busy, one that does not hold
  // counts only where nothing was held up since BeginCase.
  void SayInTime(bool ok, const std::string& claim, const std::string& numbers);
  int ok() const { return ok_; }
  int failed() const { return failed_; }
  void BeginCase();
  // Whether a claim did not count since BeginCase.
  bool unjudged() const { return unjudged_; }

 private:
  const std::string rondo_, scratch_, config_;
  demo::StandInKubelet kubelet_;
  demo::StandInPodApis pod_apis_;
  std::unique_ptr<demo::AgentProcess> agent_;
  std::string port_;
  std::string turns_ = "0";  // 0: to be measured
  std::vector<std::string> gpus_;
  double card_bytes_ = 0;
  std::vector<std::string> pods_;
  int last_pod_ = 0, ok_ = 0, failed_ = 0;
  StallWatch stalls_;
  std::chrono::nanoseconds held_up_{};  // the longest, in this case
  bool unjudged_ = false;
};

// Each of them has begun and finished; both one after the other.
absl::Status RunAll(const std::vector<const Tenant*>& tenants);
// The part of its GPU's time that each has in the next stretch, by what it
// says of its requests of so many microseconds.
absl::StatusOr<std::vector<double>> Shares(
    const std::vector<const Tenant*>& tenants, double seconds,
    double request_us);
// Lets time pass by that program's clock.
absl::Status Pass(const Tenant& tenant, double seconds);

}  // namespace rondo::device

#endif  // RONDO_TEST_DEVICE_PODS_H_
