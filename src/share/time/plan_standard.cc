// SPDX-License-Identifier: Apache-2.0
//
// The arbiter's plan without a latency tenant: slices by weight.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "share/time/arbiter.h"

namespace rondo::share {
namespace {

// A factor for slices is left for a while when it turns out not to help, and a
// change of it has to be worth the interruption.
constexpr int64_t kNoFactorUs = 10'000'000;
constexpr double kFactorStep = 0.03;
constexpr double kLongestSliceUs = 100'000;  // that a stretch leads to
// A window to judge by. Only what two windows running say is believed: a
// program that starts, or changes what it does, is not yet how it will go on.
constexpr int64_t kLeastWindowUs = 1'000'000;
constexpr int kLeastRotations = 12;

}  // namespace

int Arbiter::PresentCount() const {
  return static_cast<int>(
      std::count_if(tenants_.begin(), tenants_.end(),
                    [](const auto& entry) { return entry.second.groups > 0; }));
}

// One rotation of all that are present. Of three or more it grows with their
// number: slices have to stay long enough for what a switch costs.
double Arbiter::RotationUs() const {
  return options_.period_us * std::max(1.0, PresentCount() / 2.0);
}

// By weight, a slice for each group of each tenant. One that would come out too
// short stretches the whole rotation: the ratios stay.
std::map<TenantId, double> Arbiter::DueSlices(int64_t now_us) const {
  const bool alone = PresentCount() == 1;
  const double rotation_us = RotationUs();
  double weights = 0;
  for (const auto& [id, tenant] : tenants_)
    if (tenant.groups > 0) weights += tenant.spec.weight;
  double stretch = 1;
  std::map<TenantId, double> slices;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.groups == 0) continue;
    if (alone) {
      // Its processes among themselves. They come and go, and nobody else has
      // anything of an exact division.
      const auto groups = std::bit_ceil(static_cast<unsigned>(tenant.groups));
      return {{id, std::max<double>(options_.period_us / groups,
                                    options_.short_slice_us)}};
    }
    const double slice =
        rotation_us * tenant.spec.weight / weights / ActiveGroups(now_us, id);
    slices[id] = slice;
    stretch = std::max(stretch, options_.least_slice_us / slice);
  }
  // A tiny weight, or very many processes of one, must not hold up the others
  // for long; past that the ratios go.
  double longest = 0;
  for (const auto& [id, slice] : slices) longest = std::max(longest, slice);
  stretch = std::min(stretch, std::max(1.0, kLongestSliceUs / longest));
  for (auto& [id, slice] : slices)
    slice = std::max<double>(slice * stretch, options_.least_slice_us);
  return slices;
}

// Everybody runs, limits apart.
void Arbiter::PlanStandard(int64_t now_us) {
  for (auto [id, slice] : DueSlices(now_us)) {
    const Tenant& tenant = tenants_.at(id);
    if (!tenant.leaves_early)
      slice = std::max(slice * slice_factor_,
                       std::min<double>(slice, options_.short_slice_us));
    WantSlice(id, !tenant.throttled, slice);
  }
}

void Arbiter::ObserveAnew(int64_t now_us) {
  BeginWindow(now_us);
  factor_seen_.reset();
}

void Arbiter::BeginWindow(int64_t now_us) {
  observe_from_us_ = now_us;
  slices_observed_us_ = 0;
  for (auto& [id, tenant] : tenants_) tenant.stays = {};
}

void Arbiter::UpdateEarlyLeavers(int64_t now_us) {
  if (turns_) ObserveAnew(now_us);
  if (slices_observed_us_ <
      std::max<double>(kLeastWindowUs, kLeastRotations * RotationUs()))
    return;
  std::vector<Stays> stays;
  std::vector<Tenant*> whose;
  for (const auto& [id, due_us] : DueSlices(now_us)) {
    Tenant& tenant = tenants_.at(id);
    Stays t = tenant.stays;
    // Whom a limit keeps away is away for no reason of its own.
    if (tenant.spec.limit < 1) t.count = 0;
    t.groups = ActiveGroups(now_us, id);
    t.due_us = due_us;
    t.slice_us = View(id, now_us).slice_us;
    stays.push_back(t);
    whose.push_back(&tenant);
  }
  const double seen = SliceFactor(&stays, slices_observed_us_);
  BeginWindow(now_us);
  const auto seen_before = std::exchange(factor_seen_, seen);
  if (!seen_before) return;
  double factor = std::max(*seen_before, seen);
  if (factor < 1 && now_us < no_factor_until_us_) factor = 1;
  if (std::abs(factor - slice_factor_) <= kFactorStep * slice_factor_) return;
  if (factor == 1) no_factor_until_us_ = now_us + kNoFactorUs;
  slice_factor_ = factor;
  for (size_t i = 0; i < whose.size(); ++i)
    whose[i]->leaves_early = factor < 1 && stays[i].leaves;
}

}  // namespace rondo::share
