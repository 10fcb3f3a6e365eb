// SPDX-License-Identifier: Apache-2.0
#include "kube/pod.h"

#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace rondo::kube {

std::string CutText(absl::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  // Not within a character: its other bytes begin with the bits 10.
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80)
    --most;
  return absl::StrCat(text.substr(0, most), kCutMark);
}

void KeepAnnotation(absl::string_view key, absl::string_view value,
                    absl::string_view prefix, Pod& pod) {
  if (!absl::StartsWith(key, prefix) || key.size() > kLongestText) return;
  pod.annotations[std::string(key)] = CutText(value, kLongestText);
  if (pod.annotations.size() > kMostAnnotations)
    pod.annotations.erase(std::prev(pod.annotations.end()));
}

bool IsEnded(absl::string_view phase) {
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace rondo::kube
