// SPDX-License-Identifier: Apache-2.0
//
// Names of resources and of devices, as NVIDIA's parser takes them.

#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "config/spec.h"

namespace rondo::config {
namespace {

constexpr absl::string_view kPrefix = "nvidia.com/";
constexpr size_t kLongestName = 63;

bool IsLowerOrDigit(char c) {
  return absl::ascii_islower(c) || absl::ascii_isdigit(c);
}

// Labels of lower case letters, digits and '-', joined by dots; no label starts
// or ends with '-'.
bool IsDnsSubdomain(absl::string_view name) {
  for (absl::string_view label : absl::StrSplit(name, '.')) {
    if (label.empty() || !IsLowerOrDigit(label.front()) ||
        !IsLowerOrDigit(label.back())) {
      return false;
    }
    for (char c : label) {
      if (!IsLowerOrDigit(c) && c != '-') return false;
    }
  }
  return true;
}

// Go's strconv.ParseUint(text, 10, 64).
bool IsUint(absl::string_view text) {
  uint64_t value = 0;
  if (text.empty()) return false;
  for (char c : text) {
    if (!absl::ascii_isdigit(c)) return false;
  }
  return absl::SimpleAtoi(text, &value);
}

// The four forms that google/uuid reads: plain, without dashes, in braces, and
// with "urn:uuid:" in front.
bool IsUuid(absl::string_view text) {
  constexpr absl::string_view kUrn = "urn:uuid:";
  if (text.size() == 36 + kUrn.size()) {
    if (!absl::StartsWithIgnoreCase(text, kUrn)) return false;
    text.remove_prefix(kUrn.size());
  } else if (text.size() == 38) {
    text = text.substr(1, 36);
  }
  const bool dashes = text.size() == 36;
  if (!dashes && text.size() != 32) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = dashes && (i == 8 || i == 13 || i == 18 || i == 23);
    if (dash ? text[i] != '-' : !absl::ascii_isxdigit(text[i])) return false;
  }
  return true;
}

bool IsGpuUuid(absl::string_view text) {
  return absl::StartsWith(text, "GPU-") && IsUuid(text.substr(4));
}

// "MIG-<uuid>" or, as drivers before 470 wrote it, "MIG-GPU-<uuid>/<gi>/<ci>".
bool IsMigUuid(absl::string_view text) {
  if (!absl::StartsWith(text, "MIG-")) return false;
  text.remove_prefix(4);
  if (IsUuid(text)) return true;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  return parts.size() == 3 && IsGpuUuid(parts[0]) && IsUint(parts[1]) &&
         IsUint(parts[2]);
}

}  // namespace

std::string FullResourceName(const std::string& name, std::string& error) {
  const std::string full =
      absl::StartsWith(name, kPrefix) ? name : absl::StrCat(kPrefix, name);
  error.clear();
  if (full.size() > kLongestName) {
    error = absl::StrCat("fully-qualified resource name must be ", kLongestName,
                         " characters or less: ", full);
  } else if (!IsDnsSubdomain(absl::string_view(full).substr(kPrefix.size()))) {
    error = absl::StrCat(
        "incorrect format for resource name '", full,
        "': [a lowercase RFC 1123 subdomain must consist of lower case "
        "alphanumeric characters, '-' or '.', and must start and end with an "
        "alphanumeric character (e.g. 'example.com', regex used for validation "
        "is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        "]");
  }
  return full;
}

std::optional<DeviceRef> ParseDeviceRef(const std::string& text) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  if (IsUint(text)) return DeviceRef{DeviceRef::Kind::kIndex, text};
  if (parts.size() == 2 && IsUint(parts[0]) && IsUint(parts[1])) {
    return DeviceRef{DeviceRef::Kind::kMigIndex, text};
  }
  if (IsGpuUuid(text) || IsMigUuid(text)) {
    return DeviceRef{DeviceRef::Kind::kUuid, text};
  }
  return std::nullopt;
}

}  // namespace rondo::config
