// SPDX-License-Identifier: Apache-2.0
//
// From what is known to what is wanted.
#include <algorithm>
#include <cmath>

#include "share/time/arbiter.h"

namespace rondo::share {
namespace {

constexpr uint32_t kLargestSliceUs = 1'000'000;
// A process that has not run for this long has no part in its tenant's slice.
constexpr int64_t kProcessIdleUs = 1'000'000;
// Outsiders that have more than this part of what ours beside the latency
// tenants have; and until they have less than the second part.
constexpr double kLeastOutside = 0.02, kCrowded = 0.5, kNotCrowded = 0.1;
constexpr int64_t kCrowdedDwellUs = 2'000'000;

// How far apart reports are wanted.
constexpr int64_t kFastUs = 2'000;      // a latency tenant's turn is changing
constexpr int64_t kTurnUs = 5'000;      // one is suspended beside it
constexpr int64_t kVisitedUs = 20'000;  // one comes and goes
constexpr int64_t kRoundUs = 25'000;    // none does
constexpr int64_t kSlowUs = 250'000;    // nothing to decide
constexpr double kBudgetSoonUs = 20'000;

}  // namespace

Standing Arbiter::StandingOf(int64_t now_us, const Tenant& tenant) const {
  const TenantClass cls = tenant.spec.cls;
  if (tenant.paused) return Standing::kAsleep;
  if (!LogFresh(now_us)) {
    if (cls == TenantClass::kLatency)
      return tenant.sampled_over ? Standing::kOver : Standing::kVisits;
    return Standing::kFills;
  }
  if (tenant.demand.asleep()) return Standing::kAsleep;
  if (cls == TenantClass::kBatch) return Standing::kFills;
  const bool over = tenant.credit.over();
  if (cls == TenantClass::kLatency && !over) return Standing::kVisits;
  if (tenant.demand.fills()) return Standing::kFills;
  return over ? Standing::kOver : Standing::kVisits;
}

// Groups among which the tenant's slice is split.
int Arbiter::ActiveGroups(int64_t now_us, TenantId id) const {
  int all = 0, active = 0;
  for (const auto& [process_id, process] : processes_) {
    if (process.tenant != id) continue;
    all += process.groups;
    if (now_us - process.ran_us <= kProcessIdleUs) active += process.groups;
  }
  return std::max(1, active > 0 && LogFresh(now_us) ? active : all);
}

Scene Arbiter::SceneOf(int64_t now_us) {
  Scene scene;
  scene.knowledge = LogFresh(now_us)     ? Knowledge::kLog
                    : UsageKnown(now_us) ? Knowledge::kSamples
                                         : Knowledge::kNothing;
  for (auto& [id, tenant] : tenants_) {
    if (tenant.groups == 0) continue;
    if (!UsageKnown(now_us)) tenant.paused = tenant.sampled_over = false;
    Member member{.id = id,
                  .cls = tenant.spec.cls,
                  .weight = tenant.spec.weight,
                  .groups = ActiveGroups(now_us, id),
                  .standing = StandingOf(now_us, tenant),
                  .throttled = tenant.limit.throttled(),
                  .visit_us = tenant.demand.visit_us(),
                  .fills = tenant.demand.fills(),
                  .told = tenant.demand.Told(now_us, rules_.demand),
                  .steady = tenant.demand.Steady(now_us, rules_.demand),
                  .filled = tenant.demand.filled(),
                  .part = tenant.part};
    for (const auto& [process_id, process] : processes_)
      member.unsuspended |= process.tenant == id && process.groups > 0 &&
                            controls_.suspend_broken(process_id);
    scene.members.push_back(member);
  }
  // Beside a latency tenant that comes and goes, one that always has work waits
  // as a standard one does.
  const auto comes = [](const Member& m) {
    return m.cls == TenantClass::kLatency && m.standing == Standing::kVisits &&
           !m.fills;
  };
  const bool yields =
      std::any_of(scene.members.begin(), scene.members.end(), comes);
  for (Member& m : scene.members) {
    if (yields && m.standing == Standing::kVisits && m.fills)
      m.standing = Standing::kFills;
    tenants_.at(m.id).standing = m.standing;
  }
  scene.crowded = crowded_;
  scene.visited = now_us - visit_us_ <= rules_.quiet_us;
  scene.proven = now_us - proven_visit_us_ <= rules_.quiet_us;
  scene.earned_us = earned_.us();
  scene.holder_us = holder_slice_.us();
  return scene;
}

void Arbiter::Plan(int64_t now_us, Decision* decision) {
  not_after_us_ = INT64_MAX;
  holder_slice_.Begin(rules_.holder);
  UpdateCrowded(now_us);
  Scene scene = SceneOf(now_us);
  if (turns_.holder() && UsageKnown(now_us)) {
    double others_us = static_cast<double>(rules_.turns.idle_us);
    int takers = 0;
    const std::vector<Placed> plan = PlanOf(scene, Mode::kServed, rules_);
    for (size_t i = 0; i < plan.size(); ++i) {
      others_us += plan[i].group_slice_us * scene.members[i].groups;
      takers += TakesTurns(scene, scene.members[i]);
    }
    if (takers > 1 &&
        turns_.Paused(static_cast<int64_t>(others_us), rules_.turns)) {
      tenants_.at(*turns_.holder()).paused = true;
      turns_.Pause(now_us);
      scene = SceneOf(now_us);
    }
  }
  mode_ = ModeOf(scene);
  serves_ = Serves(scene);
  if (mode_ == Mode::kServed)
    UpdateTurns(now_us, scene, decision);
  else
    turns_.Clear();
  scene.holder = turns_.holder();
  for (const Placed& placed : PlanOf(scene, mode_, rules_)) WantSlice(placed);
  NoteTurns(now_us);
  decision->sample_us = SampleInterval(now_us, scene);
}

void Arbiter::UpdateTurns(int64_t now_us, const Scene& scene,
                          Decision* decision) {
  std::vector<Turns::Taker> takers;
  for (const Member& m : scene.members)
    if (TakesTurns(scene, m))
      takers.push_back(
          {m.id, m.weight, m.cls == TenantClass::kBatch, !m.throttled});
  Turns::InGap in_gap;
  if (LogFresh(now_us))
    in_gap = [&](int64_t waited_us) { return InGap(now_us, waited_us); };
  const Turns::Next next = turns_.Update(now_us, takers, in_gap, rules_.turns);
  decision->wake_us = std::min(decision->wake_us, next.wake_us);
  not_after_us_ = next.not_after_us;
}

// Whether a change of turns now would disturb nobody who is served. Past half
// of the patience any pause will do, and after all of it there is no more
// waiting.
bool Arbiter::InGap(int64_t now_us, int64_t waited_us) const {
  const TurnRules& rules = rules_.turns;
  if (waited_us >= rules.gap_wait_us) return true;
  if (log_at_us_ != now_us || log_age_us_ > rules.news_us) return false;
  for (const auto& [id, process] : processes_) {
    const Tenant& tenant = tenants_.at(process.tenant);
    if (process.groups == 0 || tenant.spec.cls == TenantClass::kBatch) continue;
    if (tenant.standing >= Standing::kOver) continue;
    const int64_t idle_us = now_us - process.ran_us;
    // At the end of the report: who was on the GPU then may still be.
    if (idle_us - log_age_us_ < rules.gap_least_us) return false;
    const bool good =
        idle_us <= rules.gap_fresh_us || idle_us >= rules.gap_asleep_us;
    if (!good && waited_us < rules.gap_wait_us / 2) return false;
  }
  return true;
}

void Arbiter::WantSlice(const Placed& placed) {
  Tenant& tenant = tenants_.at(placed.id);
  if (tenant.wanted_runnable && !placed.runnable) ++tenant.suspensions;
  tenant.wanted_runnable = placed.runnable;
  const auto slice_us = static_cast<uint32_t>(std::clamp<double>(
      std::round(placed.group_slice_us), 1, kLargestSliceUs));
  for (const auto& [process_id, process] : processes_)
    if (process.tenant == placed.id)
      controls_.Want(process_id, placed.runnable, slice_us);
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
    if (tenant.groups > 0 && (tenant.spec.cls != TenantClass::kLatency ||
                              tenant.standing >= Standing::kOver))
      own += UsedShare(now_us, tenant);
  const bool was_crowded = crowded_;
  if (outside > std::max(kLeastOutside, own * kCrowded)) crowded_ = true;
  if (outside < std::max(kLeastOutside, own * kNotCrowded) &&
      now_us - crowded_since_us_ >= kCrowdedDwellUs)
    crowded_ = false;
  if (crowded_ != was_crowded) crowded_since_us_ = now_us;
}

int64_t Arbiter::SampleInterval(int64_t now_us, const Scene& scene) const {
  int64_t interval_us = kSlowUs;
  int takers = 0;
  for (const Member& m : scene.members)
    takers += TakesTurns(scene, m) && !m.throttled;
  if (scene.members.size() > 1) {
    switch (mode_) {
      case Mode::kAlone:
        interval_us = kSlowUs / 5;
        break;
      case Mode::kRotation:
        interval_us = kRoundUs;
        break;
      case Mode::kVisited:
        interval_us = kVisitedUs;
        break;
      case Mode::kServed:
        interval_us = kRoundUs;
        if (takers > 1 && serves_)
          interval_us = turns_.Watched(now_us, kTurnUs) ? kFastUs : kTurnUs;
        else if (takers > 1 && turns_.Due(now_us, kTurnUs))
          interval_us = kTurnUs;
        break;
    }
  }
  for (const auto& [id, tenant] : tenants_)
    if (tenant.groups > 0 && tenant.limit.limited() &&
        !tenant.limit.throttled())
      interval_us = std::min(
          interval_us,
          tenant.limit.budget_us() < kBudgetSoonUs ? kFastUs : kTurnUs * 2);
  return interval_us;
}

}  // namespace rondo::share
