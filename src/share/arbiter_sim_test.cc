// SPDX-License-Identifier: Apache-2.0
//
// The arbiter against a toy of the hardware's scheduler: round robin over
// runnable groups, 82 us a switch, no progress between tiny slices, and the
// measured costs of suspending, resuming and setting a slice.
#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "share/arbiter.h"

namespace rondo::share {
namespace {

constexpr int64_t kStepUs = 10, kSwitchUs = 80;
constexpr int64_t kSuspendUs = 600, kResumeUs = 320, kSetSliceUs = 260;

struct Load {
  int64_t work_us = 0;  // of one request; 0 = never pauses
  int64_t think_us = 0;
  int64_t starts_us = 0;
};

class Sim {
 public:
  explicit Sim(bool sampled = true) : sampled_(sampled), arbiter_({}) {}

  void Add(TenantId id, TenantSpec spec, Load load) {
    Group group;
    group.load = load;
    if (load.work_us > 0) group.next_us = load.starts_us + load.think_us;
    groups_[id] = group;
    Send(TenantSet{id, spec});
    Send(ProcessAttached{id, id});
    Send(ProcessGroups{id, 1});
  }

  void Kill(TenantId id) {
    groups_.erase(id);
    Send(ProcessGone{id});
  }

  void Run(int64_t us) {
    for (int64_t end = now_us_ + us; now_us_ < end; now_us_ += kStepUs) Step();
  }
  // Forgets what was measured so far.
  void Measure() {
    measure_from_us_ = now_us_;
    for (auto& [id, group] : groups_) {
      group.busy_us = 0;
      group.latencies.clear();
    }
  }
  double Share(TenantId id) {
    return static_cast<double>(groups_[id].busy_us) /
           (now_us_ - measure_from_us_);
  }
  double Sum() {
    double sum = 0;
    for (const auto& [id, group] : groups_) sum += Share(id);
    return sum;
  }
  int64_t Latency(TenantId id, double quantile) {
    auto& all = groups_[id].latencies;
    std::sort(all.begin(), all.end());
    return all.empty() ? -1 : all[static_cast<size_t>(quantile * all.size())];
  }
  TenantView View(TenantId id) { return arbiter_.View(id, now_us_); }
  void Send(const Event& event) {
    const Decision decision = arbiter_.Step(now_us_, event);
    wake_us_ = decision.wake_us;
    sample_us_ = decision.sample_us;
    for (const Action& action : decision.actions) Carry(action);
  }

  int switches = 0, slices = 0;      // actions asked for
  int64_t longest_idle_turn_us = 0;  // of a tenant that has nothing to do

 private:
  struct Group {
    Load load;
    uint32_t slice_us = 2048;
    bool runnable = true;
    int64_t next_us = 0;  // when the next request comes
    int64_t left_us = 0;  // of the one under way
    int64_t arrived_us = 0;
    int64_t busy_us = 0, sample_busy_us = 0, sample_stays = 0, ran_us = -1;
    int64_t idle_turn_us = 0;
    std::vector<int64_t> latencies;
  };
  struct Pending {
    int64_t at_us;
    Action action;
  };

  void Carry(const Action& action) {
    if (std::holds_alternative<SetSlice>(action)) {
      ++slices;
      shims_.push_back({now_us_ + kSetSliceUs, action});
    } else {
      ++switches;
      driver_free_us_ =
          std::max(driver_free_us_, now_us_) +
          (std::get<Switch>(action).suspend ? kSuspendUs : kResumeUs);
      driver_.push_back({driver_free_us_, action});
    }
  }

  void Complete() {
    while (!shims_.empty() && shims_.front().at_us <= now_us_) {
      const auto set = std::get<SetSlice>(shims_.front().action);
      shims_.pop_front();
      const auto group = groups_.find(set.process);
      if (group == groups_.end()) continue;
      group->second.slice_us = set.slice_us;
      Send(SliceApplied{set.process, set.seq, set.slice_us, true});
    }
    while (!driver_.empty() && driver_.front().at_us <= now_us_) {
      const auto call = std::get<Switch>(driver_.front().action);
      driver_.pop_front();
      for (ProcessId id : call.processes) {
        const auto group = groups_.find(id);
        if (group != groups_.end()) group->second.runnable = !call.suspend;
        Send(Switched{call.op, id, group != groups_.end()});
      }
    }
  }

  bool Ready(const Group& group) const {
    return group.runnable && now_us_ >= group.load.starts_us &&
           (group.load.work_us == 0 || group.left_us > 0);
  }

  void Step() {
    Complete();
    if (now_us_ >= wake_us_) Send(Tick{});
    if (sampled_ && now_us_ >= sampled_us_ + sample_us_) SendSample();
    for (auto& [id, group] : groups_) {
      if (group.load.work_us > 0 && group.left_us == 0 &&
          now_us_ >= group.next_us) {
        group.left_us = group.load.work_us;
        group.arrived_us = now_us_;
      }
      const bool idle = group.runnable && !Ready(group);
      group.idle_turn_us = idle ? group.idle_turn_us + kStepUs : 0;
      if (idle && arbiter_.View(id, now_us_).turn)
        longest_idle_turn_us =
            std::max(longest_idle_turn_us, group.idle_turn_us);
    }
    Schedule();
  }

  void Schedule() {
    if (switching_us_ > 0) {
      switching_us_ -= kStepUs;
      return;
    }
    int ready = 0, tiny = 0;
    for (const auto& [id, group] : groups_) {
      ready += Ready(group);
      tiny += Ready(group) && group.slice_us < kSwitchUs;
    }
    if (ready == 0) {
      // An idle context stays on the GPU until another comes: to the log it
      // looks like one that works.
      const auto last = groups_.find(current_);
      if (last == groups_.end() || !last->second.runnable ||
          last->second.ran_us < 0)
        return;
      last->second.sample_busy_us += kStepUs;
      last->second.ran_us = now_us_ + kStepUs;
      return;
    }
    const auto current_entry = groups_.find(current_);
    if (current_entry == groups_.end() || !Ready(current_entry->second) ||
        (slice_left_us_ <= 0 && ready > 1)) {
      auto next = groups_.upper_bound(current_);
      for (;; ++next) {
        if (next == groups_.end()) next = groups_.begin();
        if (Ready(next->second)) break;
      }
      if (next->first != current_) switching_us_ = kSwitchUs;
      current_ = next->first;
      ++next->second.sample_stays;
      slice_left_us_ = next->second.slice_us;
      return;
    }
    Group& current = current_entry->second;
    if (slice_left_us_ <= 0) slice_left_us_ = current.slice_us;
    slice_left_us_ -= kStepUs;
    if (tiny > 1 && current.slice_us < kSwitchUs) return;  // no progress
    current.busy_us += kStepUs;
    current.sample_busy_us += kStepUs;
    current.ran_us = now_us_ + kStepUs;
    if (current.load.work_us == 0) return;
    current.left_us -= kStepUs;
    if (current.left_us > 0) return;
    current.latencies.push_back(now_us_ + kStepUs - current.arrived_us);
    current.next_us = now_us_ + current.load.think_us;
  }

  void SendSample() {
    Activity activity;
    activity.interval_us = now_us_ - sampled_us_;
    sampled_us_ = now_us_;
    for (auto& [id, group] : groups_) {
      if (group.sample_busy_us > 0)
        activity.runs.push_back({id, group.sample_busy_us,
                                 now_us_ - group.ran_us, group.sample_stays});
      group.sample_busy_us = group.sample_stays = 0;
    }
    Send(activity);
  }

  const bool sampled_;
  Arbiter arbiter_;
  std::map<TenantId, Group> groups_;
  std::deque<Pending> shims_, driver_;
  int64_t now_us_ = 0, wake_us_ = INT64_MAX, sample_us_ = INT64_MAX;
  int64_t sampled_us_ = 0, measure_from_us_ = 0, driver_free_us_ = 0;
  TenantId current_ = 1;
  int64_t slice_left_us_ = 0, switching_us_ = 0;
};

constexpr int64_t kSecond = 1'000'000;
constexpr auto kStandard = TenantClass::kStandard;
constexpr auto kLatency = TenantClass::kLatency;
constexpr auto kBatch = TenantClass::kBatch;
constexpr Load kBusy = {};
constexpr Load kRequests = {.work_us = 2000, .think_us = 10'000};
constexpr Load kIdle = {.starts_us = INT64_MAX / 4};

TEST(ArbiterSim, WeightsComeOutAsWritten) {
  Sim sim;
  sim.Add(1, {kStandard, 3}, kBusy);
  sim.Add(2, {kStandard, 1}, kBusy);
  sim.Run(kSecond);
  sim.Measure();
  sim.Run(5 * kSecond);
  EXPECT_NEAR(sim.Share(1), 0.75, 0.01);
  EXPECT_NEAR(sim.Share(2), 0.25, 0.01);
  EXPECT_GE(sim.Sum(), 0.985);
}

TEST(ArbiterSim, FourTenantsByWeight) {
  Sim sim;
  const double weights[] = {4, 2, 1, 1};
  for (TenantId id = 1; id <= 4; ++id)
    sim.Add(id, {kStandard, weights[id - 1]}, kBusy);
  sim.Run(kSecond);
  sim.Measure();
  sim.Run(5 * kSecond);
  for (TenantId id = 1; id <= 4; ++id)
    EXPECT_NEAR(sim.Share(id), weights[id - 1] / 8, 0.01) << id;
  EXPECT_EQ(sim.switches, 0) << "standard tenants are never suspended";
}

// It waits for each of its kernels, and leaves the GPU where one ends.
TEST(ArbiterSim, WeightsHoldBesideATenantThatLeavesEarly) {
  Sim sim;
  sim.Add(1, {kStandard, 3}, {.work_us = 20'000, .think_us = 30});
  sim.Add(2, {kStandard, 1}, kBusy);
  sim.Run(4 * kSecond);
  sim.Measure();
  sim.slices = 0;
  sim.Run(10 * kSecond);
  EXPECT_NEAR(sim.Share(1) / sim.Sum(), 0.75, 0.01);
  EXPECT_GE(sim.Sum(), 0.985);
  EXPECT_EQ(sim.slices, 0) << "it stays as it is";
}

TEST(ArbiterSim, OneThatWaitsForShortKernelsGetsNoLessThanOnShortSlices) {
  Sim sim;
  sim.Add(1, {kStandard, 1}, {.work_us = 100, .think_us = 30});
  sim.Add(2, {kStandard, 1}, kBusy);
  sim.Run(4 * kSecond);
  sim.Measure();
  sim.Run(10 * kSecond);
  EXPECT_GE(sim.Share(1), 0.04) << "0.005 on slices of 20 ms";
  EXPECT_GE(sim.Share(2), 0.85);
}

TEST(ArbiterSim, OneThatWantsLittleCostsTheOthersNothing) {
  Sim sim;
  sim.Add(1, {kStandard, 1}, {.work_us = 1000, .think_us = 30'000});
  sim.Add(2, {kStandard, 1}, kBusy);
  sim.Run(4 * kSecond);
  sim.slices = 0;
  sim.Run(20 * kSecond);
  EXPECT_LE(sim.slices, 4);
}

TEST(ArbiterSim, ALatencyTenantBesideThreeBatchTenants) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, kRequests);
  for (TenantId id = 2; id <= 4; ++id) sim.Add(id, {kBatch, 1}, kBusy);
  sim.Run(2 * kSecond);
  sim.Measure();
  sim.switches = sim.slices = 0;
  sim.Run(12 * kSecond);
  EXPECT_LE(sim.Latency(1, 0.99), 2300) << "alone 2000";
  EXPECT_LE(sim.Latency(1, 0.999), 2400);
  EXPECT_GE(sim.Sum(), 0.97);
  for (TenantId id = 2; id <= 4; ++id)
    EXPECT_NEAR(sim.Share(id), 0.28, 0.03) << id;
  EXPECT_LE(sim.switches, 2 * 24 + 4) << "two a turn";
  EXPECT_LE(sim.slices, 4) << "a turn sets no slices";
}

TEST(ArbiterSim, TurnsAreWeighted) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, kRequests);
  sim.Add(2, {kBatch, 3}, kBusy);
  sim.Add(3, {kBatch, 1}, kBusy);
  sim.Run(2 * kSecond);
  sim.Measure();
  sim.Run(20 * kSecond);
  EXPECT_NEAR(sim.Share(2) / sim.Share(3), 3, 0.3);
}

TEST(ArbiterSim, ALatencyTenantThatNeverPausesLeavesTheOthersTheirShare) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, kBusy);
  sim.Add(2, {kBatch, 1}, kBusy);
  sim.Run(2 * kSecond);
  sim.Measure();
  sim.Run(10 * kSecond);
  EXPECT_GE(sim.Share(2), 0.45);
  EXPECT_GE(sim.Share(1), 0.45);
  EXPECT_TRUE(sim.View(1).over_share);
}

TEST(ArbiterSim, AnIdleContextIsNotOverItsShare) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, kRequests);
  // Computes for a while now and then; until then the latency tenant's context
  // stays on the GPU with nothing to do.
  sim.Add(2, {kBatch, 1}, {.work_us = 300'000, .think_us = 1'500'000});
  sim.Run(2 * kSecond);
  sim.Measure();
  for (int i = 0; i < 100; ++i) {
    sim.Run(100'000);
    ASSERT_FALSE(sim.View(1).over_share);
  }
  EXPECT_LE(sim.Latency(1, 0.99), 2300);
}

TEST(ArbiterSim, UnseenItLeavesThemSomethingAllTheSame) {
  Sim sim(/*sampled=*/false);
  sim.Add(1, {kLatency, 1}, kBusy);
  for (TenantId id = 2; id <= 3; ++id) sim.Add(id, {kBatch, 1}, kBusy);
  sim.Run(10 * kSecond);
  for (TenantId id = 2; id <= 3; ++id) EXPECT_GE(sim.Share(id), 0.08) << id;
}

TEST(ArbiterSim, TwoLatencyTenantsShareByWeight) {
  Sim sim;
  sim.Add(1, {kLatency, 3}, kBusy);
  sim.Add(2, {kLatency, 1}, kBusy);
  sim.Run(2 * kSecond);
  sim.Measure();
  sim.Run(5 * kSecond);
  EXPECT_NEAR(sim.Share(1), 0.75, 0.02);
  EXPECT_NEAR(sim.Share(2), 0.25, 0.02);
}

TEST(ArbiterSim, AStandardTenantBesideBothClassesKeepsItsShare) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, kRequests);
  sim.Add(2, {kStandard, 1}, kBusy);
  sim.Add(3, {kBatch, 1}, kBusy);
  sim.Add(4, {kBatch, 1}, kBusy);
  sim.Run(2 * kSecond);
  sim.Measure();
  sim.Run(12 * kSecond);
  for (TenantId id = 2; id <= 4; ++id)
    EXPECT_NEAR(sim.Share(id), 0.27, 0.04) << id;
}

TEST(ArbiterSim, ALatencyTenantBesideOneStandardTenant) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, kRequests);
  sim.Add(2, {kStandard, 1}, kBusy);
  sim.Run(2 * kSecond);
  sim.Measure();
  sim.Run(10 * kSecond);
  EXPECT_LE(sim.Latency(1, 0.99), 2300) << "alone 2000";
  EXPECT_GE(sim.Sum(), 0.97);
  EXPECT_EQ(sim.switches, 0);
}

// On the driver's own slices it waits for 3 x 2 ms.
TEST(ArbiterSim,
     ALatencyTenantBesideThreeStandardTenantsWaitsForOneShortRound) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, kRequests);
  for (TenantId id = 2; id <= 4; ++id) sim.Add(id, {kStandard, 1}, kBusy);
  sim.Run(2 * kSecond);
  sim.Measure();
  sim.Run(10 * kSecond);
  EXPECT_LE(sim.Latency(1, 0.99), 2000 + 4000 + 400);
  for (TenantId id = 2; id <= 4; ++id) EXPECT_NEAR(sim.Share(id), 0.26, 0.03);
  EXPECT_EQ(sim.switches, 0) << "standard tenants are never suspended";
}

TEST(ArbiterSim, ALimitHoldsEvenAlone) {
  for (const bool sampled : {true, false}) {
    Sim sim(sampled);
    sim.Add(1, {kStandard, 1, 0.5}, kBusy);
    sim.Run(kSecond);
    sim.Measure();
    sim.Run(10 * kSecond);
    EXPECT_LE(sim.Share(1), 0.505) << sampled;
    EXPECT_GE(sim.Share(1), 0.47) << sampled;
  }
}

TEST(ArbiterSim, ALimitCountsFromWhenItComes) {
  Sim sim;
  sim.Add(1, {kStandard, 1}, kBusy);
  for (int round = 0; round < 2; ++round) {
    sim.Run(5 * kSecond);
    sim.Send(TenantSet{1, {kStandard, 1, 0.5}});
    sim.Measure();
    sim.Run(2 * kSecond);
    EXPECT_NEAR(sim.Share(1), 0.5, 0.05) << round;
    sim.Send(TenantSet{1, {kStandard, 1}});
  }
}

TEST(ArbiterSim, ALimitIsNoWeight) {
  Sim sim;
  sim.Add(1, {kStandard, 1, 0.5}, kBusy);
  sim.Add(2, {kStandard, 1}, kBusy);
  sim.Run(2 * kSecond);
  sim.Measure();
  sim.Run(10 * kSecond);
  EXPECT_NEAR(sim.Share(1), 0.49, 0.03);
  EXPECT_GE(sim.Sum(), 0.98);
}

TEST(ArbiterSim, ManyThatStartTogetherAreSetOnce) {
  Sim sim;
  for (TenantId id = 1; id <= 16; ++id) {
    sim.Add(id, {kStandard, 1}, kBusy);
    sim.Run(50'000);
  }
  sim.Run(kSecond);
  EXPECT_LE(sim.slices, 16 + 1) << "the first was there alone before";
  sim.Measure();
  sim.Run(5 * kSecond);
  for (TenantId id = 1; id <= 16; ++id)
    EXPECT_NEAR(sim.Share(id), 1. / 16, 0.005) << id;
}

TEST(ArbiterSim, ALoneTenantIsLeftAlone) {
  for (const auto cls : {kStandard, kLatency, kBatch}) {
    Sim sim;
    sim.Add(1, {cls, 0.25}, kBusy);
    sim.Run(5 * kSecond);
    EXPECT_EQ(sim.switches, 0);
    EXPECT_LE(sim.slices, 1);
    EXPECT_GE(sim.Share(1), 0.99);
  }
}

TEST(ArbiterSim, IdleTenantsHaveNoTurns) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, kRequests);
  sim.Add(2, {kBatch, 1}, kBusy);
  sim.Add(3, {kBatch, 1}, kIdle);
  sim.Add(4, {kBatch, 1}, kIdle);
  sim.Run(kSecond);
  // Each had one, and was found out within a rotation.
  EXPECT_LE(sim.longest_idle_turn_us, 35'000);
  sim.Measure();
  sim.switches = 0;
  sim.Run(10 * kSecond);
  EXPECT_EQ(sim.switches, 0);
  EXPECT_GE(sim.Share(2), 0.81);
  EXPECT_LE(sim.Latency(1, 0.99), 2300);
}

TEST(ArbiterSim, AnIdleTenantThatWakesGetsATurn) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, kRequests);
  sim.Add(2, {kBatch, 1}, kBusy);
  sim.Add(3, {kBatch, 1}, {.starts_us = 5 * kSecond});
  sim.Run(5 * kSecond);
  sim.Measure();
  sim.Run(10 * kSecond);
  EXPECT_NEAR(sim.Share(3), sim.Share(2), 0.06);
  EXPECT_LE(sim.Latency(1, 1 - 1e-9), 3000) << "it wakes on a short slice";
}

TEST(ArbiterSim, AllIdleIsNoSwitching) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, kRequests);
  for (TenantId id = 2; id <= 4; ++id) sim.Add(id, {kBatch, 1}, kIdle);
  sim.Run(kSecond);
  sim.switches = 0;
  sim.Run(10 * kSecond);
  EXPECT_EQ(sim.switches, 0);
}

// Work that comes in bursts, as with a slow data loader.
TEST(ArbiterSim, BurstsAreServedBesideSteadyWork) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, kRequests);
  sim.Add(2, {kBatch, 1}, kBusy);
  sim.Add(3, {kBatch, 1}, {.work_us = 20'000, .think_us = 20'000});
  sim.Run(2 * kSecond);
  sim.Measure();
  sim.Run(20 * kSecond);
  // Its gaps are shorter than what tells an idle holder from a waiting one, so
  // half of its own turns is lost, and nothing of the others'.
  EXPECT_GE(sim.Sum(), 0.78);
  EXPECT_GE(sim.Share(3), 0.15);
  EXPECT_GE(sim.Share(2), 0.40);
  EXPECT_LE(sim.Latency(1, 0.99), 2400);
}

TEST(ArbiterSim, TheHolderOfTheTurnDiesAndTheNextOneRunsAtOnce) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, kRequests);
  sim.Add(2, {kBatch, 1}, kBusy);
  sim.Add(3, {kBatch, 1}, kBusy);
  sim.Run(2 * kSecond);
  const TenantId holder = sim.View(2).turn ? 2 : 3;
  const TenantId other = 5 - holder;
  sim.Kill(holder);
  sim.Run(5'000);
  sim.Measure();
  sim.Run(100'000);
  EXPECT_GE(sim.Share(other), 0.7);
}

}  // namespace
}  // namespace rondo::share
