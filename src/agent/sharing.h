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
// Pods' annotations change what the config gives a slot (agent/slot_plan.h);
// those that cannot be used are told in the log and, where there is an API
// server, as events of the pod.
//
// Threads: all on the loop's thread. Failure: never one of the caller's. The
// device plugin goes on; what is wrong is logged once and shown in the view.
// What could not be made, or was removed by somebody, is made again every two
// seconds until it is there.

#ifndef RONDO_AGENT_SHARING_H_
#define RONDO_AGENT_SHARING_H_

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "activity/foreign_processes.h"
#include "agent/pod_feed.h"
#include "agent/slot_plan.h"
#include "base/event_loop.h"
#include "base/ticker.h"
#include "config/plan.h"
#include "deviceplugin/manager.h"
#include "kube/event_writer.h"
#include "metrics/node_view.h"
#include "nvml/backend.h"
#include "rm/system.h"
#include "share/activity_bridge.h"
#include "share/share.h"

namespace rondo::agent {

struct SharingOptions {
  std::string folder;     // ManagerOptions::slot_dir; empty: nothing is shared
  std::string no_folder;  // why it is empty
  std::string dev_dir;
  PodFeed::Options pods;
};

class Sharing {
 public:
  // system must outlive the object. nvml: not null once there are slots; called
  // on the loop's thread.
  Sharing(EventLoop& loop, rm::System& system,
          std::function<std::shared_ptr<nvml::Backend>()> nvml,
          SharingOptions options);
  ~Sharing();
  Sharing(const Sharing&) = delete;
  Sharing& operator=(const Sharing&) = delete;

  // Before kubelet is told of the plan's devices: what pods have mounted must
  // be there.
  void Prepare(const config::RondoOptions& options);
  // The plan in force, the file that it is from, and the slots that kubelet
  // knows.
  void Apply(const config::RondoOptions& options, const std::string& origin,
             const std::vector<deviceplugin::SlotGroup>& groups);
  // The plan in force is now another file's, whose text is the same.
  void SetOrigin(const std::string& origin);
  // The slots changed while the plan stayed.
  void SetGroups(const std::vector<deviceplugin::SlotGroup>& groups);
  // Slots were handed to a container: whatever pod held them before, its
  // settings are gone at once.
  void OnAllocated(const std::vector<std::string>& slots);

  void Describe(metrics::NodeView& view) const;

 private:
  std::string LibraryFolder() const;
  bool HasLibrary() const;
  absl::Status Install() const;
  absl::Status Start();
  void StartPods();
  void StartForeign(std::shared_ptr<nvml::Backend> nvml);
  // On the watch's thread.
  void ListProcesses(nvml::Backend& nvml);
  void Configure();
  // Configures once more while something of it is not there.
  void Look();
  SlotPlan Plan() const;
  void NoteGpus();
  void OnPods(const PodReport& report);
  // Puts what pods ask for in force where it differs.
  void FollowPods();
  void Tell(const std::vector<PodProblem>& problems);
  void Report(const absl::Status& status);

  EventLoop& loop_;
  rm::System& system_;
  const std::function<std::shared_ptr<nvml::Backend>()> nvml_;
  const SharingOptions options_;
  EventLoop::TimerId look_timer_ = 0;
  bool wanted_ = false;
  absl::Status installed_;
  std::string problem_;
  config::RondoOptions rondo_;
  std::string origin_;
  std::vector<deviceplugin::SlotGroup> groups_;
  std::unique_ptr<share::Share> share_;
  std::unique_ptr<share::ActivityBridge> feed_;  // before share_ at the end

  PodBook book_;
  PodReport report_;  // the last one
  SlotPlan plan_;     // in force
  ToldProblems told_;
  // Tasks posted by threads look whether this is still there.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unique_ptr<kube::EventWriter> events_;  // null: no API server
  std::unique_ptr<PodFeed> pod_feed_;          // null until there are slots

  activity::ForeignProcesses foreign_;
  std::mutex shared_gpus_mutex_;
  std::set<std::string> shared_gpus_;      // guarded by shared_gpus_mutex_
  std::unique_ptr<Ticker> foreign_watch_;  // last: uses the above
};

}  // namespace rondo::agent

#endif  // RONDO_AGENT_SHARING_H_
