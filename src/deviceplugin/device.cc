// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/device.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace rondo::deviceplugin {

std::optional<DeviceId> ParseDeviceId(absl::string_view id) {
  DeviceId parsed;
  const size_t colons = id.find("::");
  parsed.uuid = id.substr(0, colons);
  if (colons == absl::string_view::npos) return parsed;
  const absl::string_view digits = id.substr(colons + 2);
  // Only the form that we write: another spelling of the same number would be
  // a second id for one slot.
  if (digits.empty() || digits.size() > 9) return std::nullopt;
  if (digits.size() > 1 && digits[0] == '0') return std::nullopt;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    parsed.replica = parsed.replica * 10 + static_cast<uint32_t>(c - '0');
  }
  parsed.is_replica = true;
  return parsed;
}

std::string ReplicaId(absl::string_view uuid, uint32_t replica) {
  return absl::StrCat(uuid, "::", replica);
}

std::string SocketName(absl::string_view resource) {
  const size_t slash = resource.find('/');
  if (slash != absl::string_view::npos) resource.remove_prefix(slash + 1);
  return absl::StrCat("nvidia-", resource, ".sock");
}

}  // namespace rondo::deviceplugin
