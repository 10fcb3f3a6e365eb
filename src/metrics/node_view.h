// SPDX-License-Identifier: Apache-2.0
//
// The node at one moment, as /metrics and /api/v1/node show it. Plain values,
// filled by the agent.

#ifndef RONDO_METRICS_NODE_VIEW_H_
#define RONDO_METRICS_NODE_VIEW_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "activity/stats.h"
#include "deviceplugin/stats.h"
#include "nvml/backend.h"
#include "share/stats.h"

namespace rondo::metrics {

struct RefusedConfig {
  std::string origin;  // path; empty where no file could be chosen
  std::string error;
  int64_t unix_seconds = 0;
};

struct ConfigView {
  uint64_t generation = 0;  // configs taken since the start; 0 = none yet
  std::string hash;
  std::string origin;  // path; empty = built-in defaults
  std::string why;
  std::string in_force_json;
  std::vector<std::string> warnings;
  std::optional<RefusedConfig> refused;  // the newest one on disk, if bad
  uint64_t accepted = 0;
  uint64_t refusals = 0;
};

// Readings that a GPU or driver may not give: empty then.
struct GpuView {
  nvml::Gpu gpu;
  std::optional<nvml::Memory> memory;
  std::optional<nvml::Utilization> utilization;
  std::optional<std::vector<nvml::Process>> processes;
};

// Where the annotations of pods are read.
enum class PodSource { kNone, kPodsApi, kApiServer };

struct SlotPod {
  std::string name_space;
  std::string name;
  std::string uid;  // empty: not known
  std::string container;
};

// An annotation of a pod that is not in force.
struct InvalidAnnotation {
  std::string name_space;
  std::string pod;
  std::string key;
  std::string value;
  std::string message;
};

struct PodsView {
  bool holders_known = false;
  std::string holders_problem;  // empty: none
  PodSource source = PodSource::kNone;
  std::string source_problem;
  std::map<std::string, SlotPod> slots;  // by slot; those that are held
  std::vector<InvalidAnnotation> invalid;
};

// The pods' half (agent/sharing.h).
struct SharingView {
  bool on = false;      // the library is, or was, put into pods
  std::string problem;  // empty: none
  PodsView pods;
  share::ShareStats stats;
  std::vector<activity::ForeignView> foreign;  // of the GPUs where it is known
};

struct NodeView {
  std::string node_name;  // empty if not told
  std::string driver_version;
  std::optional<int> cuda_driver_version;
  int64_t start_unix_seconds = 0;
  bool ready = false;
  std::string not_ready_reason;
  ConfigView config;
  deviceplugin::Stats plugin;
  std::vector<GpuView> gpus;
  SharingView sharing;
};

// Prometheus text. GPU readings are not part of it: DCGM exporter owns those
// names.
std::string RenderPrometheus(const NodeView& node);

// JSON object, documented in docs/api.md. Bytes and seconds are numbers; what
// is unknown is null.
std::string RenderNodeJson(const NodeView& node);

}  // namespace rondo::metrics

#endif  // RONDO_METRICS_NODE_VIEW_H_
