// SPDX-License-Identifier: Apache-2.0
//
// The device-manager half of a kubelet, in-process: speaks the real
// device-plugin protocol over real unix sockets, keeps capacity and
// allocatable, and admits pods the way kubelet does. For tests, benchmarks and
// `rondo demo`.
//
// Rules and texts follow kubernetes pkg/kubelet/cm/devicemanager 1.37:
// removes every socket of its folder when it starts; calls a plugin back before
// it answers Register; refuses a second registration of a socket that it is
// still connected to, and never forgets that socket then; takes each list as a
// whole; writes kubelet_internal_checkpoint.
//
// Threads: all methods from any thread. Methods that talk to a plugin block.

#ifndef RONDO_DEMO_STAND_IN_KUBELET_H_
#define RONDO_DEMO_STAND_IN_KUBELET_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "demo/plugin_client.h"

namespace rondo::demo {

struct Admission {
  enum class Phase {
    kRunning,
    kPending,  // the scheduler found no room; nothing is held
    kFailed,   // kubelet refused: final, as in a cluster
  };
  Phase phase = Phase::kRunning;
  std::string reason;         // "Unschedulable", "UnexpectedAdmissionError"
  std::string message;        // as the pod's event shows it
  std::vector<Grant> grants;  // one a container and resource
};

// Limits of one container: resource name -> count.
using Container = std::map<std::string, int>;

struct ResourceCounts {
  int capacity = 0;
  int allocatable = 0;    // healthy
  int lists = 0;          // messages received since the plugin registered
  int registrations = 0;  // since the stand-in was made, kubelet restarts too
  bool connected = false;
};

class StandInKubelet {
 public:
  // dir: the device-plugins folder; made if it is not there.
  explicit StandInKubelet(std::string dir);
  ~StandInKubelet();
  StandInKubelet(const StandInKubelet&) = delete;
  StandInKubelet& operator=(const StandInKubelet&) = delete;

  // Cleans the folder and serves kubelet.sock. Allocations made before a Stop
  // are still known, as from the checkpoint.
  absl::Status Start();
  // kubelet ends: so do all connections, and the socket file goes.
  void Stop();
  // Ends every ListAndWatch stream and connection, as after a stream error;
  // the plugins stay unknown until they register again.
  void DropPlugins();

  // By resource name; a resource that never registered has zeros.
  ResourceCounts Counts(const std::string& resource) const;
  std::vector<std::string> Ids(const std::string& resource, bool healthy) const;
  std::string socket_path() const;

  // Waits until `done` holds for the counts; false at the deadline.
  bool WaitFor(
      const std::string& resource,
      const std::function<bool(const ResourceCounts&)>& done,
      std::chrono::milliseconds deadline = std::chrono::milliseconds(10000));
  // WaitFor a number of allocatable devices.
  bool WaitForAllocatable(const std::string& resource, int count) {
    return WaitFor(resource, [count](const ResourceCounts& counts) {
      return counts.allocatable == count;
    });
  }

  // Scheduler's count, then kubelet's admission: GetPreferredAllocation and
  // Allocate for each container in turn.
  Admission Admit(const std::string& pod,
                  const std::vector<Container>& containers);
  // Admission as when the scheduler was passed over or out of date.
  Admission AdmitUnscheduled(const std::string& pod,
                             const std::vector<Container>& containers);
  // The pod ends. Unlike kubelet, which forgets at the next admission, the
  // checkpoint is written at once.
  void Remove(const std::string& pod);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rondo::demo

#endif  // RONDO_DEMO_STAND_IN_KUBELET_H_
