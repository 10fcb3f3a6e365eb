// SPDX-License-Identifier: Apache-2.0
//
// The arbiter's plan: who shall run, on what slice, whose turn it is.
#include <algorithm>
#include <cmath>

#include "share/time/arbiter.h"

namespace rondo::share {
namespace {

constexpr uint32_t kLargestSliceUs = 1'000'000;
// Without any knowledge of use: both bounded, so that nobody starves unseen.
constexpr uint32_t kBlindLatencySliceUs = 4'000;
constexpr uint32_t kBlindTurnSliceUs = 1'000;
// A gap is the end of a request, not a pause between two kernels of it.
constexpr int64_t kGapLeastUs = 200;
// Older news tell nothing of now: a request may have come since.
constexpr int64_t kNewsUs = 500;
// Left the GPU just now: the whole think time lies ahead. Or long asleep.
constexpr int64_t kGapFreshUs = 3'000;
constexpr int64_t kGapAsleepUs = 50'000;
// A process that has not run for this long has no part in its tenant's slice.
constexpr int64_t kProcessIdleUs = 1'000'000;
// A call within a gap is made at once or not at all: a host that is busy holds
// it up, and then it would hit a request.
constexpr int64_t kCallUs = 1'000;
constexpr double kShortestTurn = 0.1, kLongestTurn = 10;

constexpr int64_t kFastSampleUs = 2'000;
constexpr int64_t kTurnSampleUs = 5'000;
constexpr int64_t kShareSampleUs = 50'000;
constexpr int64_t kSlowSampleUs = 250'000;

}  // namespace

bool Arbiter::TakesTurns(const Tenant& tenant) const {
  return tenant.groups > 0 && (tenant.spec.cls == TenantClass::kBatch ||
                               (options_.standard_takes_turns &&
                                tenant.spec.cls == TenantClass::kStandard));
}

// Takes turns and can make something of one.
bool Arbiter::Contends(const Tenant& tenant) const {
  return TakesTurns(tenant) && !tenant.throttled && !tenant.idle;
}

// A latency tenant that is treated as one.
bool Arbiter::Served(const Tenant& tenant) const {
  return tenant.groups > 0 && tenant.spec.cls == TenantClass::kLatency &&
         !tenant.over && !tenant.throttled;
}

void Arbiter::Plan(int64_t now_us, Decision* decision) {
  not_after_us_ = INT64_MAX;
  bool served = false;
  for (const auto& [id, tenant] : tenants_)
    // Throttled for some milliseconds is no reason to leave the turns.
    served |= tenant.groups > 0 && tenant.spec.cls == TenantClass::kLatency &&
              !tenant.over;
  turns_ = served && PresentCount() > 1;
  if (turns_) {
    UpdateTurn(now_us, decision);
    PlanTurns(now_us);
  } else {
    has_holder_ = false;
    PlanStandard(now_us);
  }
  NoteTurns(now_us);
  SampleRate(now_us, decision);
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

void Arbiter::WantSlice(TenantId id, bool runnable, double group_slice_us) {
  Tenant& tenant = tenants_.at(id);
  if (tenant.wanted_runnable && !runnable) ++tenant.suspensions;
  tenant.wanted_runnable = runnable;
  const auto slice_us = static_cast<uint32_t>(
      std::clamp<double>(std::round(group_slice_us), 1, kLargestSliceUs));
  for (const auto& [process_id, process] : processes_)
    if (process.tenant == id) controls_.Want(process_id, runnable, slice_us);
}

void Arbiter::PlanTurns(int64_t now_us) {
  // Those who run beside the latency tenants: standard ones (and latency ones
  // over their share) always, of the batch tenants the holder of the turn,
  // who stands for all of them.
  double latency_weights = 0, weights = 0, turn_weights = 0;
  int latency = 0, beside = 0;
  bool broken = false;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.groups == 0) continue;
    if (Served(tenant)) {
      latency_weights += tenant.spec.weight;
      ++latency;
    } else if (TakesTurns(tenant)) {
      turn_weights += tenant.spec.weight;
      broken |= !(has_holder_ && id == turn_.holder) &&
                View(id, now_us).suspend_refused;
    } else {
      weights += tenant.spec.weight;
      ++beside;
    }
  }
  weights += turn_weights;
  const bool blind = !UsageKnown(now_us);
  // One other at a time: then a tiny slice is free.
  UpdateCrowded(now_us);
  const bool lone = !broken && beside + (turn_weights > 0 ? 1 : 0) == 1;
  const bool single = lone && !crowded_;
  const double mixed = std::max<double>(
      options_.mixed_period_us, options_.least_slice_us * (beside + 1.0));
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.groups == 0) continue;
    const int groups = ActiveGroups(now_us, id);
    double slice;
    bool runnable = !tenant.throttled;
    if (Served(tenant)) {
      slice = blind ? kBlindLatencySliceUs
                    : options_.latency_slice_us * latency * tenant.spec.weight /
                          latency_weights;
    } else if (TakesTurns(tenant) && tenant.idle && !Holds(id)) {
      // Not worth suspending. When it has work again it shows in the log, and
      // waits for a turn from then on.
      slice = options_.idle_slice_us;
    } else {
      const bool takes_turns = TakesTurns(tenant);
      if (takes_turns) runnable = runnable && Holds(id);
      const double weight = takes_turns ? turn_weights : tenant.spec.weight;
      if (lone && crowded_)
        slice = static_cast<double>(options_.crowded_slice_us) / groups;
      else if (!single)
        slice = mixed * weight / weights / groups;
      else if (blind)
        slice = kBlindTurnSliceUs;
      else
        slice = tenant.groups > 1 ? options_.shared_turn_slice_us
                                  : options_.tiny_slice_us;
    }
    const bool idle = TakesTurns(tenant) && tenant.idle && !Holds(id);
    if (Served(tenant) || !(single || idle))
      slice = std::max<double>(slice, options_.least_slice_us);
    WantSlice(id, runnable, slice);
  }
}

// By weight: on average a turn is as long as configured.
int64_t Arbiter::TurnLength(const Tenant& tenant) const {
  double weights = 0;
  int count = 0;
  for (const auto& [id, other] : tenants_) {
    if (!TakesTurns(other)) continue;
    weights += other.spec.weight;
    ++count;
  }
  if (count == 0) return options_.turn_us;
  return static_cast<int64_t>(options_.turn_us *
                              std::clamp(tenant.spec.weight * count / weights,
                                         kShortestTurn, kLongestTurn));
}

void Arbiter::GiveTurn(int64_t now_us, TenantId id) {
  has_holder_ = true;
  turn_ = {.holder = id, .end_us = now_us + TurnLength(tenants_.at(id))};
  turn_before_.reset();
}

// The one after the holder, in order of ids and round again, who wants the
// turn; where nobody does, the next one that takes turns at all.
TenantId Arbiter::NextInTurn() const {
  for (const bool wanted : {true, false}) {
    auto candidate = tenants_.upper_bound(turn_.holder);
    for (size_t i = 0; i < tenants_.size(); ++i, ++candidate) {
      if (candidate == tenants_.end()) candidate = tenants_.begin();
      const Tenant& tenant = candidate->second;
      if (wanted ? Contends(tenant) : TakesTurns(tenant))
        return candidate->first;
    }
  }
  return turn_.holder;
}

// Whether a change of turns now would disturb no latency tenant. Past half of
// the patience any pause will do, and after all of it there is no more waiting.
bool Arbiter::InGap(int64_t now_us) const {
  if (!LogFresh(now_us)) return true;  // not known: at once
  const int64_t waited_us = now_us - turn_.end_us;
  if (waited_us >= options_.gap_wait_us) return true;
  if (log_at_us_ != now_us || log_age_us_ > kNewsUs) return false;
  for (const auto& [id, process] : processes_) {
    const auto tenant = tenants_.find(process.tenant);
    if (process.groups == 0 || !Served(tenant->second)) continue;
    const int64_t idle_us = now_us - process.ran_us;
    // At the end of the report: who was on the GPU then may still be.
    if (idle_us - log_age_us_ < kGapLeastUs) return false;
    const bool good = idle_us <= kGapFreshUs || idle_us >= kGapAsleepUs;
    if (!good && waited_us < options_.gap_wait_us / 2) return false;
  }
  return true;
}

// Whether the holder makes nothing of its turn: it left free time unused, or
// did not run for longer than all others together may keep the GPU, so that it
// would have had its turn of the rotation if it had work.
bool Arbiter::HolderIdle() const {
  const int64_t patience_us =
      turn_.ran ? options_.idle_us : options_.idle_start_us;
  if (turn_.unused_us >= patience_us) return true;
  int64_t others_us = options_.mixed_period_us;
  for (const auto& [id, tenant] : tenants_)
    if (Served(tenant)) others_us += options_.latency_slice_us;
  return turn_.absent_us >= others_us;
}

void Arbiter::UpdateTurn(int64_t now_us, Decision* decision) {
  int takers = 0, contenders = 0;
  for (auto& [id, tenant] : tenants_) {
    if (!UsageKnown(now_us)) tenant.idle = false;
    takers += TakesTurns(tenant);
    contenders += Contends(tenant);
  }
  if (takers == 0) {
    has_holder_ = false;
    return;
  }
  const auto holder = tenants_.find(turn_.holder);
  if (!has_holder_ || holder == tenants_.end() || !TakesTurns(holder->second)) {
    // The one after whoever ran last.
    GiveTurn(now_us, NextInTurn());
  } else {
    // Turns became shorter, by config or weights: this one too.
    turn_.end_us = std::min(turn_.end_us, now_us + TurnLength(holder->second));
    if (takers > 1 && HolderIdle()) holder->second.idle = true;
    const bool contends = Contends(holder->second);
    if (contenders > (contends ? 1 : 0)) {
      if (!contends || (now_us >= turn_.end_us && InGap(now_us))) {
        const Turn before = turn_;
        const bool gap =
            LogFresh(now_us) && now_us - turn_.end_us < options_.gap_wait_us;
        GiveTurn(now_us, NextInTurn());
        if (contends && gap) {
          turn_before_ = before;
          not_after_us_ = now_us + kCallUs;
        }
      }
    } else if (now_us >= turn_.end_us) {
      GiveTurn(now_us, turn_.holder);
    }
  }
  const int64_t due_us = now_us < turn_.end_us
                             ? turn_.end_us
                             : turn_.end_us + options_.gap_wait_us;
  decision->wake_us = std::min(decision->wake_us, std::max(due_us, now_us + 1));
}

void Arbiter::SampleRate(int64_t now_us, Decision* decision) const {
  int64_t rate = kSlowSampleUs;
  int takers = 0;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.groups == 0) continue;
    takers += TakesTurns(tenant) && !tenant.throttled;
    if (tenant.spec.limit < 1 && !tenant.throttled)
      rate = std::min(
          rate, tenant.budget_us < 20'000 ? kFastSampleUs : kTurnSampleUs * 2);
    if (tenant.spec.cls == TenantClass::kLatency && tenants_.size() > 1)
      rate = std::min(rate, kShareSampleUs);
  }
  if (turns_ && takers > 1) {
    const bool watch = !turn_.ran || turn_.absent_us > 0 ||
                       now_us >= turn_.end_us - kTurnSampleUs;
    rate = std::min(rate, watch ? kFastSampleUs : kTurnSampleUs);
  }
  decision->sample_us = rate;
}

}  // namespace rondo::share
