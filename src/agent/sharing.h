// SPDX-License-Identifier: Apache-2.0
//
// The pods' half of the agent: keeps a slot for every replica that a pod may
// hold, with the limits that the config says, and the library that pods load.
//
// Everything lies below one folder of the host, which pods have parts of
// mounted (deviceplugin/allocate.h). It runs from the first config that puts
// the library into pods, and then for as long as the library lies in that
// folder: pods started under such a config follow every later one, also one
// that says `memory: off`, and also after a restart of the agent.
//
// Threads: all on the loop's thread. Failure: never one of the caller's. The
// device plugin goes on; what is wrong is logged once and shown in the view.

#ifndef RONDO_AGENT_SHARING_H_
#define RONDO_AGENT_SHARING_H_

#include <memory>
#include <string>
#include <vector>

#include "agent/activity_feed.h"
#include "base/event_loop.h"
#include "config/plan.h"
#include "deviceplugin/manager.h"
#include "metrics/node_view.h"
#include "rm/system.h"
#include "share/share.h"

namespace rondo::agent {

// What the plan makes of the slots. A slot's limit is slotMemory or, with
// `auto`, what programs can have of the device's memory divided by its
// replicas, in whole MiB; none where the device's memory is not known.
share::ShareConfig MakeShareConfig(
    const config::RondoOptions& options,
    const std::vector<deviceplugin::SlotGroup>& groups);

class Sharing {
 public:
  // folder: ManagerOptions::slot_dir. Empty: nothing is shared.
  // system must outlive the object.
  Sharing(EventLoop& loop, rm::System& system, std::string folder,
          std::string dev_dir);
  ~Sharing();
  Sharing(const Sharing&) = delete;
  Sharing& operator=(const Sharing&) = delete;

  // Before kubelet is told of the plan's devices: what pods have mounted must
  // be there.
  void Prepare(const config::RondoOptions& options);
  // The plan in force, and the slots that kubelet knows.
  void Apply(const config::RondoOptions& options,
             const std::vector<deviceplugin::SlotGroup>& groups);
  // The slots changed while the plan stayed.
  void SetGroups(const std::vector<deviceplugin::SlotGroup>& groups);

  void Describe(metrics::NodeView& view) const;

 private:
  absl::Status Install() const;
  absl::Status Start();
  void Configure();
  void Report(const absl::Status& status);

  EventLoop& loop_;
  rm::System& system_;
  const std::string folder_;
  const std::string dev_dir_;
  bool wanted_ = false;
  absl::Status installed_;
  std::string problem_;
  config::RondoOptions options_;
  std::vector<deviceplugin::SlotGroup> groups_;
  std::unique_ptr<share::Share> share_;
  std::unique_ptr<ActivityFeed> feed_;  // before share_ at the end
};

}  // namespace rondo::agent

#endif  // RONDO_AGENT_SHARING_H_
