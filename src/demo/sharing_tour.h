// SPDX-License-Identifier: Apache-2.0
//
// The scenes of `rondo demo` on what sharing is worth: real programs on the
// simulated card, without Rondo and with it, in real time. Every number that
// they show was measured a moment before, and a claim that does not hold is an
// error (Aborted, with the number).
//
// What is claimed leaves room for a busy machine: tenants live in simulated
// time, which stands still while the machine is slow, but the agent does not.
//
// One thread; all methods block.

#ifndef RONDO_DEMO_SHARING_TOUR_H_
#define RONDO_DEMO_SHARING_TOUR_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "demo/narrator.h"
#include "demo/stand_in_kubelet.h"
#include "demo/stand_in_pod_apis.h"
#include "sim/driver/node_driver.h"
#include "sim/driver/tenant_process.h"
#include "sim/node.h"

namespace rondo::demo {

class SharingTour {
 public:
  // All outlive it. With Rondo, programs run in pods: on the node, an agent
  // serves the kubelet, and no GPU but the first has slots to give.
  SharingTour(const sim::Node& node, sim::driver::NodeDriver& driver,
              StandInKubelet& kubelet, StandInPodApis& pod_apis,
              Narrator& narrator)
      : node_(node),
        driver_(driver),
        kubelet_(kubelet),
        pod_apis_(pod_apis),
        narrator_(narrator) {}

  // Four programs on the first GPU, one of which wants all of its memory.
  absl::Status MemoryWithoutRondo();
  absl::Status MemoryWithRondo();  // under `memory: enforce`, by four slots
  // Two programs with weights 3 and 1.
  absl::Status Weights();
  // A latency program beside three batch programs.
  absl::Status Latency();

 private:
  using Tenant = std::unique_ptr<sim::driver::TenantProcess>;
  // What a program's requests took, and how much of the GPU it used.
  struct Service {
    double p50_us = 0, p90_us = 0, p99_us = 0, share = 0;
  };
  struct Outcome {
    Service service;               // its share: of all programs beside it, too
    std::optional<Service> alone;  // on a GPU of its own, if there is another
    sim::driver::CardCounts counts;
    double seconds = 0;
  };

  absl::StatusOr<Tenant> Start(const std::string& options,
                               const std::vector<std::string>& environment);
  // Without Rondo, on the GPU of that index.
  absl::StatusOr<Tenant> StartPlain(const std::string& options, int gpu = 0);
  // In a pod with these annotations, which EndPods ends.
  absl::StatusOr<Tenant> StartInPod(
      const std::map<std::string, std::string>& annotations,
      const std::string& options);
  void EndPods();
  std::vector<std::string> NodeEnvironment() const;
  static Service ServiceOf(const sim::driver::TenantProcess& tenant);
  static absl::Status JudgeLatency(const Outcome& before, const Outcome& after);
  void ShowService(absl::string_view what, const Service& service);
  absl::StatusOr<Outcome> ServiceBesideBatch(bool with_rondo);

  const sim::Node& node_;
  sim::driver::NodeDriver& driver_;
  StandInKubelet& kubelet_;
  StandInPodApis& pod_apis_;
  Narrator& narrator_;
  int last_pod_ = 0;
  std::vector<std::string> pods_;  // that run
};

}  // namespace rondo::demo

#endif  // RONDO_DEMO_SHARING_TOUR_H_
