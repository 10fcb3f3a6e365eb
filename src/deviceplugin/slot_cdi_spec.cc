// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/slot_cdi_spec.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "deviceplugin/allocate.h"
#include "deviceplugin/device.h"

namespace rondo::deviceplugin {

using nlohmann::ordered_json;

std::string SlotCdiSpec(const std::string& slot_dir,
                        const std::set<std::string>& slots) {
  // Read-only, as for the other ways: a container must not replace a socket.
  const auto mount = [&](const std::string& folder,
                         const std::string& container_path) {
    return ordered_json::array(
        {{{"hostPath", absl::StrCat(slot_dir, "/", folder)},
          {"containerPath", container_path},
          {"options", {"ro", "nosuid", "nodev", "rbind", "rprivate"}}}});
  };
  ordered_json spec = {{"cdiVersion", "0.5.0"},
                       {"kind", kSlotCdiKind},
                       {"devices", ordered_json::array()}};
  for (const std::string& id : slots) {
    const std::optional<DeviceId> slot = ParseDeviceId(id);
    if (!slot || !slot->is_replica) continue;
    const std::string folder = SlotFolder(*slot);
    spec["devices"].push_back(
        {{"name", id},
         {"containerEdits",
          {{"mounts",
            mount(folder, absl::StrCat(kSlotsInContainer, "/", folder))}}}});
  }
  spec["containerEdits"] = {
      {"env", {absl::StrCat("LD_PRELOAD=", kShimInContainer)}},
      {"mounts", mount(kLibraryFolder, kLibraryInContainer)}};
  return spec.dump(2) + "\n";
}

absl::Status KeepSlotCdiSpec(const ManagerOptions& options,
                             config::Injection injection,
                             const Inventory& inventory,
                             const std::vector<SlotGroup>& groups) {
  const std::string path = absl::StrCat(options.cdi_dir, "/", kSlotCdiFile);
  if (options.slot_dir.empty() ||
      (injection != config::Injection::kCdi && access(path.c_str(), F_OK) != 0))
    return absl::OkStatus();
  std::set<std::string> slots;
  for (const Resource& resource : inventory.resources)
    for (const Device& device : resource.devices)
      for (int n = 0; n < device.replicas; ++n)
        slots.insert(ReplicaId(device.uuid, static_cast<uint32_t>(n)));
  for (const SlotGroup& group : groups)
    for (const uint32_t n : group.numbers)
      slots.insert(ReplicaId(group.uuid, n));
  if (const auto held = options.held_devices(); held.ok())
    for (const auto& [resource, ids] : *held)
      for (const std::string& id : ids)
        if (const auto slot = ParseDeviceId(id); slot && slot->is_replica)
          slots.insert(id);
  if (slots.empty()) return absl::OkStatus();
  RONDO_RETURN_IF_ERROR(MakeDirectories(options.cdi_dir));
  return WriteFileAtomically(path, SlotCdiSpec(options.slot_dir, slots));
}

}  // namespace rondo::deviceplugin
