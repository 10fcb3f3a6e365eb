// SPDX-License-Identifier: Apache-2.0
//
// The validated configuration of one node: what the rest of Rondo works from.
// Made by config::Compile only (config/compile.h): text -> Spec -> Plan. Plain
// values; copy freely; any thread.
//
// The file format is NVIDIA's device-plugin config v1 plus the top-level key
// `rondo` (docs/config.md).

#ifndef RONDO_CONFIG_PLAN_H_
#define RONDO_CONFIG_PLAN_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rondo::config {

enum class MigStrategy { kNone, kSingle, kMixed };

enum class DeviceListStrategy {
  kEnvvar,
  kVolumeMounts,
  kCdiAnnotations,
  kCdiCri
};

enum class DeviceIdStrategy { kUuid, kIndex };

// How replicas are chosen when kubelet asks which it should take. kSpread:
// distinct GPUs for one container first.
enum class AllocationPolicy { kDistributed, kPacked, kSpread };

// Everything NVIDIA's plugin takes as flags, merged: command line > environment
// > file > default.
struct Flags {
  MigStrategy mig_strategy = MigStrategy::kNone;
  bool fail_on_init_error = true;
  std::string mps_root;
  std::string nvidia_driver_root = "/";
  std::string nvidia_dev_root;  // filled with nvidia_driver_root when not given
  bool gdrcopy_enabled = false;
  bool gds_enabled = false;
  bool mofed_enabled = false;
  bool use_node_feature_api = true;
  std::string device_discovery_strategy = "auto";
  bool pass_device_specs = false;
  std::vector<DeviceListStrategy> device_list_strategies = {
      DeviceListStrategy::kEnvvar};
  DeviceIdStrategy device_id_strategy = DeviceIdStrategy::kUuid;
  std::string cdi_annotation_prefix = "cdi.k8s.io/";
  std::string nvidia_cdi_hook_path = "/usr/bin/nvidia-ctk";
  std::string container_driver_root = "/driver-root";
  AllocationPolicy allocation_policy = AllocationPolicy::kDistributed;
  // Not in the file:
  std::string config_file;
  std::string kubelet_socket =
      "/var/lib/kubelet/device-plugins/kubelet.sock";  // empty: do not register
  std::string cdi_feature_flags;
  std::string cdi_disable_hooks;
};

// One device named in `devices:`.
struct DeviceRef {
  enum class Kind { kIndex, kMigIndex, kUuid };
  Kind kind = Kind::kIndex;
  std::string text;  // "0", "0:1", "GPU-..." or "MIG-..."
};

// Which devices of a resource are shared.
struct DeviceSelector {
  enum class Kind { kAll, kCount, kList };
  Kind kind = Kind::kAll;
  int count = 0;                // kCount
  std::vector<DeviceRef> list;  // kList
};

struct SharedResource {
  std::string name;  // full name, "nvidia.com/gpu"
  std::string
      rename;  // full name that replicas are advertised under; empty = name
  int replicas = 0;  // >= 2
  DeviceSelector devices;
  int line = 0;    // of the entry in the file, 1-based
  int column = 0;  // the same
};

struct Sharing {
  bool rename_by_default = false;
  bool fail_requests_greater_than_one = false;
  std::vector<SharedResource> resources;
};

struct Imex {
  std::vector<int> channel_ids;
  bool required = false;
};

enum class MemoryMode { kOff, kObserve, kEnforce };
// Managed memory: charged to the limit, or not counted at all.
enum class ManagedMode { kCount, kIgnore };
enum class Injection { kNone, kEnv, kFile, kCdi };
enum class OnAgentLoss { kClosed, kOpen };

// The `rondo:` key. Defaults are what a file without the key means: exactly
// NVIDIA's behaviour, plus metrics.
struct RondoOptions {
  bool present = false;  // the key stands in the file
  MemoryMode memory = MemoryMode::kObserve;
  std::optional<uint64_t> slot_memory_bytes;  // empty = auto: usable / replicas
  int slot_memory_line = 0;    // of the value in the file, 1-based
  int slot_memory_column = 0;  // the same
  ManagedMode managed = ManagedMode::kCount;
  std::chrono::microseconds period{40'000};
  std::chrono::microseconds turn{500'000};
  Injection injection = Injection::kNone;
  OnAgentLoss on_agent_loss = OnAgentLoss::kClosed;
};

struct Plan {
  Flags flags;
  Sharing sharing;
  Imex imex;
  RondoOptions rondo;
  std::string hash;  // of the text it was made from, 16 hex digits; same text =
                     // same hash
};

}  // namespace rondo::config

#endif  // RONDO_CONFIG_PLAN_H_
