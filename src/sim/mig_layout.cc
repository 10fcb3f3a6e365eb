// SPDX-License-Identifier: Apache-2.0
#include "sim/mig_layout.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "sim/identity.h"

namespace rondo::sim {
namespace {

void FillMigProfiles(const Model& m, GpuState* g) {
  g->mig_profile_count = m.mig.size();
  for (size_t i = 0; i < m.mig.size(); ++i) {
    const MigProfileModel& from = m.mig[i];
    MigProfileState& to = g->mig_profiles[i];
    g->max_migs = std::max(g->max_migs, from.max_instances);
    to.profile = from.profile, to.id = from.id;
    to.slices = from.slices, to.memory_slices = from.memory_slices;
    to.max_instances = from.max_instances;
    to.multiprocessors = from.multiprocessors;
    to.copy_engines = from.memory_slices == 8 ? 8 : from.memory_slices;
    to.decoders = from.slices == 1 ? 0 : from.slices / 2 + from.slices % 2;
    to.jpegs = to.ofas = from.slices == 7 || absl::EndsWith(from.name, "+me");
    if (to.ofas != 0) to.decoders = std::max(to.decoders, 1u);
    to.memory_mib = from.memory_mib;
    CopyText(from.name, to.name);
  }
}

// A GPU instance that a layout asks for, with the slots of its devices.
struct Instance {
  uint32_t profile;
  uint32_t free_slices;
  std::vector<int> slots;
};

// First fit over the eight memory slices. The driver puts a 3g instance in the
// upper half if it can, which leaves room for the most smaller ones.
int FindStart(const MigProfileState& p, uint32_t used) {
  const uint32_t size = p.memory_slices;
  const uint32_t mask = (1u << size) - 1;
  if (p.slices == 3)
    for (uint32_t start : {4u, 0u})
      if ((used & mask << start) == 0) return start;
  const uint32_t last = size == 1 ? 6 : p.slices == 2 ? 4 : 8 - size;
  for (uint32_t start = 0; p.slices != 3 && start <= last; start += size)
    if ((used & mask << start) == 0) return start;
  return -1;
}

absl::Status GroupInstances(const GpuSpec& spec, const GpuState& g,
                            std::vector<Instance>* out) {
  for (size_t slot = 0; slot < spec.mig.size(); ++slot) {
    absl::string_view name = spec.mig[slot];
    uint32_t compute = 0;
    if (const size_t dot = name.find("c."); dot != name.npos) {
      if (!absl::SimpleAtoi(name.substr(0, dot), &compute) || compute == 0)
        return absl::InvalidArgumentError(
            absl::StrCat("'", name, "': write 1c.3g.40gb"));
      name.remove_prefix(dot + 2);
    }
    uint32_t profile = 0;
    while (profile < g.mig_profile_count &&
           g.mig_profiles[profile].name != name)
      ++profile;
    if (profile == g.mig_profile_count)
      return absl::InvalidArgumentError(absl::StrCat("no profile ", name));
    const uint32_t slices = g.mig_profiles[profile].slices;
    if (compute > slices)
      return absl::InvalidArgumentError(
          absl::StrCat(spec.mig[slot], " has more compute than GPU slices"));
    if (compute == 0) compute = slices;
    // Compute instances that follow one another share a GPU instance.
    if (compute == slices || out->empty() || out->back().profile != profile ||
        out->back().free_slices < compute)
      out->push_back({profile, slices, {}});
    out->back().free_slices -= compute;
    out->back().slots.push_back(slot);
  }
  return absl::OkStatus();
}

uint32_t ComputeSlices(const std::string& name, uint32_t gpu_slices) {
  uint32_t compute = 0;
  const size_t dot = name.find("c.");
  if (dot == std::string::npos ||
      !absl::SimpleAtoi(name.substr(0, dot), &compute))
    return gpu_slices;
  return compute;
}

void FillMigDevices(const GpuSpec& spec, const Instance& instance, int start,
                    uint32_t id, const std::string& key, GpuState* g) {
  const MigProfileState& p = g->mig_profiles[instance.profile];
  for (size_t i = 0; i < instance.slots.size(); ++i) {
    const int slot = instance.slots[i];
    MigState& mig = g->migs[slot];
    mig.gpu_instance = id, mig.compute_instance = i;
    mig.profile = instance.profile;
    mig.compute_slices = ComputeSlices(spec.mig[slot], p.slices);
    mig.compute_instances = instance.slots.size();
    mig.start = start, mig.size = p.memory_slices;
    mig.multiprocessors = p.multiprocessors * mig.compute_slices / p.slices;
    CopyText(MakeUuid("MIG", absl::StrCat(key, "/mig/", slot)), mig.uuid);
  }
}

}  // namespace

absl::Status FillMig(const GpuSpec& spec, const std::string& key, GpuState* g) {
  FillMigProfiles(*spec.model, g);
  if (!spec.mig_enabled) return absl::OkStatus();
  g->flags |= kMigEnabled;
  if (spec.mig.size() > kMaxMigs)
    return absl::InvalidArgumentError("at most 8 MIG devices on a GPU");
  std::vector<Instance> instances;
  RONDO_RETURN_IF_ERROR(GroupInstances(spec, *g, &instances));
  // Big ones first, as a person who wants all of them would.
  std::vector<int> order(instances.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return g->mig_profiles[instances[a].profile].slices >
           g->mig_profiles[instances[b].profile].slices;
  });
  uint32_t used = 0, made[kMaxMigProfiles] = {}, next_id[9] = {};
  for (const int i : order) {
    const MigProfileState& p = g->mig_profiles[instances[i].profile];
    const int start = FindStart(p, used);
    if (start < 0 || ++made[instances[i].profile] > p.max_instances)
      return absl::InvalidArgumentError(
          absl::StrCat("the MIG devices do not fit: no place for ", p.name));
    used |= ((1u << p.memory_slices) - 1) << start;
    // The driver's ids: the whole 0, halves from 1, quarters 3, eighths 7.
    const uint32_t base = p.slices == 7   ? 0
                          : p.slices >= 3 ? 1
                          : p.slices == 2 ? 3
                                          : 7;
    FillMigDevices(spec, instances[i], start, base + next_id[base]++, key, g);
  }
  g->mig_count = spec.mig.size();
  return absl::OkStatus();
}

}  // namespace rondo::sim
