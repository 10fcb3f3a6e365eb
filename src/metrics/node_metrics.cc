// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"
#include "metrics/node_view.h"
#include "metrics/prometheus.h"

namespace rondo::metrics {
namespace {

using deviceplugin::ResourceStats;

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
