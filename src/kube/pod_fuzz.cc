// SPDX-License-Identifier: Apache-2.0
//
// Lists and watch lines of the API server.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "kube/pod_watcher.h"

namespace kube = rondo::kube;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto list = kube::ParsePodList(text, "rondo/"); list.ok())
    for (const kube::Pod& pod : list->pods)
      for (const auto& [key, value] : pod.annotations)
        if (pod.uid.empty() || key.rfind("rondo/", 0) != 0 ||
            value.size() > kube::kLongestText + 3 ||
            pod.annotations.size() > kube::kMostAnnotations)
          abort();
  // In pieces it is the same.
  kube::PodListReader reader("rondo/");
  absl::Status added;
  const size_t piece = size % 7 + 1;
  for (size_t from = 0; from < size && added.ok(); from += piece)
    added = reader.Add(text.substr(from, piece));
  const auto whole = kube::ParsePodList(text, "rondo/");
  const auto pieces =
      added.ok() ? reader.Finish() : absl::StatusOr<kube::PodList>(added);
  if (whole.status() != pieces.status()) abort();
  if (whole.ok() && (whole->pods != pieces->pods ||
                     whole->resource_version != pieces->resource_version))
    abort();
  const auto event = kube::ParsePodEvent(text, "rondo/");
  if (event.ok() && event->type != kube::PodEvent::Type::kBookmark &&
      event->pod.uid.empty())
    abort();
  return 0;
}
