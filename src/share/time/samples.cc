// SPDX-License-Identifier: Apache-2.0
//
// What NVML's samples say, where the context-switch log cannot be read: who ran
// at all within a sample, which is up to a second, and roughly how much. Not
// when, nor in what order. So nothing is concluded from a part of a sample.
#include <algorithm>
#include <map>

#include "share/time/arbiter.h"

namespace rondo::share {
namespace {

// An average over a second, of samples that may come more often.
constexpr double kSmoothUs = 1'000'000;
// The samples are whole percents: below is nothing.
constexpr double kLeastShare = 0.005;
// A sample's second, and as much until it is told.
constexpr int64_t kKeepTurnsUs = 2'500'000;
// Samples are coarse, and a tenant's own second may lie across two of them: it
// is over its share only where it is above by both, and until it is below that
// part of it.
constexpr double kOverMargin = 0.15, kOverFactor = 1.3, kBelowFactor = 0.75;
constexpr int64_t kLeastDwellUs = 250'000;
// Of two latency tenants that never pause the one that is over its share gets
// next to nothing beside the other, and is below it for no reason of its own.
constexpr int64_t kSettledUs = 1'500'000;

template <typename Stretches>
int64_t Overlap(const Stretches& stretches, int64_t from_us, int64_t until_us) {
  int64_t sum_us = 0;
  for (const auto& s : stretches)
    sum_us += std::max<int64_t>(
        0, std::min(s.until_us, until_us) - std::max(s.from_us, from_us));
  return sum_us;
}

}  // namespace

void Arbiter::OnSampled(int64_t now_us, const Activity& event) {
  // A sample tells of the time before it: what the log said is newer.
  if (LogFresh(now_us) || event.interval_us <= 0) return;
  usage_at_us_ = now_us;
  sampled_ = true;
  const int64_t ended_us = now_us - std::max<int64_t>(0, event.age_us);
  const double interval_us = static_cast<double>(event.interval_us);
  std::map<TenantId, double> shares;
  for (const Activity::Run& run : event.runs) {
    const auto process = processes_.find(run.process);
    if (process == processes_.end() || run.busy_us <= 0) continue;
    shares[process->second.tenant] +=
        std::min(1.0, static_cast<double>(run.busy_us) / interval_us);
    process->second.ran_us = std::max(process->second.ran_us, ended_us);
  }
  const auto turns = [&](const Tenant& tenant) {
    return mode_ == Mode::kServed && tenant.groups > 0 &&
           tenant.spec.cls == TenantClass::kBatch;
  };
  // What ran beside one that always may, and beside the holder of a turn, each
  // time: other batch tenants ran in turns of their own.
  double all = static_cast<double>(event.other_busy_us) / interval_us;
  double in_turns = 0;
  int takers = 0;
  for (const auto& [id, tenant] : tenants_) {
    takers += turns(tenant);
    const auto share = shares.find(id);
    if (share == shares.end()) continue;
    all += share->second;
    if (turns(tenant) && !tenant.paused && !View(id, now_us).suspend_refused)
      in_turns += share->second;
  }
  const double weight = std::min(1.0, interval_us / kSmoothUs);
  sampled_outside_ +=
      weight * (static_cast<double>(event.other_busy_us) / interval_us -
                sampled_outside_);
  for (auto& [id, tenant] : tenants_) {
    const auto share = shares.find(id);
    const double now_share = share == shares.end() ? 0 : share->second;
    tenant.sampled_share += weight * (now_share - tenant.sampled_share);
    if (tenant.sampled_share < kLeastShare) tenant.sampled_share = 0;
    if (now_share > 0) {
      tenant.paused = false;
      tenant.sampled_unused_us = 0;
      continue;
    }
    const int64_t could_us =
        turns(tenant)
            ? Overlap(tenant.turns, ended_us - event.interval_us, ended_us)
        : tenant.limit.throttled() ? 0
                                   : event.interval_us;
    // Whoever ran beside may have done so just when this one could.
    const double beside = turns(tenant) ? all - in_turns : all;
    tenant.sampled_unused_us += std::max<int64_t>(
        0, could_us - static_cast<int64_t>(beside * interval_us));
    if (turns(tenant) && takers > 1 &&
        tenant.sampled_unused_us >= rules_.turns.idle_sampled_us)
      tenant.paused = true;
  }
  for (auto& [id, tenant] : tenants_) UpdateSampledOver(now_us, id, tenant);
}

void Arbiter::UpdateSampledOver(int64_t now_us, TenantId id, Tenant& tenant) {
  if (tenant.spec.cls != TenantClass::kLatency || tenant.groups == 0) {
    tenant.sampled_over = false;
    return;
  }
  const bool was_over = tenant.sampled_over;
  double weights = tenant.spec.weight;
  bool others = false, settled = true;
  for (auto& [other_id, other] : tenants_) {
    if (other_id == id || other.groups == 0) continue;
    // Who had no room to run is not seen in samples.
    const bool wants = other.sampled_share > 0 ||
                       other.sampled_unused_us < rules_.turns.idle_sampled_us ||
                       (!other.wanted_runnable && !other.paused);
    if (!wants) continue;
    weights += other.spec.weight;
    others = true;
    settled &= now_us - other.sampled_over_since_us >= kSettledUs;
  }
  if (!others) {
    tenant.sampled_over = false;
  } else if (now_us - tenant.sampled_over_since_us >= kLeastDwellUs) {
    const double entitled = tenant.spec.weight / weights;
    if (tenant.sampled_share >
        std::max(entitled + kOverMargin, entitled * kOverFactor))
      tenant.sampled_over = true;
    if (tenant.sampled_share < entitled * kBelowFactor && settled)
      tenant.sampled_over = false;
  }
  if (tenant.sampled_over != was_over) tenant.sampled_over_since_us = now_us;
}

// Keeps when each tenant held the turn and was not suspended: samples come
// late, and one may tell of several turns.
void Arbiter::NoteTurns(int64_t now_us) {
  for (auto& [id, tenant] : tenants_) {
    auto& turns = tenant.turns;
    const bool open = !turns.empty() && turns.back().until_us == INT64_MAX;
    const bool can = turns_.Holds(id) && tenant.groups > 0 &&
                     Confirmed(id, Controls::Run::kRunning, now_us);
    if (can == open) continue;
    if (can)
      turns.push_back({.from_us = now_us});
    else
      turns.back().until_us = now_us;
    while (turns.front().until_us < now_us - kKeepTurnsUs) turns.pop_front();
  }
}

}  // namespace rondo::share
