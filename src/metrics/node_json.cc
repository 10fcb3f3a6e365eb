// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/version.h"
#include "metrics/node_view.h"
#include "metrics/or_null.h"
#include "metrics/share_json.h"
#include "nlohmann/json.hpp"

namespace rondo::metrics {
namespace {

// Keys in the order in which they are written here: people read this too.
using Json = nlohmann::ordered_json;

Json ConfigJson(const ConfigView& config) {
  Json json = {{"generation", config.generation},
               {"hash", TextOrNull(config.hash)},
               {"origin", TextOrNull(config.origin)},
               {"why", TextOrNull(config.why)},
               {"warnings", config.warnings},
               {"refused", nullptr},
               {"accepted", config.accepted},
               {"refusals", config.refusals},
               {"inForce", nullptr}};
  if (config.refused)
    json["refused"] = {{"origin", TextOrNull(config.refused->origin)},
                       {"error", config.refused->error},
                       {"unixSeconds", config.refused->unix_seconds}};
  if (!config.in_force_json.empty())
    json["inForce"] = Json::parse(config.in_force_json, nullptr,
                                  /*allow_exceptions=*/false);
  return json;
}

Json ResourceJson(const deviceplugin::ResourceStats& resource) {
  Json devices = Json::array();
  for (const auto& d : resource.devices)
    devices.push_back({{"uuid", d.uuid},
                       {"gpu", d.gpu_uuid},
                       {"index", d.index},
                       {"name", d.name},
                       {"replicas", d.replicas},
                       {"healthy", d.healthy},
                       {"unhealthyReason", TextOrNull(d.unhealthy_reason)}});
  return {{"name", resource.name},
          {"originalName", resource.original_name},
          {"registered", resource.registered},
          {"watched", resource.watched},
          {"capacity", resource.healthy + resource.unhealthy},
          {"allocatable", resource.healthy},
          {"retired", resource.retired},
          {"devicesAllocated", resource.devices_allocated},
          {"devices", std::move(devices)}};
}

Json GpuJson(const GpuView& view) {
  Json migs = Json::array();
  for (const nvml::MigDevice& mig : view.gpu.migs)
    migs.push_back({{"uuid", mig.uuid},
                    {"slot", mig.slot},
                    {"profile", mig.profile},
                    {"memoryMiB", mig.memory_mib}});
  Json json = {{"index", view.gpu.index},
               {"uuid", view.gpu.uuid},
               {"name", view.gpu.name},
               {"busId", view.gpu.bus_id},
               {"memoryBytes", OrNull(view.gpu.memory_bytes)},
               {"memoryUsedBytes", nullptr},
               {"utilizationPercent", nullptr},
               {"processes", nullptr},
               {"migEnabled", view.gpu.mig_enabled},
               {"migDevices", std::move(migs)}};
  if (view.memory) json["memoryUsedBytes"] = view.memory->used_bytes;
  if (view.utilization)
    json["utilizationPercent"] = view.utilization->gpu_percent;
  if (view.processes) {
    Json processes = Json::array();
    for (const nvml::Process& process : *view.processes)
      processes.push_back(
          {{"pid", process.pid}, {"memoryBytes", OrNull(process.used_bytes)}});
    json["processes"] = std::move(processes);
  }
  return json;
}

Json PodJson(const PodsView& pods, const std::string& slot) {
  const auto pod = pods.slots.find(slot);
  if (pod == pods.slots.end()) return nullptr;
  return {{"namespace", pod->second.name_space},
          {"name", pod->second.name},
          {"uid", TextOrNull(pod->second.uid)},
          {"container", pod->second.container}};
}

Json PodsJson(const PodsView& pods) {
  Json source = nullptr;
  if (pods.source == PodSource::kPodsApi) source = "pods-api";
  if (pods.source == PodSource::kApiServer) source = "api-server";
  Json invalid = Json::array();
  for (const InvalidAnnotation& annotation : pods.invalid)
    invalid.push_back({{"namespace", annotation.name_space},
                       {"name", annotation.pod},
                       {"key", annotation.key},
                       {"value", annotation.value},
                       {"message", annotation.message}});
  return {{"holdersKnown", pods.holders_known},
          {"holdersProblem", TextOrNull(pods.holders_problem)},
          {"annotationSource", std::move(source)},
          {"annotationProblem", TextOrNull(pods.source_problem)},
          {"invalidAnnotations", std::move(invalid)}};
}

// The pod where people look for it: near the front.
Json HeldSlotJson(const share::SlotStats& slot, const PodsView& pods) {
  Json json = {{"slot", slot.slot},
               {"gpu", slot.gpu_uuid},
               {"pod", PodJson(pods, slot.slot)}};
  json.update(SlotJson(slot));
  return json;
}

// Null where it is not known who is nobody's.
Json ForeignJson(const SharingView& sharing, const std::string& uuid) {
  for (const activity::ForeignView& gpu : sharing.foreign) {
    if (gpu.gpu_uuid != uuid) continue;
    Json processes = Json::array();
    for (const activity::ForeignProcess& process : gpu.processes)
      processes.push_back({{"pid", process.pid},
                           {"name", TextOrNull(process.name)},
                           {"memoryBytes", OrNull(process.memory_bytes)}});
    return processes;
  }
  return nullptr;
}

Json SharingJson(const SharingView& sharing) {
  Json gpus = Json::array();
  for (const share::GpuStats& gpu : sharing.stats.gpus) {
    Json json = SharedGpuJson(gpu);
    json["foreignProcesses"] = ForeignJson(sharing, gpu.uuid);
    gpus.push_back(std::move(json));
  }
  Json slots = Json::array();
  for (const share::SlotStats& slot : sharing.stats.slots)
    slots.push_back(HeldSlotJson(slot, sharing.pods));
  return {{"on", sharing.on},
          {"problem", TextOrNull(sharing.problem)},
          {"pods", PodsJson(sharing.pods)},
          {"gpus", std::move(gpus)},
          {"slots", std::move(slots)}};
}

}  // namespace

std::string RenderNodeJson(const NodeView& node) {
  Json resources = Json::array();
  for (const auto& resource : node.plugin.resources)
    resources.push_back(ResourceJson(resource));
  Json gpus = Json::array();
  for (const GpuView& gpu : node.gpus) gpus.push_back(GpuJson(gpu));
  const Json json = {{"version", kVersion},
                     {"node", TextOrNull(node.node_name)},
                     {"driverVersion", TextOrNull(node.driver_version)},
                     {"cudaDriverVersion", OrNull(node.cuda_driver_version)},
                     {"startUnixSeconds", node.start_unix_seconds},
                     {"ready", node.ready},
                     {"notReadyReason", TextOrNull(node.not_ready_reason)},
                     {"config", ConfigJson(node.config)},
                     {"kubeletRestarts", node.plugin.kubelet_restarts},
                     {"resources", std::move(resources)},
                     {"gpus", std::move(gpus)},
                     {"sharing", SharingJson(node.sharing)}};
  // Names of GPUs and files are bytes from outside: what is not UTF-8 is
  // replaced, never thrown.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace rondo::metrics
