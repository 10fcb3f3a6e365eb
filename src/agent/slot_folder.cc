// SPDX-License-Identifier: Apache-2.0
#include "agent/slot_folder.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace rondo::agent {
namespace {

constexpr size_t kMountPoint = 4;  // proc(5): the fifth word of a line

bool Holds(absl::string_view mount, absl::string_view folder) {
  return folder == mount || absl::StartsWith(folder, absl::StrCat(mount, "/"));
}

}  // namespace

absl::Status CheckSlotFolder(absl::string_view folder, bool in_pod,
                             absl::string_view mountinfo) {
  if (!in_pod || folder.empty() || mountinfo.empty()) return absl::OkStatus();
  for (const absl::string_view line : absl::StrSplit(mountinfo, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    if (words.size() > kMountPoint && words[kMountPoint] != "/" &&
        Holds(words[kMountPoint], folder))
      return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      folder,
      " is the agent's container's own, which other pods cannot mount; "
      "mount the node's there, as deploy/rondo.yaml does (hostPath)"));
}

}  // namespace rondo::agent
