// SPDX-License-Identifier: Apache-2.0
//
// The simulated kernel driver of a staged node: its cards are the node's, and
// who uses them shows in the node's NVML. `rondo sim` starts one for the
// program that it runs; tests use it directly:
//
//   auto node = sim::Node::Create("H200", dir);
//   auto driver = sim::driver::NodeDriver::Start(dir);
//   ... programs with driver::AddToEnvironment(dir) ...
//
// Threads: one; the driver has its own. Failure: as Node::Open and
// Server::Start.

#ifndef RONDO_SIM_DRIVER_NODE_DRIVER_H_
#define RONDO_SIM_DRIVER_NODE_DRIVER_H_

#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sim/driver/server.h"
#include "sim/node.h"

namespace rondo::sim::driver {

inline constexpr char kCudaLibraryName[] = "libcuda.so.1";
// Preloaded, after whatever else is, so that it is the last to see a call.
inline constexpr char kInterposerName[] = "librondo-sim-driver.so";

// Writes both into folder; part of staging a node.
absl::Status StageLibraries(const std::string& folder);

// The variables that a program on the node needs, as they are to be set;
// preload and path: what they are now.
std::map<std::string, std::string> Environment(const Node& node,
                                               const std::string& path,
                                               const std::string& preload);

class NodeDriver {
 public:
  // dir: where a node is staged. It ends with the object; programs then get
  // ENXIO and EIO, as from a driver that is gone. lacks: controls that it does
  // not have.
  static absl::StatusOr<std::unique_ptr<NodeDriver>> Start(
      const std::string& dir, const std::set<uint32_t>& lacks = {});

  // What happened on a GPU since the last call. Any thread.
  CardCounts TakeCounts(int gpu) { return server_->TakeCounts(gpu); }

 private:
  explicit NodeDriver(Node node) : node_(std::move(node)) {}
  void Show(size_t card, const std::map<uint32_t, ProcessUse>& use);

  Node node_;
  std::map<size_t, std::map<uint32_t, ProcessUse>> shown_;
  std::unique_ptr<Server> server_;
};

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_NODE_DRIVER_H_
