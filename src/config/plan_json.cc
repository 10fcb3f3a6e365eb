// SPDX-License-Identifier: Apache-2.0
//
// A Plan as JSON, with the key names and the order of NVIDIA's log line.

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "config/compile.h"
#include "config/duration.h"
#include "config/merge.h"
#include "config/yaml_scalar.h"

namespace rondo::config {
namespace {

// A JSON value that is about to be printed.
struct Json {
  std::string scalar;  // printed as it is
  char brackets = 0;   // '{' or '[' for the two below
  std::vector<std::string> keys;
  std::vector<Json> values;

  static Json Object() { return {"", '{', {}, {}}; }
  static Json Array() { return {"", '[', {}, {}}; }
  static Json Text(absl::string_view text) {
    return {yaml::GoQuote(text), 0, {}, {}};
  }
  static Json Bool(bool value) { return {value ? "true" : "false", 0, {}, {}}; }
  static Json Number(int64_t value) { return {absl::StrCat(value), 0, {}, {}}; }

  Json& Set(std::string key, Json value) {
    keys.push_back(std::move(key));
    values.push_back(std::move(value));
    return *this;
  }
  Json& Push(Json value) { return Set("", std::move(value)); }
};

void Print(const Json& json, int indent, int depth, std::string& out) {
  if (json.brackets == 0) {
    out += json.scalar;
    return;
  }
  out += json.brackets;
  auto line = [&](int level) {
    if (indent > 0)
      absl::StrAppend(&out, "\n", std::string(indent * level, ' '));
  };
  for (size_t i = 0; i < json.values.size(); ++i) {
    if (i > 0) out += ',';
    line(depth + 1);
    if (json.brackets == '{') {
      absl::StrAppend(&out, yaml::GoQuote(json.keys[i]),
                      indent > 0 ? ": " : ":");
    }
    Print(json.values[i], indent, depth + 1, out);
  }
  if (!json.values.empty()) line(depth);
  out += json.brackets == '{' ? '}' : ']';
}

Json FlagsJson(const Flags& flags) {
  Json strategies = Json::Array();
  for (DeviceListStrategy strategy : flags.device_list_strategies) {
    strategies.Push(Json::Text(ToWord(strategy)));
  }
  Json plugin = Json::Object();
  plugin.Set("passDeviceSpecs", Json::Bool(flags.pass_device_specs))
      .Set("deviceListStrategy", std::move(strategies))
      .Set("deviceIDStrategy", Json::Text(ToWord(flags.device_id_strategy)))
      .Set("cdiAnnotationPrefix", Json::Text(flags.cdi_annotation_prefix))
      .Set("nvidiaCTKPath", Json::Text(flags.nvidia_cdi_hook_path))
      .Set("containerDriverRoot", Json::Text(flags.container_driver_root))
      .Set("sharedDevicesAllocationPolicy",
           Json::Text(ToWord(flags.allocation_policy)));
  Json json = Json::Object();
  json.Set("migStrategy", Json::Text(ToWord(flags.mig_strategy)))
      .Set("failOnInitError", Json::Bool(flags.fail_on_init_error))
      .Set("mpsRoot", Json::Text(flags.mps_root))
      .Set("nvidiaDriverRoot", Json::Text(flags.nvidia_driver_root))
      .Set("nvidiaDevRoot", Json::Text(flags.nvidia_dev_root))
      .Set("gdrcopyEnabled", Json::Bool(flags.gdrcopy_enabled))
      .Set("gdsEnabled", Json::Bool(flags.gds_enabled))
      .Set("mofedEnabled", Json::Bool(flags.mofed_enabled))
      .Set("useNodeFeatureAPI", Json::Bool(flags.use_node_feature_api))
      .Set("deviceDiscoveryStrategy",
           Json::Text(flags.device_discovery_strategy))
      .Set("plugin", std::move(plugin));
  return json;
}

Json DevicesJson(const DeviceSelector& devices) {
  if (devices.kind == DeviceSelector::Kind::kAll) return Json::Text("all");
  if (devices.kind == DeviceSelector::Kind::kCount) {
    return Json::Number(devices.count);
  }
  Json list = Json::Array();
  for (const DeviceRef& device : devices.list) {
    list.Push(Json::Text(device.text));
  }
  return list;
}

Json SharingJson(const Sharing& sharing) {
  Json block = Json::Object();
  if (sharing.rename_by_default) {
    block.Set("renameByDefault", Json::Bool(true));
  }
  if (sharing.fail_requests_greater_than_one) {
    block.Set("failRequestsGreaterThanOne", Json::Bool(true));
  }
  Json resources = Json::Array();
  for (const SharedResource& resource : sharing.resources) {
    Json entry = Json::Object();
    entry.Set("name", Json::Text(resource.name));
    if (!resource.rename.empty()) {
      entry.Set("rename", Json::Text(resource.rename));
    }
    entry.Set("devices", DevicesJson(resource.devices))
        .Set("replicas", Json::Number(resource.replicas));
    resources.Push(std::move(entry));
  }
  if (!resources.values.empty()) block.Set("resources", std::move(resources));
  return Json::Object().Set("timeSlicing", std::move(block));
}

Json ImexJson(const Imex& imex) {
  Json json = Json::Object();
  Json ids = Json::Array();
  for (int id : imex.channel_ids) ids.Push(Json::Number(id));
  if (!ids.values.empty()) json.Set("channelIDs", std::move(ids));
  if (imex.required) json.Set("required", Json::Bool(true));
  return json;
}

Json RondoJson(const RondoOptions& options) {
  constexpr const char* kMemory[] = {"off", "observe", "enforce"};
  constexpr const char* kInjection[] = {"none", "env", "file", "cdi"};
  constexpr const char* kManaged[] = {"count", "ignore"};
  constexpr const char* kLoss[] = {"closed", "open"};
  return Json::Object()
      .Set("memory", Json::Text(kMemory[static_cast<int>(options.memory)]))
      .Set("slotMemory",
           Json::Text(options.slot_memory_bytes
                          ? FormatQuantity(*options.slot_memory_bytes)
                          : "auto"))
      .Set("managed", Json::Text(kManaged[static_cast<int>(options.managed)]))
      .Set("period", Json::Text(FormatDuration(options.period)))
      .Set("turn", Json::Text(FormatDuration(options.turn)))
      .Set("injection",
           Json::Text(kInjection[static_cast<int>(options.injection)]))
      .Set("onAgentLoss",
           Json::Text(kLoss[static_cast<int>(options.on_agent_loss)]));
}

}  // namespace

std::string RunningWithConfigJson(const Plan& plan, int indent) {
  Json gpus = Json::Array();
  gpus.Push(Json::Object()
                .Set("pattern", Json::Text("*"))
                .Set("name", Json::Text("nvidia.com/gpu")));
  Json json = Json::Object();
  json.Set("version", Json::Text("v1"))
      .Set("flags", FlagsJson(plan.flags))
      .Set("resources", Json::Object().Set("gpus", std::move(gpus)))
      .Set("sharing", SharingJson(plan.sharing))
      .Set("imex", ImexJson(plan.imex))
      .Set("rondo", RondoJson(plan.rondo));
  std::string out;
  Print(json, indent, 0, out);
  return out;
}

}  // namespace rondo::config
