// SPDX-License-Identifier: Apache-2.0
//
// Pods of the node, as far as sharing needs them. Plain values; any thread.
//
// Who may write pods may write 256 KiB of annotations into each of them. Of
// these only as much is kept, anywhere, as a right value can need.

#ifndef RONDO_KUBE_POD_H_
#define RONDO_KUBE_POD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace rondo::kube {

inline constexpr size_t kLongestText = 128;     // bytes of a key, of a value
inline constexpr size_t kMostAnnotations = 16;  // of a pod
// Kubernetes recommends 110 on a node, and tests 500.
inline constexpr size_t kMostPods = 10'000;
inline constexpr char kCutMark[] = "...";

struct Pod {
  std::string name_space;
  std::string name;
  std::string uid;
  int64_t created_unix_seconds = 0;  // 0: not known
  bool ended = false;                // Succeeded or Failed
  // Those that were asked for, as KeepAnnotation keeps them.
  std::map<std::string, std::string> annotations;
  bool operator==(const Pod&) const = default;
};

// The text or, where it is longer, its first `most` bytes (less where a UTF-8
// character would be cut) and kCutMark.
std::string CutText(absl::string_view text, size_t most);

// Adds an annotation whose key starts with prefix. A value longer than
// kLongestText is cut; with the mark at its end it is none of ours, so that
// nothing is read from it that was not written. A longer key is dropped, as the
// API server would. Of too many the first by key stay, in whatever order they
// come: the same pod is always the same.
void KeepAnnotation(absl::string_view key, absl::string_view value,
                    absl::string_view prefix, Pod& pod);

// By the phase of its status.
bool IsEnded(absl::string_view phase);

// Devices of one resource that a container holds.
struct DeviceHolder {
  std::string name_space;  // of the pod; both empty where only its uid is known
  std::string pod;
  std::string uid;  // empty where the name is known
  std::string container;
  std::string resource;
  std::vector<std::string> device_ids;
  bool operator==(const DeviceHolder&) const = default;
};

}  // namespace rondo::kube

#endif  // RONDO_KUBE_POD_H_
