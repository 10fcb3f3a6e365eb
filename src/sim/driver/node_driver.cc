// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/node_driver.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "sim/state.h"

extern "C" {
// embedded.S
extern const char rondo_sim_libcuda_begin[], rondo_sim_libcuda_end[];
extern const char rondo_sim_interpose_begin[], rondo_sim_interpose_end[];
}

namespace rondo::sim::driver {
namespace {

absl::string_view Text(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

absl::Status StageLibraries(const std::string& folder) {
  RONDO_RETURN_IF_ERROR(WriteFileAtomically(
      absl::StrCat(folder, "/", kCudaLibraryName),
      Text(rondo_sim_libcuda_begin, rondo_sim_libcuda_end), 0755));
  return WriteFileAtomically(
      absl::StrCat(folder, "/", kInterposerName),
      Text(rondo_sim_interpose_begin, rondo_sim_interpose_end), 0755);
}

std::map<std::string, std::string> Environment(const Node& node,
                                               const std::string& path,
                                               const std::string& preload) {
  const std::string folder =
      std::filesystem::path(node.library_path()).parent_path();
  return {
      {"LD_LIBRARY_PATH",
       path.empty() ? folder : absl::StrCat(folder, ":", path)},
      {"LD_PRELOAD", absl::StrCat(preload, preload.empty() ? "" : ":", folder,
                                  "/", kInterposerName)},
      {kStateVariable, node.dir()},
  };
}

absl::StatusOr<std::unique_ptr<NodeDriver>> NodeDriver::Start(
    const std::string& dir, const std::set<uint32_t>& lacks) {
  RONDO_ASSIGN_OR_RETURN(Node node, Node::Open(dir));
  std::unique_ptr<NodeDriver> driver(new NodeDriver(std::move(node)));
  const NodeState& state = driver->node_.state();
  Server::Options options;
  options.dir =
      std::filesystem::path(driver->node_.library_path()).parent_path();
  options.driver_version = state.driver_version;
  options.lacks = lacks;
  for (uint32_t i = 0; i < state.gpu_count; ++i) {
    const GpuState& gpu = state.gpus[i];
    CardOptions card;
    card.uuid = gpu.uuid;
    card.total_kib = uint64_t{gpu.memory_mib} * 1024;
    card.heap_kib = uint64_t{gpu.memory_mib - gpu.reserved_mib} * 1024;
    options.cards.push_back(std::move(card));
    options.devices.push_back(absl::StrCat("nvidia", gpu.minor));
    RONDO_RETURN_IF_ERROR(driver->node_.SetMeasured(static_cast<int>(i)));
  }
  options.on_use = [d = driver.get()](size_t card, const auto& use) {
    d->Show(card, use);
  };
  options.on_measured = [d = driver.get()](size_t card) {
    d->node_.SetMeasured(static_cast<int>(card)).IgnoreError();
  };
  RONDO_ASSIGN_OR_RETURN(driver->server_, Server::Start(std::move(options)));
  return driver;
}

void NodeDriver::Show(size_t card, const std::map<uint32_t, ProcessUse>& use) {
  auto& shown = shown_[card];
  for (const auto& [pid, ignored] : shown)
    if (use.count(pid) == 0)
      node_.RemoveProcess(static_cast<int>(card), pid).IgnoreError();
  for (const auto& [pid, u] : use) {
    SimProcess process;
    process.pid = pid;
    process.used_bytes = u.bytes;
    process.sm_percent = u.sm_percent;
    // NVML lists 64 processes of a GPU here; the driver itself knows no limit.
    const absl::Status status =
        node_.SetProcess(static_cast<int>(card), process);
    if (!status.ok()) LogWarning("simulated driver: ", status.message());
  }
  shown = use;
}

}  // namespace rondo::sim::driver
