// SPDX-License-Identifier: Apache-2.0
//
// A simulated GPU node on disk: the staged driver root that programs load
// libnvidia-ml.so.1 from, and a handle to change what they see. `rondo sim` is
// a shell around it; tests use it directly:
//
//   auto node = sim::Node::Create("4xA100-SXM4-80GB", temp.path());
//   auto nvml = nvml::Real::Load(node->library_path());
//   node->Xid(0, 79);
//
// Threads: all methods may be called from any thread and, on the same
// directory, from any process. Failure: InvalidArgument for a bad profile or
// GPU; NotFound where no node is staged; ResourceExhausted where a table of
// state.h is full; else the system's reason.

#ifndef RONDO_SIM_NODE_H_
#define RONDO_SIM_NODE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rondo::sim {

struct NodeState;

struct SimProcess {
  uint32_t pid = 0;
  uint64_t used_bytes = 0;
  uint32_t sm_percent = 0;
  uint32_t memory_percent = 0;
  int mig_slot = -1;  // -1 = the whole GPU
  bool graphics = false;
};

struct Place {
  int gpu = 0;
  int mig_slot = -1;  // -1 = the whole GPU
};

class Node {
 public:
  // Stages a node under dir (made if missing) as a driver root:
  //   usr/lib64/libnvidia-ml.so.1, usr/lib64/rondo-sim.state,
  //   dev/nvidia*, proc/driver/nvidia-caps/mig-minors,
  //   sys/bus/pci/devices/<bus id>/numa_node
  // profile is a short form such as "8xH100" or "2xA100+3g.40gb+3g.40gb,T4", or
  // the path of a YAML file (docs/sim.md). A node that was there is replaced.
  static absl::StatusOr<Node> Create(absl::string_view profile,
                                     const std::string& dir);
  // A node staged earlier. path: its directory, or its state file.
  static absl::StatusOr<Node> Open(const std::string& path);

  Node(Node&&) noexcept;
  Node& operator=(Node&&) noexcept;
  ~Node();

  const std::string& dir() const { return dir_; }
  const std::string& state_path() const { return state_path_; }
  // For nvml::Real; its folder for LD_LIBRARY_PATH.
  std::string library_path() const;

  int gpu_count() const;
  const NodeState& state() const { return *state_; }
  // InvalidArgument for an index that is not there.
  absl::StatusOr<std::string> Uuid(int gpu) const;
  // What text names: the index of a GPU, or the UUID of a GPU or MIG device.
  absl::StatusOr<Place> Find(absl::string_view text) const;

  // Raises a critical Xid on the GPU; waiters wake at once. Xids that NVIDIA
  // lists as needing a reset or reboot leave the GPU in need of it until Clear.
  // mig_slot: the event names this MIG device.
  absl::Status Xid(int gpu, uint64_t xid, int mig_slot = -1);
  // The GPU falls off the bus: Xid 79, then every call on it says GPU_IS_LOST.
  absl::Status Lose(int gpu);
  // A double-bit memory error: ECC event, counters, Xid 48, row remap pending.
  absl::Status EccError(int gpu);
  // A reset: all is well again. Aggregate ECC counters stay, as on real GPUs.
  absl::Status Clear(int gpu);

  // Adds the process, or replaces the one with the same pid and MIG device.
  absl::Status SetProcess(int gpu, const SimProcess& process);
  // The shares of the GPU's processes were measured just now.
  absl::Status SetMeasured(int gpu);
  absl::Status RemoveProcess(int gpu, uint32_t pid);

 private:
  Node(std::string dir, std::string state_path, NodeState* state);
  std::string dir_;
  std::string state_path_;
  NodeState* state_ = nullptr;  // shared mapping
};

}  // namespace rondo::sim

#endif  // RONDO_SIM_NODE_H_
