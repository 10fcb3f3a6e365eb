// SPDX-License-Identifier: Apache-2.0
#include "agent/slot_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "config/node.h"

namespace rondo::agent {
namespace {

constexpr uint64_t kMiB = 1 << 20;

std::optional<uint64_t> LimitOf(const config::RondoOptions& options,
                                const deviceplugin::SlotGroup& group) {
  if (!group.usable_bytes) return options.slot_memory_bytes;
  // A program must not see a larger GPU than there is.
  if (options.slot_memory_bytes)
    return std::min(*options.slot_memory_bytes,
                    *group.usable_bytes / kMiB * kMiB);
  // Of a device that is no longer shared, pods may still hold slots.
  const uint64_t shares = group.replicas > 0
                              ? static_cast<uint64_t>(group.replicas)
                              : std::max<uint64_t>(group.numbers.size(), 1);
  return *group.usable_bytes / shares / kMiB * kMiB;
}

bool SamePod(const metrics::SlotPod& a, const metrics::SlotPod& b) {
  return a.name_space == b.name_space && a.name == b.name;
}

}  // namespace

share::ShareConfig MakeShareConfig(
    const config::RondoOptions& options,
    const std::vector<deviceplugin::SlotGroup>& groups) {
  share::ShareConfig config;
  config.period = options.period;
  config.turn = options.turn;
  for (const deviceplugin::SlotGroup& group : groups) {
    share::SlotSpec spec;
    spec.gpu_uuid = group.uuid;
    spec.limit_bytes = LimitOf(options, group);
    spec.memory = options.memory;
    spec.count_managed = options.managed == config::ManagedMode::kCount;
    spec.on_agent_loss = options.on_agent_loss;
    for (const uint32_t number : group.numbers) {
      spec.replica = static_cast<int>(number);
      config.slots.push_back(spec);
    }
  }
  return config;
}

absl::Status CheckSlotMemory(
    const config::RondoOptions& options,
    const std::vector<deviceplugin::SlotGroup>& groups) {
  if (options.memory == config::MemoryMode::kOff) return absl::OkStatus();
  std::string first;
  int more = -1;
  for (const deviceplugin::SlotGroup& group : groups) {
    if (!group.usable_bytes) continue;
    const auto problem = config::CheckSlotMemory(
        options, group.replicas, *group.usable_bytes, group.uuid);
    if (!problem) continue;
    if (++more == 0) first = config::Describe(*problem);
  }
  if (more < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      first, ": it can be full before a slot is",
      more == 0 ? "" : absl::StrCat("; the same holds for ", more, " more")));
}

void PodBook::OnAllocated(const std::vector<std::string>& slots,
                          uint64_t number) {
  for (const std::string& slot : slots) {
    owners_.erase(slot);
    fresh_from_[slot] = number;
    for (const auto& entry : recorded_)
      if (std::get<0>(entry) == slot) outdated_.insert(entry);
  }
}

void PodBook::SetHolders(const std::vector<kube::DeviceHolder>& holders,
                         const std::vector<kube::DeviceHolder>& recorded,
                         uint64_t number) {
  std::map<std::string, metrics::SlotPod> owners;
  std::set<std::string> disputed;
  for (const kube::DeviceHolder& holder : holders) {
    const metrics::SlotPod pod{.name_space = holder.name_space,
                               .name = holder.pod,
                               .uid = "",
                               .container = holder.container};
    for (const std::string& slot : holder.device_ids) {
      const auto fresh = fresh_from_.find(slot);
      if (fresh != fresh_from_.end() && number < fresh->second) continue;
      // The containers of one pod may use a slot one after the other.
      const auto [owner, added] = owners.emplace(slot, pod);
      if (!added && !SamePod(owner->second, pod)) disputed.insert(slot);
      if (!added) owner->second.container = pod.container;
    }
  }
  recorded_.clear();
  for (const kube::DeviceHolder& holder : recorded)
    for (const std::string& slot : holder.device_ids)
      recorded_.emplace(slot, holder.uid, holder.container);
  std::erase_if(outdated_, [this](const auto& entry) {
    return !recorded_.contains(entry);
  });
  const std::map<std::string, metrics::SlotPod> listed = owners;
  for (const auto& entry : recorded_) {
    const auto& [slot, uid, container] = entry;
    const auto fresh = fresh_from_.find(slot);
    if (listed.contains(slot) || outdated_.contains(entry) ||
        (fresh != fresh_from_.end() && number < fresh->second))
      continue;
    const auto [owner, added] = owners.emplace(
        slot,
        metrics::SlotPod{
            .name_space = "", .name = "", .uid = uid, .container = container});
    if (!added && owner->second.uid != uid) disputed.insert(slot);
    if (!added) owner->second.container = container;
  }
  for (const std::string& slot : disputed) owners.erase(slot);
  std::erase_if(fresh_from_,
                [number](const auto& entry) { return entry.second <= number; });
  owners_ = std::move(owners);
}

void PodBook::SetPods(std::vector<kube::Pod> pods) { pods_ = std::move(pods); }

const kube::Pod* PodBook::Find(const metrics::SlotPod& owner) const {
  const kube::Pod* found = nullptr;
  for (const kube::Pod& pod : pods_)
    if (!owner.uid.empty() && pod.uid == owner.uid) return &pod;
  for (const kube::Pod& pod : pods_)
    if (pod.name == owner.name && pod.name_space == owner.name_space &&
        (found == nullptr ||
         pod.created_unix_seconds >= found->created_unix_seconds))
      found = &pod;
  return found;
}

std::set<std::string> PodBook::uids() const {
  std::set<std::string> uids;
  for (const kube::Pod& pod : pods_) uids.insert(pod.uid);
  return uids;
}

bool ToldProblems::Add(const PodProblem& problem) {
  auto& told = told_[problem.uid];
  return told.size() < kMostOfAPod &&
         told.emplace(problem.annotation.key, problem.annotation.value).second;
}

void ToldProblems::KeepOnly(const std::set<std::string>& uids) {
  std::erase_if(told_,
                [&](const auto& pod) { return !uids.contains(pod.first); });
}

SlotPlan PlanSlots(share::ShareConfig defaults,
                   const std::map<std::string, uint64_t>& gpu_bytes,
                   const PodBook& book) {
  SlotPlan plan{.config = std::move(defaults)};
  std::set<std::tuple<std::string, std::string, std::string>> told;
  for (share::SlotSpec& spec : plan.config.slots) {
    const auto owner = book.owners().find(spec.id());
    if (owner == book.owners().end()) continue;
    const kube::Pod* pod = book.Find(owner->second);
    if (pod == nullptr && owner->second.name.empty()) continue;
    metrics::SlotPod& shown = plan.owners[spec.id()] = owner->second;
    if (pod == nullptr) continue;
    shown.uid = pod->uid;
    shown.name_space = pod->name_space;
    shown.name = pod->name;
    auto [settings, problems] = ParseAnnotations(pod->annotations);
    const auto gpu = gpu_bytes.find(spec.gpu_uuid);
    if (settings.memory_bytes && gpu != gpu_bytes.end() &&
        *settings.memory_bytes > gpu->second) {
      problems.push_back(
          MemoryTooBig(pod->annotations.at(kMemoryKey), gpu->second));
      settings.memory_bytes.reset();
    }
    if (settings.memory_bytes) spec.limit_bytes = settings.memory_bytes;
    spec.tenant.cls = settings.cls.value_or(spec.tenant.cls);
    spec.tenant.weight = settings.weight.value_or(spec.tenant.weight);
    spec.tenant.limit = settings.limit.value_or(spec.tenant.limit);
    for (AnnotationProblem& problem : problems)
      if (told.emplace(pod->uid, problem.key, problem.value).second)
        plan.problems.push_back({.name_space = pod->name_space,
                                 .pod = pod->name,
                                 .uid = pod->uid,
                                 .annotation = std::move(problem)});
  }
  return plan;
}

}  // namespace rondo::agent
