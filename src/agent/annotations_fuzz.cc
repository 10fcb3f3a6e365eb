// SPDX-License-Identifier: Apache-2.0
//
// Annotations from whoever may write pods: lines of key=value.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_split.h"
#include "agent/slot_plan.h"
#include "config/duration.h"

namespace agent = rondo::agent;
namespace share = rondo::share;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rondo::kube::Pod pod{.name_space = "a", .name = "b", .uid = "c"};
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<std::string, std::string> entry =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    rondo::kube::KeepAnnotation(entry.first, entry.second, "rondo/", pod);
  }
  constexpr uint64_t kGpu = uint64_t{80} << 30;
  share::ShareConfig defaults;
  defaults.slots.push_back(
      {.gpu_uuid = "GPU-a", .limit_bytes = uint64_t{1} << 30});
  agent::PodBook book;
  book.SetPods({pod});
  book.SetHolders({{.name_space = "a",
                    .pod = "b",
                    .container = "d",
                    .resource = "nvidia.com/gpu",
                    .device_ids = {"GPU-a::0"}}},
                  {}, 0);
  const agent::SlotPlan plan =
      agent::PlanSlots(defaults, {{"GPU-a", kGpu}}, book);
  // Whatever was written, the slot's settings are ones that can be used.
  const share::SlotSpec& slot = plan.config.slots.at(0);
  if (!(*slot.limit_bytes >= rondo::config::kLeastSlotMemory &&
        *slot.limit_bytes <= kGpu))
    abort();
  if (!(slot.tenant.weight >= share::kLeastWeight &&
        slot.tenant.weight <= share::kMostWeight))
    abort();
  if (!(slot.tenant.limit > 0 && slot.tenant.limit <= 1)) abort();
  if (plan.problems.size() > pod.annotations.size()) abort();
  for (const agent::PodProblem& problem : plan.problems)
    if (problem.annotation.message.size() > 1024 ||
        problem.annotation.value.size() > 67)
      abort();
  return 0;
}
