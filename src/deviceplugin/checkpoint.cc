// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/checkpoint.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace rondo::deviceplugin {
namespace {

using nlohmann::json;

absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("kubelet checkpoint: ", what));
}

absl::Status AddIds(const json& list, std::set<std::string>& ids) {
  if (list.is_null()) return absl::OkStatus();
  if (!list.is_array()) return Bad("DeviceIDs is no list");
  for (const json& id : list) {
    if (!id.is_string()) return Bad("a device id is no string");
    ids.insert(id.get<std::string>());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::map<std::string, std::set<std::string>>> ParseCheckpoint(
    absl::string_view text) {
  const json root = json::parse(text.begin(), text.end(), nullptr,
                                /*allow_exceptions=*/false);
  if (!root.is_object() || !root.contains("Data") || !root["Data"].is_object())
    return Bad("no JSON object with the key Data");
  const json& data = root["Data"];
  std::map<std::string, std::set<std::string>> held;
  if (!data.contains("PodDeviceEntries") || data["PodDeviceEntries"].is_null())
    return held;
  if (!data["PodDeviceEntries"].is_array())
    return Bad("PodDeviceEntries is no list");
  for (const json& entry : data["PodDeviceEntries"]) {
    if (!entry.is_object() || !entry.contains("ResourceName") ||
        !entry["ResourceName"].is_string() || !entry.contains("DeviceIDs"))
      return Bad("an entry without ResourceName or DeviceIDs");
    std::set<std::string>& ids = held[entry["ResourceName"].get<std::string>()];
    const json& devices = entry["DeviceIDs"];
    // Since 1.20 a map from NUMA node to ids, before that one list.
    if (devices.is_object()) {
      for (const auto& [node, list] : devices.items())
        RONDO_RETURN_IF_ERROR(AddIds(list, ids));
    } else {
      RONDO_RETURN_IF_ERROR(AddIds(devices, ids));
    }
  }
  return held;
}

absl::StatusOr<std::map<std::string, std::set<std::string>>> ReadCheckpoint(
    const std::string& socket_dir) {
  const absl::StatusOr<std::string> text =
      ReadFile(PathUnder(socket_dir, "kubelet_internal_checkpoint"), 64 << 20);
  if (absl::IsNotFound(text.status()))
    return std::map<std::string, std::set<std::string>>();
  if (!text.ok()) return text.status();
  return ParseCheckpoint(*text);
}

}  // namespace rondo::deviceplugin
