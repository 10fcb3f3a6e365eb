// SPDX-License-Identifier: Apache-2.0
//
// Any bytes through the whole config path. Checked beyond "does not crash":
// what we accept NVIDIA accepts; what only we refuse is on the list of
// differences; a plan that is printed and read again is the same plan.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "config/compile.h"
#include "config/document.h"
#include "config/node.h"
#include "config/nvidia.h"

namespace rondo::config {
namespace {

void Require(bool condition, absl::string_view what, absl::string_view text) {
  if (condition) return;
  std::cerr << what << " for:\n" << text << "\n";
  std::abort();
}

// docs/config.md, "Where Rondo and NVIDIA's plugin differ".
bool IsKnownDifference(const Problem& problem) {
  switch (problem.code) {
    case Code::kFlagValue:
    case Code::kImex:
    case Code::kMpsUnsupported:
    case Code::kListTooLong:
    case Code::kRenameClash:
    case Code::kRondoKey:
    case Code::kRondoValue:
      return problem.severity == Severity::kError;
    default:
      return false;
  }
}

void CheckVerdicts(absl::string_view text, const CompileResult& result) {
  const NvidiaVerdict nvidia = JudgeAsNvidia(text);
  Require(!result.ok() || nvidia.ok, "accepted only by us", text);
  const bool differs = std::any_of(result.problems.begin(),
                                   result.problems.end(), IsKnownDifference);
  Require(result.ok() || !nvidia.ok || differs, "refused only by us", text);
}

void CheckRoundTrip(absl::string_view text, const Plan& plan) {
  // `timeSlicing: {}` is printed, as NVIDIA does, and refused as input.
  if (plan.sharing.resources.empty()) return;
  // NVIDIA does not check the length of a name that renameByDefault makes.
  for (const SharedResource& resource : plan.sharing.resources) {
    if (resource.rename.size() > 63) return;
  }
  const std::string json = RunningWithConfigJson(plan);
  const CompileResult again = Compile(json);
  Require(again.ok(), "printed plan is refused", text);
  Require(RunningWithConfigJson(*again.plan) == json,
          "printed plan reads as another", text);
}

void Run(absl::string_view text) {
  const CompileResult result = Compile(text);
  const int lines = std::count(text.begin(), text.end(), '\n') + 1;
  for (const Problem& problem : result.problems) {
    Require(problem.line >= 0 && problem.line <= lines + 1,
            "problem outside the text", text);
  }
  CheckVerdicts(text, result);
  if (result.ok()) {
    CheckRoundTrip(text, *result.plan);
    const DeviceGroups groups = SmallestNode(*result.plan);
    if (groups.begin()->second.count < 1000) Advertise(*result.plan, groups);
    CheckOnNode(*result.plan, groups);
  }
  for (const Document& document : ReadDocuments(text).configs) {
    CompileResult inner = Compile(document.text);
    MoveToFile(document, inner.problems);
  }
}

}  // namespace
}  // namespace rondo::config

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rondo::config::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
