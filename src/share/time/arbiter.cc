// SPDX-License-Identifier: Apache-2.0
//
// Events and what is remembered of them. What follows from it is in plan.cc.
#include "share/time/arbiter.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace rondo::share {
namespace {

// Activity older than this says nothing about now.
constexpr int64_t kLogStaleUs = 1'000'000;
constexpr int64_t kUsageStaleUs = 5'000'000;
// A share is judged over no less than this.
constexpr int64_t kLeastWindowUs = 250'000;
constexpr int64_t kLeastRotationUs = 60'000;
constexpr int64_t kLeastDwellUs = 250'000;
// Of two latency tenants that never pause the one that is over its share gets
// next to nothing beside the other, and is below it for no reason of its own.
// So it is not judged until its window is of what came after.
constexpr int64_t kSettledUs = 1'500'000;
// Outsiders that have more than this part of what ours beside the latency
// tenants have; and until they have less than the second part.
constexpr double kLeastOutside = 0.02, kCrowded = 0.5, kNotCrowded = 0.1;
constexpr int64_t kCrowdedDwellUs = 2'000'000;
// Longer than so many slices on the GPU: nobody waited for it.
constexpr double kWaitedSlices = 1.5;
// Over its share only where it is above by both; below again under that part of
// it. In between nothing changes: one held exactly to its share must not flap.
constexpr double kOverMargin = 0.02;
constexpr double kOverFactor = 1.1;
constexpr double kBelowFactor = 0.9;
// A limit near 0 has a budget of nothing, and waits for years, which is more
// than a clock's number holds. What is missed within the least is paid back.
constexpr double kLeastBudgetWakeUs = 1'000, kLongestBudgetWakeUs = 3600e6;
// Samples are coarse, and a tenant's own second may lie across two of them.
constexpr double kSampledOverMargin = 0.15;
constexpr double kSampledOverFactor = 1.3;
constexpr double kSampledBelowFactor = 0.75;

}  // namespace

Decision Arbiter::Step(int64_t now_us, const Event& event) {
  std::visit([&](const auto& e) { On(now_us, e); }, event);
  Decision decision;
  for (auto& [id, tenant] : tenants_) {
    if (!std::holds_alternative<Activity>(event))
      UpdateBudget(now_us, id, tenant);
    UpdateThrottle(now_us, tenant, &decision);
    UpdateShare(now_us, id, tenant);
  }
  Plan(now_us, &decision);
  const int64_t wake_us =
      controls_.Reconcile(now_us, not_after_us_, &decision.actions);
  decision.wake_us = std::min(decision.wake_us, wake_us);
  return decision;
}

void Arbiter::On(int64_t now_us, const TenantSet& event) {
  const auto [entry, is_new] = tenants_.try_emplace(event.tenant);
  Tenant& tenant = entry->second;
  const bool had_limit = !is_new && tenant.spec.limit < 1;
  tenant.spec = event.spec;
  if (!(tenant.spec.weight > 0)) tenant.spec.weight = 1;
  if (!(tenant.spec.limit > 0 && tenant.spec.limit <= 1)) tenant.spec.limit = 1;
  const double largest = tenant.spec.limit * options_.duty_us;
  // What it used without a limit is not held against it.
  if (!had_limit) {
    tenant.budget_us = largest / 2;
    tenant.limited_since_us = now_us;
  }
  tenant.budget_us = std::min(tenant.budget_us, largest);
  if (is_new) tenant.budget_at_us = now_us;
  if (tenant.spec.cls != TenantClass::kLatency) tenant.over = false;
}

void Arbiter::On(int64_t now_us, const TenantGone& event) {
  for (auto p = processes_.begin(); p != processes_.end();) {
    if (p->second.tenant == event.tenant) {
      controls_.Detach(now_us, p->first);
      p = processes_.erase(p);
    } else {
      ++p;
    }
  }
  tenants_.erase(event.tenant);
}

void Arbiter::On(int64_t, const ProcessAttached& event) {
  if (!tenants_.contains(event.tenant)) return;
  processes_[event.process] = {.tenant = event.tenant};
  controls_.Attach(event.process);
}

void Arbiter::On(int64_t now_us, const ProcessGroups& event) {
  const auto process = processes_.find(event.process);
  if (process == processes_.end()) return;
  process->second.groups = std::max(0, event.groups);
  controls_.SetGroups(now_us, event.process, process->second.groups);
  Recount(now_us, process->second.tenant);
}

void Arbiter::On(int64_t now_us, const ProcessGone& event) {
  const auto process = processes_.find(event.process);
  if (process == processes_.end()) return;
  const TenantId tenant = process->second.tenant;
  controls_.Detach(now_us, event.process);
  processes_.erase(process);
  Recount(now_us, tenant);
}

void Arbiter::On(int64_t now_us, const SliceApplied& event) {
  const uint32_t before_us = controls_.slice_us(event.process);
  controls_.OnApplied(event.process, event.seq, event.slice_us, event.ok);
  if (controls_.slice_us(event.process) != before_us) ObserveAnew(now_us);
}

void Arbiter::On(int64_t now_us, const Switched& event) {
  if (!event.late)
    return controls_.OnSwitched(now_us, event.op, event.process, event.ok);
  controls_.OnLate(event.op, event.process);
  const auto process = processes_.find(event.process);
  if (process == processes_.end() || !turn_before_ ||
      process->second.tenant != turn_before_->holder)
    return;
  // The gap is over: the turn goes on, and waits for the next one.
  turn_ = *turn_before_;
  turn_before_.reset();
}

void Arbiter::On(int64_t now_us, const Activity& event) {
  // Settled by the clock up to here, then by what was really used.
  const bool was_fresh = LogFresh(now_us);
  for (auto& [id, tenant] : tenants_) UpdateBudget(now_us, id, tenant);
  if (event.source == Activity::Source::kSampling)
    return OnSampled(now_us, event);
  usage_at_us_ = log_at_us_ = now_us;
  log_age_us_ = event.age_us;
  if (std::exchange(sampled_, false))
    for (auto& [id, tenant] : tenants_)
      sampled_outside_ = tenant.sampled_share = 0, tenant.sampled_unused_us = 0;
  UpdateHolderIdle(event, now_us);
  UpdateContention(event, now_us);
  if (std::any_of(event.runs.begin(), event.runs.end(),
                  [](const Activity::Run& run) { return run.busy_us > 0; }))
    outside_.Add(
        now_us, std::clamp<int64_t>(event.other_busy_us, 0, event.interval_us));
  const bool observes =
      now_us - event.age_us - event.interval_us >= observe_from_us_;
  for (const Activity::Run& run : event.runs) {
    const auto process = processes_.find(run.process);
    if (process == processes_.end()) continue;
    Tenant& tenant = tenants_.at(process->second.tenant);
    const int64_t busy = std::clamp<int64_t>(run.busy_us, 0, event.interval_us);
    tenant.used.Add(now_us, busy);
    tenant.gpu_time_us += busy;
    if (observes) tenant.stays.used_us += busy;
    if (observes) tenant.stays.count += run.stays;
    if (was_fresh && tenant.spec.limit < 1)
      tenant.budget_us -= std::clamp<int64_t>(
          now_us - event.age_us - tenant.limited_since_us, 0, busy);
    if (busy == 0) continue;
    tenant.idle = false;
    const int64_t last_us = now_us - std::max<int64_t>(0, event.age_us) -
                            std::max<int64_t>(0, run.idle_us);
    process->second.ran_us = std::max(process->second.ran_us, last_us);
    if (controls_.OnRan(last_us, run.process)) ++tenant.escapes;
  }
  if (observes) slices_observed_us_ += event.interval_us;
  UpdateEarlyLeavers(now_us);
}

// GPU time that the holder of the turn could have had and did not take.
void Arbiter::UpdateHolderIdle(const Activity& event, int64_t now_us) {
  if (!has_holder_ || event.interval_us <= 0) return;
  int64_t own = 0, others = event.other_busy_us;
  for (const Activity::Run& run : event.runs) {
    const auto process = processes_.find(run.process);
    if (process == processes_.end()) continue;
    (process->second.tenant == turn_.holder ? own : others) += run.busy_us;
  }
  if (own > 0) {
    turn_.ran = true;
    turn_.unused_us = 0;
    turn_.absent_us = 0;
    return;
  }
  // Time before it was resumed is not time that it could have had.
  const int64_t since_us = now_us - event.age_us - event.interval_us;
  if (!Confirmed(turn_.holder, Controls::Run::kRunning, since_us)) return;
  turn_.unused_us += std::max<int64_t>(0, event.interval_us - others);
  turn_.absent_us += event.interval_us;
}

void Arbiter::UpdateContention(const Activity& event, int64_t now_us) {
  std::map<TenantId, int64_t> busy;
  for (const Activity::Run& run : event.runs) {
    const auto process = processes_.find(run.process);
    if (process == processes_.end() || run.busy_us <= 0) continue;
    busy[process->second.tenant] += run.busy_us;
    // Whoever waits gets the GPU at the end of a slice.
    if (run.longest_us > kWaitedSlices * controls_.slice_us(run.process)) {
      int64_t& alone_us = tenants_.at(process->second.tenant).pending_alone_us;
      alone_us = std::max(alone_us, run.longest_us);
    }
  }
  const int64_t rotation_us =
      static_cast<int64_t>(2 * RotationUs()) + kLeastRotationUs;
  for (auto& [id, tenant] : tenants_) {
    const auto own = busy.find(id);
    const int64_t own_us = own == busy.end() ? 0 : own->second;
    tenant.pending_us += own_us;
    if (busy.size() == (own == busy.end() ? 0u : 1u)) continue;  // no other
    const bool waited =
        now_us - event.interval_us - tenant.other_ran_us <= rotation_us;
    tenant.contended.Add(
        now_us, std::max<int64_t>(0, (waited ? tenant.pending_us : own_us) -
                                         tenant.pending_alone_us));
    tenant.pending_us = tenant.pending_alone_us = 0;
    tenant.other_ran_us = now_us;
  }
}

bool Arbiter::LogFresh(int64_t now_us) const {
  return now_us - log_at_us_ <= kLogStaleUs;
}

bool Arbiter::UsageKnown(int64_t now_us) const {
  return LogFresh(now_us) || now_us - usage_at_us_ <= kUsageStaleUs;
}

// Of the GPU's time in the last second.
double Arbiter::UsedShare(int64_t now_us, Tenant& tenant) const {
  if (sampled_) return tenant.sampled_share;
  return static_cast<double>(tenant.used.Sum(now_us)) / UsageWindow::kLengthUs;
}

// Whether programs without Rondo, or those of another arbiter, take so much of
// the GPU that one of ours on a tiny slice gets next to nothing beside them:
// the hardware goes round, and gives each what its slice is. If the other one
// is tiny as well nobody gets anything at all.
void Arbiter::UpdateCrowded(int64_t now_us) {
  const double outside =
      !UsageKnown(now_us) ? 0
      : sampled_
          ? sampled_outside_
          : static_cast<double>(outside_.Sum(now_us)) / UsageWindow::kLengthUs;
  double own = 0;
  for (auto& [id, tenant] : tenants_)
    if (tenant.groups > 0 && !Served(tenant)) own += UsedShare(now_us, tenant);
  const bool was_crowded = crowded_;
  if (outside > std::max(kLeastOutside, own * kCrowded)) crowded_ = true;
  if (outside < std::max(kLeastOutside, own * kNotCrowded) &&
      now_us - crowded_since_us_ >= kCrowdedDwellUs)
    crowded_ = false;
  if (crowded_ != was_crowded) crowded_since_us_ = now_us;
}

// Whether it wants the GPU. One that may not run now is taken to want it,
// unless it made nothing of its last turn.
bool Arbiter::Active(int64_t now_us, Tenant& tenant) const {
  if (tenant.groups == 0) return false;
  if (!UsageKnown(now_us) || UsedShare(now_us, tenant) > 0) return true;
  // Who had no room to run is not seen in samples.
  if (sampled_ && tenant.sampled_unused_us < options_.idle_sampled_us)
    return true;
  return !tenant.wanted_runnable && !tenant.idle;
}

// All its processes with channels are in that state since then or longer.
bool Arbiter::Confirmed(TenantId id, Controls::Run run,
                        int64_t since_us) const {
  return std::all_of(
      processes_.begin(), processes_.end(), [&](const auto& entry) {
        if (entry.second.tenant != id || entry.second.groups == 0) return true;
        return controls_.run(entry.first) == run &&
               controls_.run_since_us(entry.first) <= since_us;
      });
}

void Arbiter::Recount(int64_t now_us, TenantId id) {
  const auto found = tenants_.find(id);
  if (found == tenants_.end()) return;
  int groups = 0;
  for (const auto& [process_id, process] : processes_)
    if (process.tenant == id) groups += process.groups;
  if (found->second.groups == 0 && groups > 0)
    found->second.present_since_us = now_us;
  if (found->second.groups != groups) ObserveAnew(now_us);
  found->second.groups = groups;
}

void Arbiter::UpdateBudget(int64_t now_us, TenantId id, Tenant& tenant) {
  const double elapsed = now_us - tenant.budget_at_us;
  tenant.budget_at_us = now_us;
  const double limit = tenant.spec.limit;
  if (limit >= 1) return;
  tenant.budget_us =
      std::min(tenant.budget_us + elapsed * limit, limit * options_.duty_us);
  // Without the log nobody knows what was used; all the time that it may have
  // run is the only safe answer.
  if (!LogFresh(now_us) && tenant.groups > 0 &&
      !Confirmed(id, Controls::Run::kSuspended, INT64_MAX - 1))
    tenant.budget_us -= elapsed;
}

void Arbiter::UpdateThrottle(int64_t now_us, Tenant& tenant,
                             Decision* decision) {
  const double limit = tenant.spec.limit;
  if (limit >= 1 || tenant.groups == 0) {
    tenant.throttled = false;
    return;
  }
  const double enough = limit * options_.duty_us / 2;
  if (tenant.budget_us <= 0) tenant.throttled = true;
  if (tenant.budget_us >= enough) tenant.throttled = false;
  const double until_change = tenant.throttled
                                  ? (enough - tenant.budget_us) / limit
                                  : tenant.budget_us / (1 - limit);
  decision->wake_us = std::min(
      decision->wake_us,
      now_us + static_cast<int64_t>(std::clamp(until_change, kLeastBudgetWakeUs,
                                               kLongestBudgetWakeUs)));
}

void Arbiter::UpdateShare(int64_t now_us, TenantId id, Tenant& tenant) {
  if (tenant.spec.cls != TenantClass::kLatency) return;
  const bool was_over = tenant.over;
  double weights = tenant.spec.weight;
  bool others = false, settled = true;
  for (auto& [other_id, other] : tenants_) {
    if (other_id == id || !Active(now_us, other)) continue;
    weights += other.spec.weight;
    others = true;
    settled &= now_us - other.over_since_us >= kSettledUs;
  }
  if (!others || tenant.groups == 0 || !UsageKnown(now_us)) {
    // Nobody waits for it, or nobody can tell: PlanTurns bounds the latter.
    tenant.over = false;
  } else if (now_us - tenant.over_since_us >= kLeastDwellUs) {
    const int64_t window = std::clamp(now_us - tenant.present_since_us,
                                      kLeastWindowUs, UsageWindow::kLengthUs);
    // NVML's samples count no time of an idle context.
    const double share =
        sampled_ ? tenant.sampled_share
                 : static_cast<double>(tenant.contended.Sum(now_us)) / window;
    const double entitled = tenant.spec.weight / weights;
    const double margin = sampled_ ? kSampledOverMargin : kOverMargin;
    const double factor = sampled_ ? kSampledOverFactor : kOverFactor;
    const double below = sampled_ ? kSampledBelowFactor : kBelowFactor;
    if (share > std::max(entitled + margin, entitled * factor))
      tenant.over = true;
    if (share < entitled * below && settled) tenant.over = false;
  }
  if (tenant.over != was_over) tenant.over_since_us = now_us;
}

TenantView Arbiter::View(TenantId id, int64_t now_us) {
  TenantView view;
  const auto found = tenants_.find(id);
  if (found == tenants_.end()) return view;
  Tenant& tenant = found->second;
  view.present = tenant.groups > 0;
  view.suspended =
      view.present && Confirmed(id, Controls::Run::kSuspended, INT64_MAX - 1);
  view.turn = has_holder_ && turn_.holder == id;
  view.over_share = tenant.over;
  view.throttled = tenant.throttled;
  view.suspensions = tenant.suspensions;
  view.escapes = tenant.escapes;
  if (LogFresh(now_us)) view.gpu_time_us = tenant.gpu_time_us;
  view.used_share = UsageKnown(now_us) ? UsedShare(now_us, tenant) : -1;
  for (const auto& [process_id, process] : processes_) {
    if (process.tenant != id || process.groups == 0) continue;
    const uint32_t slice = controls_.slice_us(process_id);
    view.slice_us = view.slice_us == 0 ? slice : std::min(view.slice_us, slice);
    view.slice_refused |= controls_.slice_broken(process_id);
    view.suspend_refused |= controls_.suspend_broken(process_id);
  }
  return view;
}

}  // namespace rondo::share
