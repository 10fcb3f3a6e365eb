// SPDX-License-Identifier: Apache-2.0
//
// Decides who may run on one GPU and for how long. Pure state machine: events
// and the time come in, actions go out; no clock, socket or thread of its own.
// One caller, one thread. Never fails: an event about something unknown is
// ignored.
//
// Reports of who ran become what each tenant wants (demand.h) and how far it is
// ahead (credit.h); that and whose turn it is (turns.h) become a plan (plan.h),
// which Controls (controls.h) carries out in a safe order. The rules and why
// each is there: docs/arbiter.md.

#ifndef RONDO_SHARE_TIME_ARBITER_H_
#define RONDO_SHARE_TIME_ARBITER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "share/time/controls.h"
#include "share/time/earned_slice.h"
#include "share/time/event.h"
#include "share/time/holder_slice.h"
#include "share/time/plan.h"
#include "share/time/rules.h"
#include "share/time/tenant.h"
#include "share/time/turns.h"

namespace rondo::share {

class Arbiter {
 public:
  explicit Arbiter(const Rules& rules)
      : rules_(rules),
        controls_(rules.controls),
        earned_(static_cast<double>(rules.base_slice_us)) {}

  // now_us must not run backwards.
  Decision Step(int64_t now_us, const Event& event);

  // Live change (not of the controls' constants); takes effect with the next
  // Step.
  void SetRules(const Rules& rules) { rules_ = rules; }

  TenantView View(TenantId tenant, int64_t now_us);
  Mode mode() const { return mode_; }

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
  bool Confirmed(TenantId id, Controls::Run run, int64_t since_us) const;
  void Recount(int64_t now_us, TenantId id);
  void PassTime(int64_t now_us);
  double UsedShare(int64_t now_us, Tenant& tenant) const;
  uint32_t SliceOf(TenantId id) const;
  void UpdateCrowded(int64_t now_us);

  // What a report of the log says (reports.cc).
  std::map<TenantId, Use> TakeReport(int64_t now_us, const Activity& event);
  void UpdateHolder(int64_t now_us, const Activity& event);
  void UpdateDemand(int64_t now_us, const Activity& event,
                    const std::map<TenantId, Use>& uses);
  void UpdateSlices(int64_t now_us, const Activity& event,
                    const std::map<TenantId, Use>& uses);
  void UpdateParts();
  bool KeptOff(const Tenant& tenant) const;

  // What a sample says (samples.cc).
  void OnSampled(int64_t now_us, const Activity& event);
  void UpdateSampledOver(int64_t now_us, TenantId id, Tenant& tenant);
  void NoteTurns(int64_t now_us);

  // What follows (decide.cc).
  Standing StandingOf(int64_t now_us, const Tenant& tenant) const;
  Scene SceneOf(int64_t now_us);
  void Plan(int64_t now_us, Decision* decision);
  void UpdateTurns(int64_t now_us, const Scene& scene, Decision* decision);
  bool InGap(int64_t now_us, int64_t waited_us) const;
  int ActiveGroups(int64_t now_us, TenantId id) const;
  void WantSlice(const Placed& placed);
  int64_t SampleInterval(int64_t now_us, const Scene& scene) const;

  Rules rules_;
  Controls controls_;
  std::map<TenantId, Tenant> tenants_;
  std::map<ProcessId, Process> processes_;
  Mode mode_ = Mode::kAlone;
  bool serves_ = false;  // a latency tenant
  Turns turns_;
  EarnedSlice earned_;
  HolderSlice holder_slice_;
  int64_t not_after_us_ = INT64_MAX;  // of this step's suspensions
  // The longest round of late, and when it was one.
  double round_us_ = 0;
  int64_t round_at_us_ = INT64_MIN / 2;
  int64_t visit_us_ = INT64_MIN / 2, proven_visit_us_ = INT64_MIN / 2;

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
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_ARBITER_H_
