// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/checkpoint.h"

#include <nlohmann/json.hpp>
#include <utility>

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

std::string Text(const json& entry, const char* key) {
  const auto found = entry.find(key);
  return found != entry.end() && found->is_string() ? found->get<std::string>()
                                                    : std::string();
}

using Held = std::map<std::string, std::set<std::string>>;

Held ByResource(std::vector<CheckpointEntry> entries) {
  Held held;
  for (CheckpointEntry& entry : entries)
    held[entry.resource].merge(std::move(entry.ids));
  return held;
}

}  // namespace

absl::StatusOr<std::vector<CheckpointEntry>> ParseCheckpointEntries(
    absl::string_view text) {
  const json root = json::parse(text.begin(), text.end(), nullptr,
                                /*allow_exceptions=*/false);
  if (!root.is_object() || !root.contains("Data") || !root["Data"].is_object())
    return Bad("no JSON object with the key Data");
  const json& data = root["Data"];
  std::vector<CheckpointEntry> entries;
  if (!data.contains("PodDeviceEntries") || data["PodDeviceEntries"].is_null())
    return entries;
  if (!data["PodDeviceEntries"].is_array())
    return Bad("PodDeviceEntries is no list");
  for (const json& entry : data["PodDeviceEntries"]) {
    if (!entry.is_object() || !entry.contains("ResourceName") ||
        !entry["ResourceName"].is_string() || !entry.contains("DeviceIDs"))
      return Bad("an entry without ResourceName or DeviceIDs");
    CheckpointEntry read{.pod_uid = Text(entry, "PodUID"),
                         .container = Text(entry, "ContainerName"),
                         .resource = Text(entry, "ResourceName"),
                         .ids = {}};
    const json& devices = entry["DeviceIDs"];
    // Since 1.20 a map from NUMA node to ids, before that one list.
    if (devices.is_object()) {
      for (const auto& [node, list] : devices.items())
        RONDO_RETURN_IF_ERROR(AddIds(list, read.ids));
    } else {
      RONDO_RETURN_IF_ERROR(AddIds(devices, read.ids));
    }
    entries.push_back(std::move(read));
  }
  return entries;
}

absl::StatusOr<Held> ParseCheckpoint(absl::string_view text) {
  RONDO_ASSIGN_OR_RETURN(std::vector<CheckpointEntry> entries,
                         ParseCheckpointEntries(text));
  return ByResource(std::move(entries));
}

absl::StatusOr<std::vector<CheckpointEntry>> ReadCheckpointEntries(
    const std::string& socket_dir) {
  const absl::StatusOr<std::string> text =
      ReadFile(PathUnder(socket_dir, "kubelet_internal_checkpoint"), 64 << 20);
  if (absl::IsNotFound(text.status())) return std::vector<CheckpointEntry>();
  if (!text.ok()) return text.status();
  return ParseCheckpointEntries(*text);
}

absl::StatusOr<Held> ReadCheckpoint(const std::string& socket_dir) {
  RONDO_ASSIGN_OR_RETURN(std::vector<CheckpointEntry> entries,
                         ReadCheckpointEntries(socket_dir));
  return ByResource(std::move(entries));
}

}  // namespace rondo::deviceplugin
