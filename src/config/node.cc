// SPDX-License-Identifier: Apache-2.0

#include "config/node.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "config/compile.h"
#include "config/duration.h"

namespace rondo::config {
namespace {

constexpr uint64_t kLeastSlot = uint64_t{2} << 30;

const std::string& AdvertisedName(const SharedResource& resource) {
  return resource.rename.empty() ? resource.name : resource.rename;
}

// Some node offers a resource of this name under this MIG strategy.
bool CanExist(const std::string& name, MigStrategy strategy) {
  return name == "nvidia.com/gpu" ||
         (strategy == MigStrategy::kMixed &&
          absl::StartsWith(name, "nvidia.com/mig-"));
}

// A device's position from its index; -1 for MIG indices and UUIDs.
int Position(const DeviceRef& ref) {
  int index = -1;
  if (ref.kind != DeviceRef::Kind::kIndex ||
      !absl::SimpleAtoi(ref.text, &index)) {
    return -1;
  }
  return index;
}

// Positions in [0, count) that an entry selects. A UUID stands for some device:
// the same UUID for the same one, others counted from the end.
class Selection {
 public:
  explicit Selection(int count) : count_(count) {}

  std::vector<int> Of(const DeviceSelector& selector) {
    std::vector<int> positions;
    if (selector.kind != DeviceSelector::Kind::kList) {
      const bool all = selector.kind == DeviceSelector::Kind::kAll;
      const int end = all ? count_ : std::min(count_, selector.count);
      for (int i = 0; i < end; ++i) positions.push_back(i);
      return positions;
    }
    for (const DeviceRef& ref : selector.list) {
      int position = Position(ref);
      if (position < 0) {
        const int next = count_ - 1 - static_cast<int>(named_.size());
        position = named_.emplace(ref.text, next).first->second;
      }
      if (position >= 0 && position < count_) positions.push_back(position);
    }
    return positions;
  }

 private:
  int count_;
  std::map<std::string, int> named_;
};

// Replicas of each device of one resource, by advertised name.
void Share(const Plan& plan, const std::string& name, int count,
           std::map<std::string, int64_t>& advertised) {
  Selection selection(count);
  std::vector<std::map<std::string, int64_t>> devices(count);
  for (const SharedResource& resource : plan.sharing.resources) {
    if (resource.name != name) continue;
    for (int position : selection.Of(resource.devices)) {
      int64_t& replicas = devices[position][AdvertisedName(resource)];
      replicas = std::max<int64_t>(replicas, resource.replicas);
    }
  }
  for (const auto& names : devices) {
    if (names.empty()) ++advertised[name];
    for (const auto& [to, replicas] : names) advertised[to] += replicas;
  }
}

int SmallestCount(const DeviceSelector& devices) {
  if (devices.kind == DeviceSelector::Kind::kCount) return devices.count;
  int most = 1;
  for (const DeviceRef& ref : devices.list) {
    most = std::max(most, Position(ref) + 1);
  }
  return std::max<int>(most, devices.list.size());
}

Problem At(const SharedResource& resource, Code code, std::string message,
           std::string hint = "") {
  return MakeProblem(code, resource.line, resource.column, std::move(message),
                     std::move(hint));
}

void CheckDevices(const SharedResource& resource, int count,
                  std::vector<Problem>& problems) {
  const std::string has =
      absl::StrCat("the node has ", count, " of ", resource.name);
  if (resource.devices.kind == DeviceSelector::Kind::kCount &&
      resource.devices.count > count) {
    problems.push_back(
        At(resource, Code::kDeviceMissing,
           absl::StrCat("`devices: ", resource.devices.count, "`, but ", has)));
  }
  for (const DeviceRef& ref : resource.devices.list) {
    if (Position(ref) < count) continue;
    problems.push_back(At(resource, Code::kDeviceMissing,
                          absl::StrCat("no device ", ref.text, ": ", has),
                          absl::StrCat("indices run from 0 to ", count - 1)));
  }
}

void CheckMemory(const Plan& plan, const SharedResource& resource,
                 uint64_t memory, std::vector<Problem>& problems) {
  const auto& fixed = plan.rondo.slot_memory_bytes;
  if (memory > 0) {
    if (auto problem = CheckSlotMemory(plan.rondo, resource.replicas, memory,
                                       "a device")) {
      problems.push_back(*std::move(problem));
      return;
    }
  }
  const uint64_t slot = fixed ? *fixed : memory / resource.replicas;
  if (slot == 0 || slot >= kLeastSlot) return;
  problems.push_back(At(
      resource, Code::kSlotMemoryLow,
      absl::StrCat("a slot of ", resource.name, " has ", slot >> 20,
                   " MiB: under 2 GiB few programs run"),
      memory > 0
          ? absl::StrCat("at most ", std::max<uint64_t>(1, memory / kLeastSlot),
                         " replicas leave 2 GiB each")
          : "raise slotMemory"));
}

}  // namespace

std::vector<Advertised> Advertise(const Plan& plan,
                                  const DeviceGroups& groups) {
  std::map<std::string, int64_t> advertised;
  for (const auto& [name, group] : groups) {
    Share(plan, name, group.count, advertised);
  }
  std::vector<Advertised> out;
  for (const auto& [name, devices] : advertised) out.push_back({name, devices});
  return out;
}

DeviceGroups SmallestNode(const Plan& plan) {
  DeviceGroups groups;
  bool mig_only = plan.flags.mig_strategy == MigStrategy::kMixed;
  for (const SharedResource& resource : plan.sharing.resources) {
    if (!CanExist(resource.name, plan.flags.mig_strategy)) continue;
    mig_only = mig_only && resource.name != "nvidia.com/gpu";
    int& count = groups[resource.name].count;
    count = std::max(count, SmallestCount(resource.devices));
  }
  // Without MIG resources to speak of, a node has a GPU.
  if (groups.empty() || !mig_only) {
    int& count = groups["nvidia.com/gpu"].count;
    count = std::max(count, 1);
  }
  return groups;
}

std::optional<Problem> CheckSlotMemory(const RondoOptions& options,
                                       int replicas, uint64_t memory_bytes,
                                       absl::string_view device) {
  if (!options.slot_memory_bytes || replicas < 1) return std::nullopt;
  const uint64_t slot = *options.slot_memory_bytes;
  const uint64_t part = memory_bytes / replicas;
  if (slot <= part) return std::nullopt;
  std::string hint = "write auto";
  if (part >= kLeastSlotMemory)
    absl::StrAppend(&hint, ", or at most ", part >> 20, "Mi");
  if (const uint64_t fit = memory_bytes / slot; fit >= 2)
    absl::StrAppend(&hint, ", or lower replicas to ", fit);
  const std::string has =
      absl::StrCat("more than the ", memory_bytes >> 20, " MiB of ", device);
  return MakeProblem(
      Code::kSlotMemoryTooBig, options.slot_memory_line,
      options.slot_memory_column,
      slot > memory_bytes
          ? absl::StrCat("`rondo.slotMemory`: ", FormatQuantity(slot), " is ",
                         has)
          : absl::StrCat("`rondo.slotMemory`: ", replicas, " slots of ",
                         FormatQuantity(slot), " need ", has),
      std::move(hint));
}

std::vector<Problem> CheckOnNode(const Plan& plan, const DeviceGroups& groups) {
  std::vector<Problem> problems;
  std::map<std::string, int> counts;
  for (const auto& [name, group] : groups) counts[name] = group.count;
  for (const SharedResource& resource : plan.sharing.resources) {
    const auto it = groups.find(resource.name);
    if (it == groups.end() || it->second.count == 0) {
      // Compile has already spoken of names that exist on no node.
      if (!CanExist(resource.name, plan.flags.mig_strategy)) continue;
      problems.push_back(At(resource, Code::kResourceUnmatched,
                            absl::StrCat("the node has no ", resource.name,
                                         ": this entry shares nothing there")));
      continue;
    }
    CheckDevices(resource, it->second.count, problems);
    CheckMemory(plan, resource, it->second.memory_bytes, problems);
  }
  for (Problem& problem : CheckDeviceListSize(plan, counts)) {
    problems.push_back(std::move(problem));
  }
  return problems;
}

}  // namespace rondo::config
