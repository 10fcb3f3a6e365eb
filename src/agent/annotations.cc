// SPDX-License-Identifier: Apache-2.0
#include "agent/annotations.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/suggest.h"
#include "config/duration.h"
#include "kube/pod.h"

namespace rondo::agent {
namespace {

using share::TenantClass;

constexpr char kClassKey[] = "rondo/class";
constexpr char kWeightKey[] = "rondo/weight";
constexpr char kLimitKey[] = "rondo/limit";
// A message names an annotation, no more.
constexpr size_t kMostShown = 64;

std::string Shown(absl::string_view text) {
  return kube::CutText(text, kMostShown);
}

AnnotationProblem Problem(const std::string& key, const std::string& value,
                          absl::string_view wrong, absl::string_view remedy) {
  return {Shown(key), Shown(value),
          absl::StrCat("annotation ", Shown(key), ": \"", Shown(value), "\" ",
                       wrong, ": ", remedy,
                       ". Until then the node's default is in force.")};
}

std::optional<std::string> ReadMemory(const std::string& value,
                                      PodSettings& out) {
  const auto bytes = config::ParseQuantity(value);
  if (!bytes.ok()) return "is not an amount of memory";
  if (*bytes < config::kLeastSlotMemory)
    return absl::StrCat("is under ",
                        config::FormatQuantity(config::kLeastSlotMemory),
                        ", too small for any CUDA program");
  out.memory_bytes = *bytes;
  return std::nullopt;
}

std::optional<std::string> ReadClass(const std::string& value,
                                     PodSettings& out) {
  for (const TenantClass cls :
       {TenantClass::kLatency, TenantClass::kStandard, TenantClass::kBatch}) {
    if (value != share::ClassName(cls)) continue;
    out.cls = cls;
    return std::nullopt;
  }
  return "is not a class";
}

std::optional<std::string> ReadNumber(const std::string& value, double above,
                                      double least, double most,
                                      std::optional<double>& out) {
  double number;
  if (!absl::SimpleAtod(value, &number)) return "is not a number";
  // Written so that NaN is outside too.
  if (!(number > above && number >= least && number <= most))
    return "is outside the range";
  out = number;
  return std::nullopt;
}

}  // namespace

AnnotationProblem MemoryTooBig(const std::string& value, uint64_t gpu_bytes) {
  return Problem(kMemoryKey, value, "is more than the GPU has",
                 absl::StrCat("write at most ", gpu_bytes >> 20, "Mi"));
}

ParsedAnnotations ParseAnnotations(
    const std::map<std::string, std::string>& annotations) {
  ParsedAnnotations out;
  PodSettings& settings = out.settings;
  for (const auto& [key, value] : annotations) {
    if (!absl::StartsWith(key, kAnnotationPrefix)) continue;
    std::optional<std::string> wrong;
    std::string remedy;
    if (key == kMemoryKey) {
      wrong = ReadMemory(value, settings);
      remedy = "write a quantity such as \"8Gi\"";
    } else if (key == kClassKey) {
      wrong = ReadClass(value, settings);
      remedy = "write latency, standard or batch";
    } else if (key == kWeightKey) {
      wrong = ReadNumber(value, 0, share::kLeastWeight, share::kMostWeight,
                         settings.weight);
      remedy = absl::StrCat("write a number from ", share::kLeastWeight, " to ",
                            share::kMostWeight, " such as \"3\"");
    } else if (key == kLimitKey) {
      wrong = ReadNumber(value, 0, 0, 1, settings.limit);
      remedy =
          "write a part of the GPU's time above 0, at most 1, such as "
          "\"0.5\"";
    } else {
      const std::string near = NearestWord(
          Shown(key), {kMemoryKey, kClassKey, kWeightKey, kLimitKey});
      wrong = "has a key that Rondo does not know";
      remedy = near.empty()
                   ? absl::StrCat("there are ", kMemoryKey, ", ", kClassKey,
                                  ", ", kWeightKey, " and ", kLimitKey)
                   : absl::StrCat("perhaps ", near, " is meant");
    }
    if (wrong) out.problems.push_back(Problem(key, value, *wrong, remedy));
  }
  return out;
}

}  // namespace rondo::agent
