// SPDX-License-Identifier: Apache-2.0
//
// What a pod's annotations ask for its slots. Pure; any thread.
//
// The texts come from whoever writes pods. What cannot be used is a problem
// with a remedy, and as if it were not there: never a reason to refuse a pod.

#ifndef RONDO_AGENT_ANNOTATIONS_H_
#define RONDO_AGENT_ANNOTATIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "share/time/event.h"

namespace rondo::agent {

// Every annotation that starts so is meant for us.
inline constexpr char kAnnotationPrefix[] = "rondo/";
inline constexpr char kMemoryKey[] = "rondo/memory";

struct AnnotationProblem {
  std::string key;  // both cut to what a message shows
  std::string value;
  std::string message;  // what is wrong and what to write instead
  bool operator==(const AnnotationProblem&) const = default;
};

// Empty: not asked for.
struct PodSettings {
  std::optional<uint64_t> memory_bytes;  // of each slot
  std::optional<share::TenantClass> cls;
  std::optional<double> weight;
  std::optional<double> limit;
};

struct ParsedAnnotations {
  PodSettings settings;
  std::vector<AnnotationProblem> problems;  // by key
};

// Keys without the prefix are not looked at.
ParsedAnnotations ParseAnnotations(
    const std::map<std::string, std::string>& annotations);

// A memory annotation that is more than the slot's GPU has.
AnnotationProblem MemoryTooBig(const std::string& value, uint64_t gpu_bytes);

}  // namespace rondo::agent

#endif  // RONDO_AGENT_ANNOTATIONS_H_
