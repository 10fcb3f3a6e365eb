// SPDX-License-Identifier: Apache-2.0
//
// kubelet's own record of which devices running pods hold: the file
// kubelet_internal_checkpoint beside its socket. Pure; any thread.
//
// kubelet writes the file at each allocation and each list, but forgets ended
// pods only at the next allocation: the answer may name devices of pods that
// have ended, never miss one of a pod that runs.
// Source: kubernetes pkg/kubelet/cm/devicemanager/checkpoint, 1.20 to 1.37.

#ifndef RONDO_DEVICEPLUGIN_CHECKPOINT_H_
#define RONDO_DEVICEPLUGIN_CHECKPOINT_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rondo::deviceplugin {

// What one container holds of one resource.
struct CheckpointEntry {
  std::string pod_uid;    // empty: not told
  std::string container;  // the same
  std::string resource;
  std::set<std::string> ids;
  bool operator==(const CheckpointEntry&) const = default;
};

// The entries, init containers' among them. The text is kubelet's, but on disk:
// anything may stand there. InvalidArgument for what is not such a file;
// entries of an unknown shape are an error too, since a device that we
// overlooked would be taken for free.
absl::StatusOr<std::vector<CheckpointEntry>> ParseCheckpointEntries(
    absl::string_view text);

// Device ids by resource name, of all entries together.
absl::StatusOr<std::map<std::string, std::set<std::string>>> ParseCheckpoint(
    absl::string_view text);

// The one and the other of <socket_dir>/kubelet_internal_checkpoint. No file:
// nobody holds anything.
absl::StatusOr<std::map<std::string, std::set<std::string>>> ReadCheckpoint(
    const std::string& socket_dir);
absl::StatusOr<std::vector<CheckpointEntry>> ReadCheckpointEntries(
    const std::string& socket_dir);

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_CHECKPOINT_H_
