// SPDX-License-Identifier: Apache-2.0
//
// What replacing one plan by another means for pods.

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "config/duration.h"
#include "config/merge.h"
#include "config/node.h"

namespace rondo::config {
namespace {

// The last entry of each resource that the plan's strategy offers; duplicates
// and entries that match nothing were warned of.
std::map<std::string, const SharedResource*> ByName(const Plan& plan) {
  std::map<std::string, const SharedResource*> entries;
  for (const SharedResource& resource : plan.sharing.resources) {
    if (resource.name == "nvidia.com/gpu" ||
        plan.flags.mig_strategy == MigStrategy::kMixed) {
      entries[resource.name] = &resource;
    }
  }
  return entries;
}

std::string Name(const std::string& resource, const SharedResource* entry) {
  return entry && !entry->rename.empty() ? entry->rename : resource;
}

int Replicas(const SharedResource* entry) {
  return entry ? entry->replicas : 1;
}

std::string Devices(const SharedResource* entry) {
  if (entry == nullptr || entry->devices.kind == DeviceSelector::Kind::kAll) {
    return "all";
  }
  if (entry->devices.kind == DeviceSelector::Kind::kCount) {
    return absl::StrCat("any ", entry->devices.count);
  }
  std::vector<std::string> list;
  for (const DeviceRef& ref : entry->devices.list) list.push_back(ref.text);
  return absl::StrJoin(list, ",");
}

void CompareResource(const std::string& resource, const SharedResource* from,
                     const SharedResource* to, std::vector<Change>& changes) {
  const std::string old_name = Name(resource, from);
  const std::string new_name = Name(resource, to);
  if (old_name != new_name) {
    changes.push_back(
        {absl::StrCat(old_name, " is advertised as ", new_name),
         absl::StrCat("running pods stay; new pods must ask for ", new_name,
                      ", those that ask for ", old_name, " stay Pending")});
  }
  const int before = Replicas(from);
  const int after = Replicas(to);
  if (before != after) {
    changes.push_back(
        {absl::StrCat(new_name, ": ", before, " -> ", after,
                      after == 1 ? " (not shared)" : " replicas",
                      " of each device"),
         after > before
             ? absl::StrCat(
                   "running pods stay; ", after - before,
                   after - before == 1 ? " more pod fits" : " more pods fit",
                   " on each device")
             : absl::StrCat("running pods stay; a device with more than ",
                            after, after == 1 ? " pod" : " pods",
                            " takes no new one until enough of them end")});
  }
  if (Devices(from) != Devices(to)) {
    changes.push_back({absl::StrCat(new_name, ": shared devices ",
                                    Devices(from), " -> ", Devices(to)),
                       "running pods stay where they are"});
  }
}

template <typename T>
void CompareWord(absl::string_view flag, T from, T to, absl::string_view effect,
                 std::vector<Change>& changes) {
  if (from == to) return;
  changes.push_back({absl::StrCat(flag, ": ", ToWord(from), " -> ", ToWord(to)),
                     std::string(effect)});
}

void CompareFlags(const Flags& from, const Flags& to,
                  std::vector<Change>& changes) {
  CompareWord("migStrategy", from.mig_strategy, to.mig_strategy,
              "running pods stay; resource names may change", changes);
  CompareWord("deviceIDStrategy", from.device_id_strategy,
              to.device_id_strategy, "for containers started from now on",
              changes);
  CompareWord("sharedDevicesAllocationPolicy", from.allocation_policy,
              to.allocation_policy, "for containers started from now on",
              changes);
  const auto words = [](const Flags& flags) {
    std::vector<std::string> list;
    for (DeviceListStrategy strategy : flags.device_list_strategies) {
      list.push_back(ToWord(strategy));
    }
    return absl::StrJoin(list, ",");
  };
  if (words(from) != words(to)) {
    changes.push_back(
        {absl::StrCat("deviceListStrategy: ", words(from), " -> ", words(to)),
         "for containers started from now on"});
  }
  if (from.pass_device_specs != to.pass_device_specs) {
    changes.push_back(
        {absl::StrCat("passDeviceSpecs: ", to.pass_device_specs ? "on" : "off"),
         "for containers started from now on"});
  }
}

void CompareRondo(const RondoOptions& from, const RondoOptions& to,
                  std::vector<Change>& changes) {
  constexpr const char* kMemory[] = {"off", "observe", "enforce"};
  constexpr const char* kInjection[] = {"none", "env", "file", "cdi"};
  if (from.injection != to.injection) {
    changes.push_back(
        {absl::StrCat(
             "rondo.injection: ", kInjection[static_cast<int>(from.injection)],
             " -> ", kInjection[static_cast<int>(to.injection)]),
         "for containers started from now on; running ones stay as they are"});
  }
  if (from.memory != to.memory) {
    changes.push_back(
        {absl::StrCat("rondo.memory: ", kMemory[static_cast<int>(from.memory)],
                      " -> ", kMemory[static_cast<int>(to.memory)]),
         "for running pods too, if the library is in them"});
  }
  if (from.on_agent_loss != to.on_agent_loss) {
    const bool open = to.on_agent_loss == OnAgentLoss::kOpen;
    changes.push_back(
        {absl::StrCat("rondo.onAgentLoss: ",
                      open ? "closed -> open" : "open -> closed"),
         open ? "for running pods too: without an agent they have no limit"
              : "for running pods too: without an agent their limit stays"});
  }
  const auto slot = [](const RondoOptions& options) {
    return options.slot_memory_bytes
               ? FormatQuantity(*options.slot_memory_bytes)
               : std::string("auto");
  };
  if (slot(from) != slot(to)) {
    changes.push_back(
        {absl::StrCat("rondo.slotMemory: ", slot(from), " -> ", slot(to)),
         "for running pods too: a pod over a lower limit keeps what it has and "
         "gets no more"});
  }
  if (from.managed != to.managed) {
    const bool count = to.managed == ManagedMode::kCount;
    changes.push_back(
        {absl::StrCat("rondo.managed: ",
                      count ? "ignore -> count" : "count -> ignore"),
         count
             ? "for what running pods allocate from now on"
             : "for running pods too: what they hold of it no longer counts"});
  }
  const auto duration = [&](absl::string_view key,
                            std::chrono::microseconds before,
                            std::chrono::microseconds after) {
    if (before == after) return;
    changes.push_back({absl::StrCat("rondo.", key, ": ", FormatDuration(before),
                                    " -> ", FormatDuration(after)),
                       "for running pods too, at once"});
  };
  duration("period", from.period, to.period);
  duration("turn", from.turn, to.turn);
}

}  // namespace

std::vector<Change> CompareForPods(const Plan& from, const Plan& to) {
  std::vector<Change> changes;
  const auto old_entries = ByName(from);
  const auto new_entries = ByName(to);
  std::set<std::string> names;
  for (const auto& [name, entry] : old_entries) names.insert(name);
  for (const auto& [name, entry] : new_entries) names.insert(name);
  const auto find = [](const auto& entries, const std::string& name) {
    const auto it = entries.find(name);
    return it == entries.end() ? nullptr : it->second;
  };
  for (const std::string& name : names) {
    CompareResource(name, find(old_entries, name), find(new_entries, name),
                    changes);
  }
  if (from.sharing.fail_requests_greater_than_one !=
      to.sharing.fail_requests_greater_than_one) {
    changes.push_back(
        {absl::StrCat("failRequestsGreaterThanOne: ",
                      to.sharing.fail_requests_greater_than_one ? "on" : "off"),
         to.sharing.fail_requests_greater_than_one
             ? "running pods stay; new containers that ask for more than one "
               "share are rejected"
             : "new containers may ask for more than one share"});
  }
  CompareFlags(from.flags, to.flags, changes);
  CompareRondo(from.rondo, to.rondo, changes);
  return changes;
}

}  // namespace rondo::config
