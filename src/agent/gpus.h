// SPDX-License-Identifier: Apache-2.0
//
// The GPU half of the agent: opens NVML (and keeps trying where the config says
// so), lists the GPUs, and hands plan and GPUs to the device plugin.
//
// Threads: all on the loop's thread, except AddReadings, which any thread may
// call once Gpus exists. Failure: Apply leaves what was in force as it was.

#ifndef RONDO_AGENT_GPUS_H_
#define RONDO_AGENT_GPUS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/event_loop.h"
#include "config/plan.h"
#include "deviceplugin/manager.h"
#include "metrics/node_view.h"
#include "nvml/backend.h"

namespace rondo::agent {

class Gpus {
 public:
  // Opens NVML below a container's driver root.
  using Open = std::function<absl::StatusOr<std::unique_ptr<nvml::Backend>>(
      const std::string& container_driver_root)>;

  using OnSlots =
      std::function<void(const std::vector<deviceplugin::SlotGroup>&)>;

  // How often a machine without driver or GPUs is looked at again.
  static constexpr std::chrono::seconds kRescan{30};

  // on_slots: called with what kubelet knows, after anything about it may have
  // changed.
  Gpus(EventLoop& loop, deviceplugin::ManagerOptions options, Open open,
       OnSlots on_slots);
  ~Gpus();

  // Product names of the GPUs that can be read now; none where NVML cannot be
  // opened.
  std::vector<std::string> Models(const std::string& container_driver_root);

  // Advertises what the plan makes of the GPUs as they are now. Where NVML
  // cannot be opened: an error if the plan says failOnInitError, else OK, and
  // it is tried again later.
  absl::Status Apply(const config::Plan& plan);

  std::vector<deviceplugin::SlotGroup> Slots() const;

  // Null while NVML is not open; the same for ever once it is.
  std::shared_ptr<nvml::Backend> nvml() const { return nvml_; }

  // Fills the plugin's statistics and the GPUs as last listed. Returns what is
  // being waited for; empty = ready.
  std::string Describe(metrics::NodeView& view) const;

  // Driver version, memory, utilisation, processes of the GPUs in the view, as
  // NVML gives them now. May block.
  void AddReadings(metrics::NodeView& view);

 private:
  absl::Status OpenBackend(const std::string& container_driver_root);
  absl::Status List(const config::Plan& plan);
  void TryAgainLater(const config::Plan& plan);
  // A GPU that was lost when it was listed is in no list and has no health to
  // recover: it is looked for until it can be read.
  void AwaitUnreadable(const config::Plan& plan);

  EventLoop& loop_;
  const deviceplugin::ManagerOptions manager_options_;
  const Open open_;
  const OnSlots on_slots_;
  std::shared_ptr<nvml::Backend> nvml_;
  std::unique_ptr<deviceplugin::Manager> manager_;
  deviceplugin::GpuList list_;
  EventLoop::TimerId rescan_ = 0;
};

}  // namespace rondo::agent

#endif  // RONDO_AGENT_GPUS_H_
