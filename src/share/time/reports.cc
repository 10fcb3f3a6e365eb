// SPDX-License-Identifier: Apache-2.0
//
// What a report of the context-switch log says of each tenant.
#include <algorithm>
#include <cmath>
#include <utility>

#include "share/time/arbiter.h"

namespace rondo::share {
namespace {

constexpr int64_t kRoundKeptUs = 300'000;
constexpr int64_t kMissedUs = 5'000;  // that a round may take longer

}  // namespace

std::map<TenantId, Use> Arbiter::TakeReport(int64_t now_us,
                                            const Activity& event) {
  const bool was_fresh = LogFresh(now_us);
  usage_at_us_ = log_at_us_ = now_us;
  log_age_us_ = event.age_us;
  if (std::exchange(sampled_, false)) {
    sampled_outside_ = 0;
    for (auto& [id, tenant] : tenants_) {
      tenant.sampled_share = 0;
      tenant.sampled_unused_us = 0;
      tenant.sampled_over = false;
    }
  }
  if (std::any_of(event.runs.begin(), event.runs.end(),
                  [](const Activity::Run& run) { return run.busy_us > 0; }))
    outside_.Add(
        now_us, std::clamp<int64_t>(event.other_busy_us, 0, event.interval_us));
  std::map<TenantId, Use> uses;
  for (const Activity::Run& run : event.runs) {
    const auto process = processes_.find(run.process);
    if (process == processes_.end()) continue;
    Tenant& tenant = tenants_.at(process->second.tenant);
    const int64_t busy = std::clamp<int64_t>(run.busy_us, 0, event.interval_us);
    const auto [entry, is_first] = uses.try_emplace(process->second.tenant);
    Use& use = entry->second;
    use.idle_us = is_first ? run.idle_us : std::min(use.idle_us, run.idle_us);
    use.busy_us += busy;
    use.stays += run.stays;
    use.ended += run.ended;
    use.ended_us += run.ended_us;
    use.longest_us = std::max(use.longest_us, run.longest_us);
    tenant.used.Add(now_us, busy);
    tenant.gpu_time_us += busy;
    if (was_fresh)
      tenant.limit.Spend(std::clamp<int64_t>(
          now_us - event.age_us - tenant.limit.since_us(), 0, busy));
    if (busy == 0) continue;
    tenant.paused = false;
    const int64_t last_us = now_us - std::max<int64_t>(0, event.age_us) -
                            std::max<int64_t>(0, run.idle_us);
    process->second.ran_us = std::max(process->second.ran_us, last_us);
    if (controls_.OnRan(last_us, run.process)) ++tenant.escapes;
  }
  return uses;
}

// GPU time that the holder of the turn could have had and did not take.
void Arbiter::UpdateHolder(int64_t now_us, const Activity& event) {
  if (!turns_.holder() || event.interval_us <= 0) return;
  int64_t own = 0, others = event.other_busy_us;
  for (const Activity::Run& run : event.runs) {
    const auto process = processes_.find(run.process);
    if (process == processes_.end()) continue;
    (turns_.Holds(process->second.tenant) ? own : others) += run.busy_us;
  }
  if (own > 0) return turns_.Ran();
  // Time before it was resumed is not time that it could have had.
  const int64_t since_us = now_us - event.age_us - event.interval_us;
  if (!Confirmed(*turns_.holder(), Controls::Run::kRunning, since_us)) return;
  turns_.Absent(std::max<int64_t>(0, event.interval_us - others),
                event.interval_us);
}

// Suspended although it may have work.
bool Arbiter::KeptOff(const Tenant& tenant) const {
  return !tenant.wanted_runnable && !tenant.limit.throttled();
}

void Arbiter::UpdateDemand(int64_t now_us, const Activity& event,
                           const std::map<TenantId, Use>& uses) {
  double weights = 0, round_us = 0;
  std::map<TenantId, double> slices;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.groups == 0) continue;
    if (KeptOff(tenant) ||
        now_us - tenant.demand.last_us() <= rules_.credit.among_us)
      weights += tenant.spec.weight;
    if (tenant.demand.asleep()) continue;
    slices[id] =
        (SliceOf(id) + rm::kContextSwitchUs) * ActiveGroups(now_us, id);
    if (tenant.wanted_runnable) round_us += slices[id];
  }
  // Slices that have just become shorter may explain an absence yet.
  if (round_us >= round_us_ || now_us - round_at_us_ > kRoundKeptUs) {
    round_us_ = round_us;
    round_at_us_ = now_us;
  }
  // Wants the GPU: it ran since its last place in the round, or may not.
  std::map<TenantId, bool> wanting;
  for (const auto& [id, tenant] : tenants_) {
    const auto use = uses.find(id);
    const int64_t last_us = use != uses.end() && use->second.busy_us > 0
                                ? now_us - use->second.idle_us
                                : tenant.demand.last_us();
    wanting[id] =
        tenant.groups > 0 &&
        (KeptOff(tenant) ||
         static_cast<double>(now_us - last_us) <=
             round_us_ + static_cast<double>(event.interval_us + kMissedUs));
  }
  for (auto& [id, tenant] : tenants_) {
    if (tenant.groups == 0) continue;
    const auto found = uses.find(id);
    const Use use = found == uses.end() ? Use{} : found->second;
    Demand::Round round;
    round.slice_us = SliceOf(id);
    round.interval_us = event.interval_us;
    round.kept_off = KeptOff(tenant);
    round.tells =
        serves_ ||
        round.slice_us >= static_cast<double>(rules_.demand.telling_slice_us);
    round.others_us =
        round_us_ -
        (tenant.wanted_runnable && slices.contains(id) ? slices[id] : 0);
    for (const auto& [other, wants] : wanting)
      round.contended |= wants && other != id;
    tenant.demand.Add(now_us, use, round, rules_.demand);
    if (tenant.demand.came()) earned_.Visited(now_us, rules_.earned);
    const double all = std::max(weights, tenant.spec.weight);
    const bool waited = use.longest_us <= rules_.demand.waited * round.slice_us;
    double used_us = !round.contended ? 0
                     : waited
                         ? use.busy_us
                         : std::max<int64_t>(0, use.busy_us - use.longest_us);
    // What its coming and going takes from the others is its use as well.
    if (round.contended && mode_ == Mode::kServed &&
        tenant.standing == Standing::kVisits)
      used_us += 2 * rm::kContextSwitchUs * static_cast<double>(use.stays);
    tenant.credit.Settle(static_cast<double>(event.interval_us),
                         tenant.spec.weight / all, used_us,
                         tenant.spec.cls == TenantClass::kLatency
                             ? rules_.credit.latency
                             : rules_.credit.standard,
                         rules_.credit);
    if (use.busy_us == 0 || tenant.spec.cls != TenantClass::kStandard ||
        tenant.standing != Standing::kVisits)
      continue;
    visit_us_ = now_us;
    if (tenant.demand.Proven(now_us, rules_.demand)) proven_visit_us_ = now_us;
  }
}

void Arbiter::UpdateSlices(int64_t now_us, const Activity& event,
                           const std::map<TenantId, Use>& uses) {
  if (mode_ == Mode::kServed) {
    int64_t stays = 0;
    for (const auto& [id, use] : uses)
      if (turns_.Holds(id)) stays += use.stays;
    holder_slice_.Add(
        event.interval_us, stays,
        serves_ ? rules_.holder.latency_price : rules_.holder.price,
        static_cast<double>(rules_.base_slice_us), rules_.holder);
    return;
  }
  if (mode_ == Mode::kAlone) return;
  double rotation_us = 0, shortest_visit_us = EarnedSlice::kNobodyUs;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.groups == 0) continue;
    if (tenant.standing != Standing::kFills && tenant.demand.stay_us() > 0 &&
        now_us - tenant.demand.last_us() <= rules_.earned.remembered_us)
      shortest_visit_us = std::min(shortest_visit_us, tenant.demand.stay_us());
    if (tenant.demand.asleep()) continue;
    rotation_us += static_cast<double>(SliceOf(id) + rm::kContextSwitchUs) *
                   ActiveGroups(now_us, id);
  }
  if (earned_.Judge(now_us, rotation_us, shortest_visit_us, rules_.earned))
    UpdateParts();
}

// A program that waits for its kernels leaves the GPU when one ends, and the
// rest of its slice is gone: the hardware goes on to the next group. So that
// times on the GPU come out by weight, those who use all of their slices get
// shorter ones, in proportion.
void Arbiter::UpdateParts() {
  const auto use = [&](const Tenant& tenant) {
    const double use = tenant.demand.use();
    return use >= rules_.earned.whole ? 1.0 : use;
  };
  double least = 1;
  for (const auto& [id, tenant] : tenants_)
    if (tenant.groups > 0 && tenant.standing >= Standing::kOver)
      least = std::min(least, use(tenant));
  for (auto& [id, tenant] : tenants_) {
    const double part = least / std::max(least, use(tenant));
    if (std::abs(part - tenant.part) > rules_.earned.same) tenant.part = part;
  }
}

}  // namespace rondo::share
