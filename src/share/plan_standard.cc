// SPDX-License-Identifier: Apache-2.0
//
// The arbiter's plan without a latency tenant: slices by weight.
#include <algorithm>
#include <cmath>

#include "share/arbiter.h"

namespace rondo::share {
namespace {

// A factor for slices is left for a while when it turns out not to help, and a
// change of it has to be worth the interruption.
constexpr int64_t kNoFactorUs = 10'000'000;
constexpr double kFactorStep = 0.03;
constexpr int64_t kObserveUs = 2'000'000;  // some fifty rotations

}  // namespace

// Everybody runs (limits apart), by weights. A slice that would come out too
// short stretches the whole rotation: the ratios stay.
void Arbiter::PlanStandard(int64_t now_us) {
  double weights = 0;
  for (const auto& [id, tenant] : tenants_)
    if (tenant.groups > 0) weights += tenant.spec.weight;
  double stretch = 1;
  std::map<TenantId, double> slices;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.groups == 0) continue;
    const double slice = options_.period_us * tenant.spec.weight / weights /
                         ActiveGroups(now_us, id);
    slices[id] = slice;
    stretch = std::max(stretch, options_.least_slice_us / slice);
  }
  for (const auto& [id, slice] : slices) {
    const Tenant& tenant = tenants_.at(id);
    double own = slice * stretch;
    if (!tenant.leaves_early)
      own = std::max(own * slice_factor_,
                     std::min<double>(own, options_.short_slice_us));
    WantSlice(id, !tenant.throttled, own);
  }
}

void Arbiter::ObserveAnew(int64_t now_us) {
  observe_from_us_ = now_us;
  slices_observed_us_ = 0;
  for (auto& [id, tenant] : tenants_) tenant.stays = {};
}

void Arbiter::UpdateEarlyLeavers(int64_t now_us) {
  if (turns_) ObserveAnew(now_us);
  if (slices_observed_us_ < kObserveUs) return;
  double weights = 0;
  for (const auto& [id, tenant] : tenants_)
    if (tenant.groups > 0) weights += tenant.spec.weight;
  std::vector<Stays> stays;
  std::vector<Tenant*> whose;
  for (auto& [id, tenant] : tenants_) {
    if (tenant.groups == 0) continue;
    Stays t = tenant.stays;
    // Whom a limit keeps away is away for no reason of its own.
    if (tenant.spec.limit < 1) t.count = 0;
    t.groups = ActiveGroups(now_us, id);
    t.due_us = options_.period_us * tenant.spec.weight / weights / t.groups;
    t.slice_us = View(id, now_us).slice_us;
    stays.push_back(t);
    whose.push_back(&tenant);
  }
  double factor = SliceFactor(&stays, slices_observed_us_);
  ObserveAnew(now_us);
  if (factor < 1 && now_us < no_factor_until_us_) factor = 1;
  if (std::abs(factor - slice_factor_) <= kFactorStep * slice_factor_) return;
  if (factor == 1) no_factor_until_us_ = now_us + kNoFactorUs;
  slice_factor_ = factor;
  for (size_t i = 0; i < whose.size(); ++i)
    whose[i]->leaves_early = factor < 1 && stays[i].leaves;
}

}  // namespace rondo::share
