// SPDX-License-Identifier: Apache-2.0
//
// Events and what is remembered of them.
#include "share/time/arbiter.h"

#include <algorithm>
#include <variant>

namespace rondo::share {
namespace {

// Activity older than this says nothing about now.
constexpr int64_t kLogStaleUs = 1'000'000;
constexpr int64_t kUsageStaleUs = 5'000'000;

}  // namespace

Decision Arbiter::Step(int64_t now_us, const Event& event) {
  PassTime(now_us);
  std::visit([&](const auto& e) { On(now_us, e); }, event);
  Decision decision;
  for (auto& [id, tenant] : tenants_) {
    const double until_us = tenant.limit.Judge(tenant.groups > 0);
    if (until_us < DutyLimit::kNoWakeUs)
      decision.wake_us =
          std::min(decision.wake_us, now_us + static_cast<int64_t>(until_us));
  }
  Plan(now_us, &decision);
  const int64_t wake_us =
      controls_.Reconcile(now_us, not_after_us_, &decision.actions);
  decision.wake_us = std::min(decision.wake_us, wake_us);
  return decision;
}

void Arbiter::PassTime(int64_t now_us) {
  for (auto& [id, tenant] : tenants_)
    tenant.limit.Pass(
        now_us, !LogFresh(now_us) && tenant.groups > 0 &&
                    !Confirmed(id, Controls::Run::kSuspended, INT64_MAX - 1));
}

void Arbiter::On(int64_t now_us, const TenantSet& event) {
  Tenant& tenant = tenants_[event.tenant];
  tenant.spec = event.spec;
  if (!(tenant.spec.weight > 0)) tenant.spec.weight = 1;
  if (!(tenant.spec.limit > 0 && tenant.spec.limit <= 1)) tenant.spec.limit = 1;
  tenant.limit.Set(now_us, tenant.spec.limit, rules_.duty_us);
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
  turns_.Forget(event.tenant);
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

void Arbiter::On(int64_t, const SliceApplied& event) {
  controls_.OnApplied(event.process, event.seq, event.slice_us, event.ok);
}

void Arbiter::On(int64_t now_us, const Switched& event) {
  if (!event.late)
    return controls_.OnSwitched(now_us, event.op, event.process, event.ok);
  controls_.OnLate(event.op, event.process);
  // The gap is over: the turn goes on, and waits for the next one.
  const auto process = processes_.find(event.process);
  if (process != processes_.end()) turns_.Undo(process->second.tenant);
}

void Arbiter::On(int64_t now_us, const Activity& event) {
  if (event.source == Activity::Source::kSampling)
    return OnSampled(now_us, event);
  UpdateHolder(now_us, event);
  const std::map<TenantId, Use> uses = TakeReport(now_us, event);
  UpdateDemand(now_us, event, uses);
  UpdateSlices(now_us, event, uses);
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
  if (found->second.groups != groups) earned_.Fall(now_us);
  found->second.groups = groups;
}

// The smallest in force among its processes; 0: it has none.
uint32_t Arbiter::SliceOf(TenantId id) const {
  uint32_t least = 0;
  for (const auto& [process_id, process] : processes_) {
    if (process.tenant != id || process.groups == 0) continue;
    const uint32_t slice = controls_.slice_us(process_id);
    least = least == 0 ? slice : std::min(least, slice);
  }
  return least;
}

TenantView Arbiter::View(TenantId id, int64_t now_us) {
  TenantView view;
  const auto found = tenants_.find(id);
  if (found == tenants_.end()) return view;
  Tenant& tenant = found->second;
  view.present = tenant.groups > 0;
  view.suspended =
      view.present && Confirmed(id, Controls::Run::kSuspended, INT64_MAX - 1);
  view.turn = turns_.Holds(id);
  view.over_share = tenant.spec.cls == TenantClass::kLatency &&
                    tenant.standing >= Standing::kOver;
  view.throttled = tenant.limit.throttled();
  view.suspensions = tenant.suspensions;
  view.escapes = tenant.escapes;
  if (LogFresh(now_us)) view.gpu_time_us = tenant.gpu_time_us;
  view.used_share = UsageKnown(now_us) ? UsedShare(now_us, tenant) : -1;
  view.slice_us = SliceOf(id);
  for (const auto& [process_id, process] : processes_) {
    if (process.tenant != id || process.groups == 0) continue;
    view.slice_refused |= controls_.slice_broken(process_id);
    view.suspend_refused |= controls_.suspend_broken(process_id);
  }
  return view;
}

}  // namespace rondo::share
