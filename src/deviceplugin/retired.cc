// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/retired.h"

#include <algorithm>

namespace rondo::deviceplugin {
namespace {

const Device* FindDevice(const Resource& resource, absl::string_view uuid) {
  const auto at =
      std::find_if(resource.devices.begin(), resource.devices.end(),
                   [&](const Device& device) { return device.uuid == uuid; });
  return at == resource.devices.end() ? nullptr : &*at;
}

bool Has(const Resource& resource, absl::string_view id) {
  const std::optional<DeviceId> parsed = ParseDeviceId(id);
  if (!parsed.has_value()) return false;
  const Device* device = FindDevice(resource, parsed->uuid);
  if (device == nullptr) return false;
  if (!parsed->is_replica) return device->replicas == 0;
  return parsed->replica < static_cast<uint32_t>(device->replicas);
}

}  // namespace

void Retired::OnChange(const Resource& before, const Resource& after,
                       MonotonicTime now) {
  for (const Device& device : before.devices) {
    const auto retire = [&](const std::string& id) {
      if (Has(after, id)) return;
      devices_.try_emplace(id, device);
      since_.try_emplace(id, now);
    };
    if (device.replicas == 0) retire(device.uuid);
    for (int n = 0; n < device.replicas; ++n) retire(ReplicaId(device.uuid, n));
  }
  for (auto at = devices_.begin(); at != devices_.end();) {
    if (Has(after, at->first)) {
      since_.erase(at->first);
      at = devices_.erase(at);
    } else {
      ++at;
    }
  }
}

void Retired::AddHeld(const std::set<std::string>& held,
                      const Resource& current,
                      const std::map<std::string, Device>& known,
                      MonotonicTime now) {
  for (const std::string& id : held) {
    const std::optional<DeviceId> parsed = ParseDeviceId(id);
    if (!parsed.has_value() || Has(current, id)) continue;
    const auto device = known.find(std::string(parsed->uuid));
    if (device == known.end()) continue;
    devices_.try_emplace(id, device->second);
    since_.try_emplace(id, now);
  }
}

bool Retired::Prune(const std::set<std::string>& held, MonotonicTime now,
                    MonotonicTime min) {
  bool pruned = false;
  for (auto at = devices_.begin(); at != devices_.end();) {
    if (held.count(at->first) > 0 || now - since_[at->first] < min) {
      ++at;
      continue;
    }
    since_.erase(at->first);
    at = devices_.erase(at);
    pruned = true;
  }
  return pruned;
}

}  // namespace rondo::deviceplugin
