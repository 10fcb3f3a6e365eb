// SPDX-License-Identifier: Apache-2.0
//
// Decides who may run on one GPU and for how long. Pure state machine: events
// and the time come in, actions go out; no clock, socket or thread of its own.
// One caller, one thread. Never fails: an event about something unknown is
// ignored.
//
// The rules and why each is there: docs/arbiter.md. In short:
//  - standard tenants share by slices, period x weight / sum of weights;
//  - with a latency tenant attached, batch tenants take exclusive turns, the
//    one whose turn it is on a tiny slice, the latency tenant on a long one;
//  - a latency tenant above its weighted share is served as standard;
//  - a limit is kept by duty cycle; a lone tenant without one is left alone;
//  - Controls (controls.h) carries the decision out in a safe order.

#ifndef RONDO_SHARE_TIME_ARBITER_H_
#define RONDO_SHARE_TIME_ARBITER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "share/time/arbiter_options.h"
#include "share/time/arbiter_state.h"
#include "share/time/controls.h"
#include "share/time/event.h"

namespace rondo::share {

class Arbiter {
 public:
  explicit Arbiter(const ArbiterOptions& options)
      : options_(options), controls_(options.controls) {}

  // now_us must not run backwards.
  Decision Step(int64_t now_us, const Event& event);

  // Live change of period and turn (not of the controls' constants); takes
  // effect with the next Step.
  void SetOptions(const ArbiterOptions& options) { options_ = options; }

  TenantView View(TenantId tenant, int64_t now_us);

 private:
  using Process = ArbiterProcess;
  using Tenant = ArbiterTenant;

  void On(int64_t now_us, const TenantSet& event);
  void On(int64_t now_us, const TenantGone& event);
  void On(int64_t now_us, const ProcessAttached& event);
  void On(int64_t now_us, const ProcessGroups& event);
  void On(int64_t now_us, const ProcessGone& event);
  void On(int64_t now_us, const SliceApplied& event);
  void On(int64_t now_us, const Switched& event);
  void On(int64_t now_us, const Activity& event);
  void On(int64_t, const Tick&) {}

  // Bookkeeping (arbiter.cc).
  bool LogFresh(int64_t now_us) const;
  bool UsageKnown(int64_t now_us) const;
  bool Active(int64_t now_us, Tenant& tenant) const;
  bool Confirmed(TenantId id, Controls::Run run, int64_t since_us) const;
  void Recount(int64_t now_us, TenantId id);
  void UpdateBudget(int64_t now_us, TenantId id, Tenant& tenant);
  void UpdateThrottle(int64_t now_us, Tenant& tenant, Decision* decision);
  void UpdateShare(int64_t now_us, TenantId id, Tenant& tenant);
  void UpdateHolderIdle(const Activity& event, int64_t now_us);
  void UpdateContention(const Activity& event, int64_t now_us);
  void UpdateEarlyLeavers(int64_t now_us);
  void ObserveAnew(int64_t now_us);
  void BeginWindow(int64_t now_us);
  double UsedShare(int64_t now_us, Tenant& tenant) const;
  void UpdateCrowded(int64_t now_us);
  void OnSampled(int64_t now_us, const Activity& event);
  void NoteTurns(int64_t now_us);
  bool HolderIdle() const;

  // The plan (plan.cc; without latency tenants plan_standard.cc).
  bool TakesTurns(const Tenant& tenant) const;
  bool Contends(const Tenant& tenant) const;
  bool Holds(TenantId id) const { return has_holder_ && id == turn_.holder; }
  bool Served(const Tenant& tenant) const;
  void Plan(int64_t now_us, Decision* decision);
  void PlanStandard(int64_t now_us);
  int PresentCount() const;
  double RotationUs() const;
  std::map<TenantId, double> DueSlices(int64_t now_us) const;
  void PlanTurns(int64_t now_us);
  void UpdateTurn(int64_t now_us, Decision* decision);
  void GiveTurn(int64_t now_us, TenantId id);
  TenantId NextInTurn() const;
  int64_t TurnLength(const Tenant& tenant) const;
  bool InGap(int64_t now_us) const;
  int ActiveGroups(int64_t now_us, TenantId id) const;
  void WantSlice(TenantId id, bool runnable, double group_slice_us);
  void SampleRate(int64_t now_us, Decision* decision) const;

  ArbiterOptions options_;
  Controls controls_;
  std::map<TenantId, Tenant> tenants_;
  std::map<ProcessId, Process> processes_;

  // Last Activity of the switch log, and how old it was then.
  int64_t log_at_us_ = INT64_MIN / 2, log_age_us_ = 0;
  int64_t usage_at_us_ = INT64_MIN / 2;  // last Activity of any source
  bool sampled_ = false;                 // that one was NVML's
  // By programs that are nobody's here, while some of ours ran as well: an idle
  // context of theirs stays on the GPU only as long as those do not.
  UsageWindow outside_;
  double sampled_outside_ = 0;
  bool crowded_ = false;  // they take so much that nobody may be tiny
  int64_t crowded_since_us_ = 0;
  // For those that use all of their slices, beside some that do not.
  double slice_factor_ = 1;
  int64_t observe_from_us_ = 0;
  int64_t slices_observed_us_ = 0;     // with everybody there and on his slice
  std::optional<double> factor_seen_;  // what the window before this one said
  int64_t no_factor_until_us_ = INT64_MIN / 2;  // a shorter slice did not help
  bool turns_ = false;  // a latency tenant is being served
  bool has_holder_ = false;
  Turn turn_;
  // What a change within a gap has replaced, as long as that may come too late.
  std::optional<Turn> turn_before_;
  int64_t not_after_us_ = INT64_MAX;  // of this step's suspensions
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_ARBITER_H_
