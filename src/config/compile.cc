// SPDX-License-Identifier: Apache-2.0

#include "config/compile.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/suggest.h"
#include "config/merge.h"
#include "config/spec.h"
#include "config/yaml.h"

namespace rondo::config {
namespace {

// FNV-1a: names a text in logs and metrics; no security hangs on it.
std::string Hash(absl::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (unsigned char c : text) hash = (hash ^ c) * 1099511628211u;
  return absl::StrFormat("%016x", hash);
}

void Add(std::vector<Problem>& problems, Code code, yaml::Mark mark,
         std::string message, std::string hint = "") {
  problems.push_back(MakeProblem(code, mark.line, mark.column,
                                 std::move(message), std::move(hint)));
}

void CheckMatches(const ResourceSpec& resource, MigStrategy mig,
                  std::vector<Problem>& problems) {
  if (resource.name == "nvidia.com/gpu") return;
  if (absl::StartsWith(resource.name, "nvidia.com/mig-")) {
    if (mig == MigStrategy::kMixed) return;
    Add(problems, Code::kResourceUnmatched, resource.name_mark,
        absl::StrCat(resource.name,
                     " matches nothing: MIG resources have this ",
                     "name only with `flags.migStrategy: mixed`"),
        mig == MigStrategy::kSingle
            ? "with `single`, MIG devices are nvidia.com/gpu"
            : "set migStrategy to mixed");
    return;
  }
  std::string hint = "names are nvidia.com/gpu and nvidia.com/mig-<profile>";
  if (absl::EndsWith(resource.name, ".shared")) {
    hint = "give the name before renaming: nvidia.com/gpu";
  } else if (!NearestWord(resource.name, {"nvidia.com/gpu"}).empty()) {
    hint = "did you mean nvidia.com/gpu?";
  }
  Add(problems, Code::kResourceUnmatched, resource.name_mark,
      absl::StrCat(resource.name, " matches no device: nothing is shared by ",
                   "this entry"),
      std::move(hint));
}

void CheckCounts(const ResourceSpec& resource, std::vector<Problem>& problems) {
  if (resource.replicas > 6) {
    Add(problems, Code::kReplicasHigh, resource.replicas_mark,
        absl::StrCat(resource.replicas,
                     " replicas of one device: pods that are busy at "
                     "once get 1/",
                     resource.replicas, " of its time each"),
        "usual are 4 to 6 for notebooks, 2 to 4 for light inference, at most 2 "
        "for training");
  } else if (resource.replicas > 2) {
    Add(problems, Code::kTraining, resource.replicas_mark,
        absl::StrCat("training seldom gains from more than 2 replicas; ",
                     resource.replicas,
                     " suits notebooks and light inference"));
  }
}

// Two entries of one resource that can select the same device.
bool Overlap(const DeviceSelector& a, const DeviceSelector& b) {
  if (a.kind != DeviceSelector::Kind::kList ||
      b.kind != DeviceSelector::Kind::kList) {
    return true;
  }
  for (const DeviceRef& x : a.list) {
    for (const DeviceRef& y : b.list) {
      if (x.text == y.text) return true;
    }
  }
  return false;
}

void CheckPairs(const ResourceSpec& later, const SharedResource& shared,
                const std::vector<SharedResource>& earlier,
                std::vector<Problem>& problems) {
  const std::string& advertised =
      shared.rename.empty() ? shared.name : shared.rename;
  for (const SharedResource& other : earlier) {
    const std::string& taken = other.rename.empty() ? other.name : other.rename;
    if (other.name == shared.name) {
      if (!Overlap(other.devices, shared.devices)) continue;
      Add(problems, Code::kResourceTwice, later.mark,
          absl::StrCat(shared.name, " is listed twice (also on line ",
                       other.line, ") for the same devices"),
          advertised == taken ? "the larger number of replicas counts; keep one"
                              : "they are offered under both names; keep one");
      return;
    }
    if (taken == advertised) {
      Add(problems, Code::kRenameClash,
          later.rename_mark.line > 0 ? later.rename_mark : later.mark,
          absl::StrCat(shared.name, " and ", other.name,
                       " would both be advertised as ", advertised),
          "give each its own name");
      return;
    }
  }
}

void NoteDropped(const ResourceSpec& resource, bool by_default,
                 std::vector<Problem>& problems) {
  if (!resource.rename.empty() &&
      !(by_default && resource.rename == resource.name + ".shared")) {
    Add(problems, Code::kNvidiaDrops, resource.rename_mark,
        absl::StrCat(
            "`rename` takes effect here; NVIDIA's plugin drops it and ",
            "advertises ", resource.name, by_default ? ".shared" : ""));
  }
  if (resource.devices.kind != DeviceSelector::Kind::kAll) {
    Add(problems, Code::kNvidiaDrops, resource.devices_mark,
        "`devices` takes effect here; NVIDIA's plugin drops it and shares all "
        "devices");
  }
}

void PlanSharing(const ReplicatedSpec& spec, MigStrategy mig, Sharing& sharing,
                 std::vector<Problem>& problems) {
  sharing.rename_by_default = spec.rename_by_default;
  sharing.fail_requests_greater_than_one =
      spec.fail_requests_greater_than_one.value_or(false);
  for (const ResourceSpec& resource : spec.resources) {
    if (resource.name.empty() || resource.replicas < 2) continue;  // reported
    SharedResource shared;
    shared.name = resource.name;
    shared.rename = resource.rename;
    if (shared.rename.empty() && spec.rename_by_default) {
      shared.rename = resource.name + ".shared";
    }
    if (shared.rename == shared.name) shared.rename.clear();
    shared.replicas = static_cast<int>(
        std::min<int64_t>(resource.replicas, std::numeric_limits<int>::max()));
    shared.devices = resource.devices;
    shared.line = resource.mark.line;
    shared.column = resource.mark.column;
    CheckMatches(resource, mig, problems);
    CheckCounts(resource, problems);
    NoteDropped(resource, spec.rename_by_default, problems);
    CheckPairs(resource, shared, sharing.resources, problems);
    sharing.resources.push_back(std::move(shared));
  }
  // With `mixed`, nvidia.com/gpu is the GPUs that are not in MIG mode.
  const bool mig_devices =
      absl::c_any_of(sharing.resources, [mig](const SharedResource& resource) {
        return mig == MigStrategy::kSingle ||
               absl::StartsWith(resource.name, "nvidia.com/mig-");
      });
  if (mig != MigStrategy::kNone && mig_devices) {
    Add(problems, Code::kMigSharing, spec.mark,
        absl::StrCat("time-slicing together with migStrategy ", ToWord(mig),
                     ": replicas share one MIG device's memory and time"),
        "prefer smaller MIG profiles where isolation matters");
  }
}

void CheckListSizes(const Plan& plan, std::vector<Problem>& problems) {
  std::map<std::string, int> one;
  for (const SharedResource& resource : plan.sharing.resources) {
    one[resource.name] = 1;
  }
  for (Problem& problem : CheckDeviceListSize(plan, one)) {
    problems.push_back(std::move(problem));
  }
}

Plan MakePlan(const Spec& spec, const Overrides& overrides,
              const Getenv& getenv, std::vector<Problem>& problems) {
  Plan plan;
  MergeFlags(spec, overrides, getenv, plan, problems);
  if (spec.time_slicing) {
    PlanSharing(*spec.time_slicing, plan.flags.mig_strategy, plan.sharing,
                problems);
  }
  if (spec.mps) {
    Add(problems, Code::kMpsUnsupported, spec.mps->mark,
        "MPS sharing is not supported; NVIDIA's plugin would use MPS here",
        "use `sharing.timeSlicing`; for a memory limit per pod add `rondo: "
        "{memory: enforce}`");
  }
  plan.rondo = spec.rondo.options;
  if (!HasErrors(problems) && plan.rondo.injection != Injection::kNone &&
      (!spec.time_slicing || spec.time_slicing->resources.empty())) {
    Add(problems, Code::kRondoNoEffect, spec.rondo.mark,
        "`rondo` has no effect: nothing is shared, and a pod with a whole GPU "
        "gets no library and no limit",
        "share a resource in `sharing.timeSlicing.resources`");
  }
  CheckListSizes(plan, problems);
  return plan;
}

}  // namespace

CompileResult Compile(absl::string_view text, const Overrides& overrides,
                      const Getenv& getenv) {
  CompileResult result;
  const yaml::Parsed parsed = yaml::Parse(text);
  if (parsed.error) {
    const yaml::Error& error = *parsed.error;
    Add(result.problems, error.limit ? Code::kYamlLimit : Code::kYamlSyntax,
        error.mark, absl::StrCat("not valid YAML: ", error.message),
        absl::StrContains(error.message, "tab character") ? "indent with spaces"
                                                          : "");
    return result;
  }
  if (parsed.ignored) {
    Add(result.problems, Code::kExtraDocument, *parsed.ignored,
        "everything from here on is ignored: only the first YAML document "
        "counts",
        "keep one document in a config, with one indentation");
  }
  const Spec spec = DecodeSpec(*parsed.documents[0], result.problems);
  Plan plan = MakePlan(spec, overrides, getenv, result.problems);
  SortByPlace(result.problems);
  if (HasErrors(result.problems)) return result;
  plan.hash = Hash(text);
  result.plan = std::move(plan);
  return result;
}

}  // namespace rondo::config
