// SPDX-License-Identifier: Apache-2.0
#include "agent/annotations.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/tenant_text.h"
#include "base/suggest.h"
#include "config/amount.h"
#include "kube/pod.h"

namespace rondo::agent {
namespace {

constexpr char kClassKey[] = "rondo/class";
constexpr char kWeightKey[] = "rondo/weight";
constexpr char kLimitKey[] = "rondo/limit";
// A message names an annotation, no more.
constexpr size_t kMostShown = 64;

std::string Shown(absl::string_view text) {
  return kube::CutText(text, kMostShown);
}

AnnotationProblem Problem(const std::string& key, const std::string& value,
                          const config::Mistake& mistake) {
  return {Shown(key), Shown(value),
          absl::StrCat("annotation ", Shown(key), ": \"", Shown(value), "\" ",
                       mistake.wrong, ": ", mistake.remedy,
                       ". Until then the node's default is in force.")};
}

template <typename T>
std::optional<config::Mistake> Read(
    std::optional<config::Mistake> (*read)(absl::string_view, T&),
    const std::string& text, std::optional<T>& out) {
  T value{};
  auto mistake = read(text, value);
  if (!mistake) out = value;
  return mistake;
}

config::Mistake UnknownKey(const std::string& key) {
  const std::string near =
      NearestWord(key, {kMemoryKey, kClassKey, kWeightKey, kLimitKey});
  return {"has a key that Rondo does not know",
          near.empty() ? absl::StrCat("there are ", kMemoryKey, ", ", kClassKey,
                                      ", ", kWeightKey, " and ", kLimitKey)
                       : absl::StrCat("perhaps ", near, " is meant")};
}

}  // namespace

AnnotationProblem MemoryTooBig(const std::string& value, uint64_t gpu_bytes) {
  return Problem(kMemoryKey, value,
                 {"is more than the GPU has",
                  absl::StrCat("write at most ", gpu_bytes >> 20, "Mi")});
}

ParsedAnnotations ParseAnnotations(
    const std::map<std::string, std::string>& annotations) {
  ParsedAnnotations out;
  PodSettings& settings = out.settings;
  for (const auto& [key, value] : annotations) {
    if (!absl::StartsWith(key, kAnnotationPrefix)) continue;
    std::optional<config::Mistake> mistake;
    if (key == kMemoryKey)
      mistake = Read(config::ReadSlotMemory, value, settings.memory_bytes);
    else if (key == kClassKey)
      mistake = Read(ReadClass, value, settings.cls);
    else if (key == kWeightKey)
      mistake = Read(ReadWeight, value, settings.weight);
    else if (key == kLimitKey)
      mistake = Read(ReadLimit, value, settings.limit);
    else
      mistake = UnknownKey(key);
    if (mistake) out.problems.push_back(Problem(key, value, *mistake));
  }
  return out;
}

}  // namespace rondo::agent
