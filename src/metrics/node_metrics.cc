// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"
#include "metrics/node_view.h"
#include "metrics/prometheus.h"

namespace rondo::metrics {
namespace {

using deviceplugin::ResourceStats;
using share::SlotStats;

template <typename T>
std::optional<double> Known(const T& value) {
  return static_cast<double>(value);
}
template <typename T>
std::optional<double> Known(const std::optional<T>& value) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

void AddConfig(const ConfigView& config, PrometheusText& out) {
  out.Family("rondo_config_generation", "gauge",
             "Configs taken since the start; 0 = none yet.");
  out.Sample({}, static_cast<double>(config.generation));
  out.Family("rondo_config_info", "gauge",
             "The config in force: hash of its text and its file.");
  out.Sample({{"hash", config.hash}, {"origin", config.origin}}, 1);
  out.Family("rondo_config_reloads_total", "counter",
             "Configs offered, by what became of them.");
  out.Sample({{"result", "accepted"}}, static_cast<double>(config.accepted));
  out.Sample({{"result", "refused"}}, static_cast<double>(config.refusals));
  out.Family("rondo_config_refused", "gauge",
             "1 while the newest config on disk is refused and an older one is "
             "in force.");
  out.Sample({}, config.refused ? 1 : 0);
  out.Family("rondo_config_warnings", "gauge",
             "Warnings about the config in force.");
  out.Sample({}, static_cast<double>(config.warnings.size()));
}

// One row a family: a value of each resource.
struct ResourceFamily {
  const char* name;
  const char* type;
  const char* help;
  double (*value)(const ResourceStats&);
};

constexpr ResourceFamily kResourceFamilies[] = {
    {"rondo_resource_registered", "gauge",
     "1 while kubelet has the resource registered and watches its list.",
     [](const ResourceStats& r) {
       return r.registered && r.watched ? 1.0 : 0.0;
     }},
    {"rondo_registrations_total", "counter",
     "Registrations that kubelet accepted.",
     [](const ResourceStats& r) {
       return static_cast<double>(r.registrations);
     }},
    {"rondo_registration_failures_total", "counter",
     "Registrations that failed; each is tried again.",
     [](const ResourceStats& r) {
       return static_cast<double>(r.registration_failures);
     }},
    {"rondo_lists_sent_total", "counter", "Device lists sent to kubelet.",
     [](const ResourceStats& r) { return static_cast<double>(r.lists_sent); }},
    {"rondo_devices_allocated_total", "counter",
     "Devices handed to containers.",
     [](const ResourceStats& r) {
       return static_cast<double>(r.devices_allocated);
     }},
};

void AddDevices(const std::vector<ResourceStats>& resources,
                PrometheusText& out) {
  out.Family("rondo_devices", "gauge",
             "Advertised devices (replicas count) by health. Retired: no "
             "longer configured, kept for running pods.");
  for (const ResourceStats& r : resources) {
    out.Sample({{"resource", r.name}, {"health", "healthy"}},
               static_cast<double>(r.healthy));
    out.Sample({{"resource", r.name}, {"health", "unhealthy"}},
               static_cast<double>(r.unhealthy - r.retired));
    out.Sample({{"resource", r.name}, {"health", "retired"}},
               static_cast<double>(r.retired));
  }
  out.Family("rondo_device_healthy", "gauge",
             "1 for a healthy GPU or MIG device, 0 otherwise.");
  for (const ResourceStats& r : resources)
    for (const auto& d : r.devices)
      out.Sample({{"resource", r.name}, {"uuid", d.uuid}, {"gpu", d.index}},
                 d.healthy ? 1 : 0);
  for (const ResourceFamily& family : kResourceFamilies) {
    out.Family(family.name, family.type, family.help);
    for (const ResourceStats& r : resources)
      out.Sample({{"resource", r.name}}, family.value(r));
  }
}

struct SlotFamily {
  const char* name;
  const char* type;
  const char* help;
  std::optional<double> (*value)(const SlotStats&);  // none: not known
};

constexpr SlotFamily kSlotFamilies[] = {
    {"rondo_slot_memory_limit_bytes", "gauge",
     "Memory that the slot may have; a limit only where it is enforced.",
     [](const SlotStats& s) { return Known(s.limit_bytes); }},
    {"rondo_slot_memory_enforced", "gauge",
     "1 where allocations above the limit are refused.",
     [](const SlotStats& s) { return Known(s.enforced); }},
    {"rondo_slot_memory_used_bytes", "gauge",
     "Device memory that the slot's processes hold.",
     [](const SlotStats& s) { return Known(s.device_bytes); }},
    {"rondo_slot_managed_memory_bytes", "gauge",
     "Managed memory of the slot's processes, at most.",
     [](const SlotStats& s) { return Known(s.managed_bytes); }},
    {"rondo_slot_memory_reservations_total", "counter",
     "Allocations that were asked for.",
     [](const SlotStats& s) { return Known(s.reservations); }},
    {"rondo_slot_memory_denials_total", "counter",
     "Allocations that were refused for the limit.",
     [](const SlotStats& s) { return Known(s.denials); }},
    {"rondo_slot_audit_difference_bytes", "gauge",
     "What the driver charges the slot's processes with, less the ledger's "
     "number.",
     [](const SlotStats& s) { return Known(s.audit_difference_bytes); }},
    {"rondo_slot_audit_alarms_total", "counter", "Audits with a difference.",
     [](const SlotStats& s) { return Known(s.audit_alarms); }},
    {"rondo_slot_time_slice_seconds", "gauge",
     "The slot's time slice in force.",
     [](const SlotStats& s) -> std::optional<double> {
       if (!s.slice_us) return std::nullopt;
       return *s.slice_us / 1e6;
     }},
    {"rondo_slot_time_limit", "gauge",
     "Most of the GPU's time that the slot may have; 1 = no limit.",
     [](const SlotStats& s) { return Known(s.limit); }},
    {"rondo_slot_used_share", "gauge",
     "Share of the GPU's time that it had in the last second.",
     [](const SlotStats& s) { return Known(s.used_share); }},
    {"rondo_slot_gpu_time_seconds_total", "counter",
     "Time that it had the GPU, by the GPU's context-switch log.",
     [](const SlotStats& s) -> std::optional<double> {
       if (!s.gpu_time_us) return std::nullopt;
       return *s.gpu_time_us / 1e6;
     }},
    {"rondo_slot_suspensions_total", "counter",
     "Times that the slot was suspended.",
     [](const SlotStats& s) { return Known(s.suspensions); }},
    {"rondo_slot_suspension_escapes_total", "counter",
     "Times that it was seen running although suspended.",
     [](const SlotStats& s) { return Known(s.escapes); }},
    {"rondo_slot_refused_messages_total", "counter",
     "Messages of its processes that were refused: malformed, or naming "
     "somebody else's handles.",
     [](const SlotStats& s) { return Known(s.refused_messages); }},
    {"rondo_slot_governed", "gauge",
     "0 where a process of the slot escapes the controls; /api/v1/node says "
     "why.",
     [](const SlotStats& s) { return Known(s.governed); }},
    {"rondo_slot_processes", "gauge", "Processes that are attached.",
     [](const SlotStats& s) { return Known(s.processes.size()); }},
};

void AddPods(const PodsView& pods, PrometheusText& out) {
  out.Family("rondo_slot_holders_known", "gauge",
             "1 while kubelet tells which pod holds which slot.");
  out.Sample({}, pods.holders_known ? 1 : 0);
  out.Family("rondo_annotation_source", "gauge",
             "1 for where the annotations of pods are read.");
  const std::pair<const char*, PodSource> sources[] = {
      {"none", PodSource::kNone},
      {"pods-api", PodSource::kPodsApi},
      {"api-server", PodSource::kApiServer}};
  for (const auto& [name, source] : sources)
    out.Sample({{"source", name}}, pods.source == source ? 1 : 0);
  out.Family("rondo_annotations_invalid", "gauge",
             "Annotations of pods that are not in force; /api/v1/node says "
             "why.");
  out.Sample({}, static_cast<double>(pods.invalid.size()));
}

LabelList SlotLabels(const SlotStats& slot, const PodsView& pods) {
  LabelList labels = {{"slot", slot.slot}};
  if (const auto pod = pods.slots.find(slot.slot); pod != pods.slots.end()) {
    labels.emplace_back("namespace", pod->second.name_space);
    labels.emplace_back("pod", pod->second.name);
    labels.emplace_back("container", pod->second.container);
  }
  return labels;
}

void AddSharing(const SharingView& sharing, PrometheusText& out) {
  out.Family("rondo_sharing_problem", "gauge",
             "1 while slots cannot be kept as configured; /api/v1/node says "
             "why.");
  out.Sample({}, sharing.problem.empty() ? 0 : 1);
  if (sharing.on) AddPods(sharing.pods, out);
  out.Family("rondo_slot_weight", "gauge",
             "Weight of the slot's share of time, and its class.");
  for (const SlotStats& s : sharing.stats.slots) {
    LabelList labels = SlotLabels(s, sharing.pods);
    labels.emplace_back("class", s.cls);
    out.Sample(labels, s.weight);
  }
  for (const SlotFamily& family : kSlotFamilies) {
    out.Family(family.name, family.type, family.help);
    for (const SlotStats& s : sharing.stats.slots)
      if (const auto value = family.value(s))
        out.Sample(SlotLabels(s, sharing.pods), *value);
  }
}

void AddForeign(const std::vector<activity::ForeignView>& gpus,
                PrometheusText& out) {
  out.Family("rondo_gpu_foreign_processes", "gauge",
             "Processes that use a shared GPU and are attached to none of its "
             "slots.");
  for (const activity::ForeignView& gpu : gpus)
    out.Sample({{"uuid", gpu.gpu_uuid}},
               static_cast<double>(gpu.processes.size()));
  out.Family("rondo_gpu_foreign_memory_bytes", "gauge",
             "Memory that those hold.");
  for (const activity::ForeignView& gpu : gpus) {
    std::optional<uint64_t> sum = 0;
    for (const activity::ForeignProcess& process : gpu.processes)
      sum = sum && process.memory_bytes
                ? std::optional(*sum + *process.memory_bytes)
                : std::nullopt;
    if (sum) out.Sample({{"uuid", gpu.gpu_uuid}}, static_cast<double>(*sum));
  }
  out.Family("rondo_gpu_foreign_seconds_total", "counter",
             "Time on the GPU that such processes had.");
  for (const activity::ForeignView& gpu : gpus)
    if (gpu.gpu_seconds) out.Sample({{"uuid", gpu.gpu_uuid}}, *gpu.gpu_seconds);
}

void AddRpcs(const std::vector<ResourceStats>& resources, PrometheusText& out) {
  struct Method {
    const char* name;
    const deviceplugin::RpcStats ResourceStats::*stats;
  };
  constexpr Method kMethods[] = {
      {"Allocate", &ResourceStats::allocate},
      {"GetPreferredAllocation", &ResourceStats::preferred_allocation}};
  const std::vector<double> bounds(deviceplugin::kDurationBounds.begin(),
                                   deviceplugin::kDurationBounds.end());
  out.Family("rondo_rpc_duration_seconds", "histogram",
             "Time that calls of kubelet took, failed ones included.");
  for (const ResourceStats& r : resources)
    for (const Method& m : kMethods) {
      const auto& durations = (r.*m.stats).durations;
      out.Histogram({{"resource", r.name}, {"method", m.name}}, bounds,
                    {durations.buckets.begin(), durations.buckets.end()},
                    durations.sum_seconds);
    }
  out.Family("rondo_rpc_errors_total", "counter",
             "Calls of kubelet that were answered with an error.");
  for (const ResourceStats& r : resources)
    for (const Method& m : kMethods)
      out.Sample({{"resource", r.name}, {"method", m.name}},
                 static_cast<double>((r.*m.stats).errors));
}

}  // namespace

std::string RenderPrometheus(const NodeView& node) {
  PrometheusText out;
  out.Family("rondo_build_info", "gauge", "The version of this agent.");
  out.Sample({{"version", kVersion}}, 1);
  out.Family("rondo_start_time_seconds", "gauge", "Start, Unix time.");
  out.Sample({}, static_cast<double>(node.start_unix_seconds));
  out.Family("rondo_ready", "gauge",
             "1 when every resource is registered with kubelet.");
  out.Sample({}, node.ready ? 1 : 0);
  AddConfig(node.config, out);
  AddDevices(node.plugin.resources, out);
  AddRpcs(node.plugin.resources, out);
  AddSharing(node.sharing, out);
  AddForeign(node.sharing.foreign, out);
  struct Counter {
    const char* name;
    const char* help;
    uint64_t value;
  };
  const Counter counters[] = {
      {"rondo_kubelet_restarts_total", "Restarts of kubelet seen.",
       node.plugin.kubelet_restarts},
      {"rondo_xid_events_total",
       "Critical Xid events that made a device unhealthy.",
       node.plugin.xid_events},
      {"rondo_gpu_recoveries_total",
       "Devices that became healthy again after a fault.",
       node.plugin.recoveries},
      {"rondo_nvml_wait_errors_total",
       "Errors while waiting for NVML's events.",
       node.plugin.nvml_wait_errors}};
  for (const Counter& c : counters) {
    out.Family(c.name, "counter", c.help);
    out.Sample({}, static_cast<double>(c.value));
  }
  return out.text();
}

}  // namespace rondo::metrics
