// SPDX-License-Identifier: Apache-2.0
//
// The device plugin as the agent sees it: keeps one server for each advertised
// resource, registers them with kubelet, follows configs, GPU health and
// kubelet restarts.
//
// Threads: every method on the event loop's thread, except Snapshot, which any
// thread may call. Calls of kubelet are served on gRPC's threads and never wait
// for the loop. Failure: Apply either takes the new plan or leaves everything
// as it was. Trouble with one resource's socket or with kubelet is not an
// error: it is logged, counted and tried again for as long as it takes.

#ifndef RONDO_DEVICEPLUGIN_MANAGER_H_
#define RONDO_DEVICEPLUGIN_MANAGER_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "config/plan.h"
#include "deviceplugin/stats.h"
#include "nvml/backend.h"

namespace rondo::deviceplugin {

using GpuList = std::vector<absl::StatusOr<nvml::Gpu>>;

// Device ids that running pods hold, by resource name.
using HeldDevices = std::map<std::string, std::set<std::string>>;

// The slots of one shared device: the replicas that a pod may hold.
struct SlotGroup {
  std::string uuid;
  std::optional<uint64_t> usable_bytes;
  int replicas = 0;            // configured; 0: only retired ones are left
  std::set<uint32_t> numbers;  // retired ones included
  bool operator==(const SlotGroup&) const = default;
};

struct ManagerOptions {
  // Where our sockets lie. kubelet looks nowhere else; only tests change it.
  std::string socket_dir = "/var/lib/kubelet/device-plugins";
  std::string cdi_dir = "/var/run/cdi";
  // The host's folder of slot folders and of the library that is put into pods
  // (allocate.h). Empty: nothing is put into pods.
  std::string slot_dir;
  // In front of /proc, /sys, /dev and driver files. Empty: the machine itself.
  std::string root;
  // DP_DISABLE_HEALTHCHECKS and DP_ENABLE_HEALTHCHECKS.
  std::string disable_health_checks;
  std::string enable_health_checks;
  // A GPU that had an Xid is healthy again once it answers and has stayed quiet
  // for this long; twice as long for each relapse, up to 32 times.
  std::chrono::milliseconds recovery_quiet{5000};
  // How often GPUs are asked whether they still answer.
  std::chrono::milliseconds probe_interval{15000};
  // Devices that a new plan drops stay on the list as unhealthy for at least
  // this long, then until no pod holds them: kubelet may be in the middle of
  // allocating one, and crashes if it vanishes under its hands.
  std::chrono::milliseconds retire_min{10000};
  // Called with the ids of a container's allocation before kubelet gets the
  // answer, and so before the container starts. On one of gRPC's threads: it
  // may only post. Optional.
  std::function<void(const std::vector<std::string>& ids)> on_allocate;
  // Who holds what. Default: kubelet's checkpoint in socket_dir.
  std::function<absl::StatusOr<HeldDevices>()> held_devices;
};

class Manager {
 public:
  // Borrows loop, backend and clock: they outlive the manager.
  Manager(EventLoop& loop, nvml::Backend& backend, ManagerOptions options,
          const Clock& clock = RealClock());
  // Ends all servers and streams, removes the sockets. kubelet then shows the
  // resources as unallocatable.
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // Advertises what the plan makes of these GPUs (Backend::ListGpus). Servers
  // whose resource name stays keep their registration and only send a new list.
  // InvalidArgument where plan and GPUs contradict each other (a device that
  // does not exist, MIG rules): nothing has changed then. flags.kubelet_socket
  // empty: serve, but do not register.
  absl::Status Apply(const config::Plan& plan, const GpuList& gpus);

  // Called on the loop's thread after anything that Snapshot shows as state
  // has changed (registered, healthy counts...). Optional.
  void SetOnChange(std::function<void()> on_change);

  Stats Snapshot() const;

  // By UUID.
  std::vector<SlotGroup> Slots() const;

  // True when every resource is registered and watched by kubelet, or when
  // there is nothing to register.
  bool Ready() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_MANAGER_H_
