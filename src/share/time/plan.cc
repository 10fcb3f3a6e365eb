// SPDX-License-Identifier: Apache-2.0
#include "share/time/plan.h"

#include <algorithm>
#include <bit>

namespace rondo::share {
namespace {

bool Awake(const Member& m) { return m.standing != Standing::kAsleep; }

bool Served(const Member& m) {
  return m.cls == TenantClass::kLatency &&
         (m.standing == Standing::kAsleep || m.standing == Standing::kVisits);
}

// Comes and goes, and is not asked to stand back.
bool Visits(const Member& m) {
  return m.cls != TenantClass::kBatch &&
         (m.standing == Standing::kAsleep || m.standing == Standing::kVisits);
}

int TakersOf(const Scene& scene) {
  return static_cast<int>(
      std::count_if(scene.members.begin(), scene.members.end(),
                    [&](const Member& m) { return TakesTurns(scene, m); }));
}

// By weight, so that the mean of those who go round is mean_us. One that would
// come out too short stretches all: the ratios stay. A tiny weight, or very
// many groups of one, must not hold up the others for long; past that the
// ratios go.
double RoundSlice(const Scene& scene, const Member& member, double mean_us,
                  const Rules& rules) {
  double weights = 0, shortest = 1e18, longest = 0;
  int count = 0;
  for (const Member& m : scene.members) {
    if (Visits(m)) continue;
    weights += m.weight;
    ++count;
  }
  const auto slice = [&](const Member& m) {
    return mean_us * m.weight * count / weights / m.groups;
  };
  for (const Member& m : scene.members) {
    if (Visits(m)) continue;
    shortest = std::min(shortest, slice(m));
    longest = std::max(longest, slice(m));
  }
  // Nor those who visit: they wait for one slice of each.
  const double longest_us = scene.visited
                                ? 2 * static_cast<double>(rules.base_slice_us)
                                : rules.longest_slice_us;
  const double stretch =
      std::min(std::max(1.0, rules.least_slice_us / shortest),
               std::max(1.0, longest_us / longest));
  // No shorter than where all begin: below, switches take more than they give.
  const double least_us =
      std::min(1.0, static_cast<double>(rules.base_slice_us) / mean_us);
  return std::max<double>(
      slice(member) * stretch * std::max(member.part, least_us),
      rules.least_slice_us);
}

// Those who visit find their slice in force when they come.
double VisitSlice(const Scene& scene, const Member& member,
                  const Rules& rules) {
  const double request_us = member.visit_us * rules.visit_factor;
  double us;
  if (Served(member)) {
    double weights = 0;
    int count = 0;
    for (const Member& m : scene.members) {
      if (!Served(m)) continue;
      weights += m.weight;
      ++count;
    }
    us = std::clamp<double>(request_us, rules.least_latency_slice_us,
                            rules.latency_slice_us) *
         member.weight * count / weights;
    if (scene.knowledge == Knowledge::kSamples) us = rules.latency_slice_us;
    if (scene.knowledge == Knowledge::kNothing)
      us = rules.blind_latency_slice_us;
  } else if (Serves(scene) || member.filled) {
    // A latency tenant waits for it; or it has more work than fits a visit.
    us = static_cast<double>(rules.base_slice_us);
  } else {
    double weights = 0;
    for (const Member& m : scene.members) weights += m.weight;
    const auto count = static_cast<double>(scene.members.size());
    // Many that come at once must not hold each other up for long.
    const double least_us =
        std::clamp<double>(rules.visit_round_us / count,
                           rules.demand.telling_slice_us, rules.visit_slice_us);
    us = std::clamp<double>(request_us, least_us, rules.latency_slice_us) *
         member.weight * count / weights;
    us = std::min<double>(us, rules.longest_slice_us);
    // A small weight must not keep it from being judged at all.
    if (!member.told && scene.knowledge == Knowledge::kLog)
      us = std::max<double>(us, rules.demand.telling_slice_us);
  }
  return std::max<double>(us, rules.least_slice_us);
}

double HolderSliceOf(const Scene& scene, const Member& member,
                     const Rules& rules) {
  if (scene.crowded)
    return std::max<double>(
        static_cast<double>(rules.base_slice_us) / member.groups,
        rules.least_slice_us);
  double us = scene.holder_us;
  if (scene.knowledge == Knowledge::kNothing) us = rules.blind_turn_slice_us;
  if (scene.knowledge == Knowledge::kSamples) us = rules.holder.tiny_us;
  // Beside others who go round, the holder has a slice for all who take turns:
  // of a tiny one nothing were left.
  double takers = 0;
  bool others = false;
  for (const Member& m : scene.members) {
    if (TakesTurns(scene, m))
      takers += m.weight;
    else
      others |= Awake(m) && !Visits(m);
  }
  if (others)
    return std::min(
        RoundSlice(scene, member, static_cast<double>(rules.base_slice_us),
                   rules) *
            takers / member.weight,
        rules.longest_slice_us);
  return member.groups > 1 ? std::max<double>(us, rules.holder.shared_us) : us;
}

}  // namespace

bool Serves(const Scene& scene) {
  return std::any_of(scene.members.begin(), scene.members.end(), Served);
}

bool TakesTurns(const Scene& scene, const Member& m) {
  if (!Awake(m)) return false;
  if (m.cls == TenantClass::kBatch) return true;
  // One that comes and goes would wait for a turn each time, and one that
  // pauses now and then would hold up the others; without the log nobody can
  // tell which it is.
  if (m.standing != Standing::kFills || scene.knowledge != Knowledge::kLog)
    return false;
  const auto fills = std::count_if(
      scene.members.begin(), scene.members.end(),
      [](const Member& other) { return other.standing == Standing::kFills; });
  return m.steady || fills == 1;
}

Mode ModeOf(const Scene& scene) {
  if (Serves(scene) && scene.members.size() > 1) {
    for (const Member& m : scene.members)
      if (m.unsuspended && TakesTurns(scene, m) && TakersOf(scene) > 1)
        return Mode::kVisited;
    return Mode::kServed;
  }
  if (scene.knowledge != Knowledge::kLog) return Mode::kVisited;
  int awake = 0;
  bool round = false, all_suspend = true;
  for (const Member& m : scene.members) {
    awake += Awake(m);
    round |= m.standing == Standing::kOver ||
             (m.standing == Standing::kFills && !TakesTurns(scene, m));
    all_suspend &= !m.unsuspended;
  }
  if (awake <= 1) return Mode::kAlone;
  const bool over = std::any_of(
      scene.members.begin(), scene.members.end(),
      [](const Member& m) { return m.standing == Standing::kOver; });
  if (!scene.visited && !over) return Mode::kRotation;
  const int takers = TakersOf(scene);
  return scene.proven && !round && takers > 0 && (takers == 1 || all_suspend)
             ? Mode::kServed
             : Mode::kVisited;
}

std::vector<Placed> PlanOf(const Scene& scene, Mode mode, const Rules& rules) {
  std::vector<Placed> plan;
  const int takers = TakersOf(scene);
  for (const Member& m : scene.members) {
    Placed placed{m.id, !m.throttled, 0};
    if (mode == Mode::kServed && TakesTurns(scene, m)) {
      placed.runnable &= takers == 1 || scene.holder == m.id;
      placed.group_slice_us = HolderSliceOf(scene, m, rules);
    } else if (mode == Mode::kServed && m.cls == TenantClass::kBatch) {
      // Asleep, and not worth suspending. When it has work again it shows in
      // the log, and waits for a turn from then on.
      placed.group_slice_us = rules.turns.idle_slice_us;
    } else if (Visits(m)) {
      placed.group_slice_us = VisitSlice(scene, m, rules);
    } else {
      // What was earned is not known to be fair once nobody can tell who runs.
      const bool earned = scene.knowledge == Knowledge::kLog &&
                          (mode == Mode::kRotation || mode == Mode::kVisited);
      placed.group_slice_us = RoundSlice(
          scene, m,
          earned ? scene.earned_us : static_cast<double>(rules.base_slice_us),
          rules);
      // Now and then long enough to tell whether it always has work after all.
      if (m.standing == Standing::kOver && !m.told &&
          scene.knowledge == Knowledge::kLog)
        placed.group_slice_us = std::max<double>(placed.group_slice_us,
                                                 rules.demand.telling_slice_us);
    }
    plan.push_back(placed);
  }
  return plan;
}

}  // namespace rondo::share
