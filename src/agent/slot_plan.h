// SPDX-License-Identifier: Apache-2.0
//
// From what the config gives every slot, and what the pods that hold them ask
// for, to the settings of each slot. Pure; any thread.

#ifndef RONDO_AGENT_SLOT_PLAN_H_
#define RONDO_AGENT_SLOT_PLAN_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "agent/annotations.h"
#include "config/plan.h"
#include "deviceplugin/manager.h"
#include "kube/pod.h"
#include "metrics/node_view.h"
#include "share/share.h"

namespace rondo::agent {

// What the plan makes of the slots. A slot's limit is slotMemory, or all that
// programs can have of the device where that is less; with `auto`, that divided
// by the device's replicas, in whole MiB; none where the device's memory is not
// known.
share::ShareConfig MakeShareConfig(
    const config::RondoOptions& options,
    const std::vector<deviceplugin::SlotGroup>& groups);

// Where the slots of a device are promised more memory than it has: all that
// can be done is to say so, with the place in the file and what to write.
// Names the first such device.
absl::Status CheckSlotMemory(
    const config::RondoOptions& options,
    const std::vector<deviceplugin::SlotGroup>& groups);

// Which pod holds which slot, and what is known of the pods. Follows reports
// that may be older than what the device plugin has just done.
class PodBook {
 public:
  // Slots were handed out just now: whoever held them holds them no more, and
  // reports with a lower number do not know the new one.
  void OnAllocated(const std::vector<std::string>& slots, uint64_t number);
  // Who holds what, as of the number. recorded: of PodReport; it counts for
  // slots that none of the holders has. The record may be older than the last
  // Allocate: a container that it named before is not believed for a slot that
  // was handed out since.
  void SetHolders(const std::vector<kube::DeviceHolder>& holders,
                  const std::vector<kube::DeviceHolder>& recorded,
                  uint64_t number);
  void SetPods(std::vector<kube::Pod> pods);

  // By slot id. A slot that two pods seem to hold is nobody's. Of a pod that is
  // known from the record, the name is empty.
  const std::map<std::string, metrics::SlotPod>& owners() const {
    return owners_;
  }
  // Of the pod; null: not known. Of several of the name, the newest.
  const kube::Pod* Find(const metrics::SlotPod& owner) const;
  // Of the pods that are known.
  std::set<std::string> uids() const;

 private:
  std::map<std::string, metrics::SlotPod> owners_;
  std::map<std::string, uint64_t> fresh_from_;  // slots handed out since
  // Slot, uid and container, as the record says; and of these, those that were
  // there before the slot was handed out.
  using Record = std::set<std::tuple<std::string, std::string, std::string>>;
  Record recorded_, outdated_;
  std::vector<kube::Pod> pods_;
};

struct PodProblem {
  std::string name_space;
  std::string pod;
  std::string uid;
  AnnotationProblem annotation;
};

// Which problems were told already: each is told once. A pod can be edited for
// ever, so of one pod kMostOfAPod different ones are told and remembered; what
// is wrong now can be seen in the node's view all the same.
class ToldProblems {
 public:
  static constexpr size_t kMostOfAPod = 64;

  // Whether to tell it now.
  bool Add(const PodProblem& problem);
  // Forgets pods that are not among these.
  void KeepOnly(const std::set<std::string>& uids);

 private:
  // By uid: key and value.
  std::map<std::string, std::set<std::pair<std::string, std::string>>> told_;
};

struct SlotPlan {
  share::ShareConfig config;
  std::map<std::string, metrics::SlotPod> owners;  // by slot, uids filled in
  std::vector<PodProblem> problems;  // one for each pod, key and value
};

// gpu_bytes: by uuid, what programs can have of the device's memory.
SlotPlan PlanSlots(share::ShareConfig defaults,
                   const std::map<std::string, uint64_t>& gpu_bytes,
                   const PodBook& book);

}  // namespace rondo::agent

#endif  // RONDO_AGENT_SLOT_PLAN_H_
