// SPDX-License-Identifier: Apache-2.0
//
// The arbiter against a toy of the hardware's scheduler.
#include "gtest/gtest.h"
#include "share/time/test_gpu.h"

namespace rondo::share {
namespace {

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

// rondo.period, a live change of it too.
TEST(ArbiterSim, TheConfigBoundsTheSlicesThatAreEarned) {
  Rules rules;
  rules.earned.longest_us = 10'000;
  Sim sim(Sim::Source::kLog, kSecond, rules);
  for (TenantId id : {1, 2}) sim.Add(id, {kStandard, 1}, kBusy);
  sim.Run(3 * kSecond);
  for (TenantId id : {1, 2}) EXPECT_EQ(sim.View(id).slice_us, 10'000u);
  rules.earned.longest_us = 5'000;
  sim.SetRules(rules);
  sim.Run(2 * kSecond);
  for (TenantId id : {1, 2}) EXPECT_EQ(sim.View(id).slice_us, 5'000u);
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
  EXPECT_GE(sim.Sum(), 0.985);
  EXPECT_EQ(sim.switches, 0) << "standard tenants are never suspended";
}

// The hardware goes round the processes: a tenant must not get more for having
// more of them, nor less for some that have nothing to do.
TEST(ArbiterSim, ProcessesOfATenantSplitItsSlice) {
  Sim sim;
  sim.Add(1, {kStandard, 1}, kBusy);
  for (ProcessId more : {11, 12, 13}) sim.AddProcess(1, more, kBusy);
  sim.Add(2, {kStandard, 1}, kBusy);
  for (const bool half_of_them_idle : {false, true}) {
    if (half_of_them_idle)
      for (ProcessId idle : {1, 12}) sim.SetLoad(idle, kIdle);
    sim.Run(3 * kSecond);
    sim.Measure();
    sim.Run(5 * kSecond);
    EXPECT_NEAR(sim.Share(1), 0.5, 0.015) << half_of_them_idle;
    EXPECT_GE(sim.Sum(), 0.98) << half_of_them_idle;
  }
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

// Its first kernels come one by one, whenever that ends.
TEST(ArbiterSim, HowAProgramStartsIsNotHowItGoesOn) {
  for (int64_t starts_us = 50'000; starts_us < 1'200'000; starts_us += 50'000) {
    Sim sim;
    const double weights[] = {4, 2, 1, 1};
    for (TenantId id = 1; id <= 4; ++id)
      sim.Add(id, {kStandard, weights[id - 1]}, kBusy);
    sim.SetLoad(1, {.work_us = 2'000, .think_us = 30});
    sim.Run(starts_us);
    sim.SetLoad(1, kBusy);
    sim.Run(2 * kSecond);
    sim.Measure();
    sim.Run(5 * kSecond);
    for (TenantId id = 1; id <= 4; ++id)
      EXPECT_NEAR(sim.Share(id), weights[id - 1] / 8, 0.01)
          << id << " after " << starts_us;
  }
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

TEST(ArbiterSim, ATinyWeightHoldsNobodyUpForLong) {
  Sim sim;
  sim.Add(1, {kStandard, 1}, kBusy);
  sim.Add(2, {kStandard, 1}, kBusy);
  sim.Add(3, {kStandard, 0.001}, kBusy);
  sim.Run(2 * kSecond);
  for (TenantId id : {1, 2}) EXPECT_LE(sim.View(id).slice_us, 100'000u);
  sim.Measure();
  sim.Run(5 * kSecond);
  EXPECT_NEAR(sim.Share(1), sim.Share(2), 0.03);
  EXPECT_LE(sim.Share(3), 0.01);
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

TEST(ArbiterSim, StandardTenantsThatFillTheGpuTakeTurnsUnasked) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, kRequests);
  sim.Add(2, {kStandard, 1}, kBusy);
  sim.Add(3, {kStandard, 1}, kBusy);
  sim.Add(4, {kBatch, 1}, kBusy);
  sim.Run(2 * kSecond);
  sim.Measure();
  sim.switches = 0;
  sim.Run(12 * kSecond);
  EXPECT_LE(sim.Latency(1, 0.99), 2300) << "alone 2000";
  for (TenantId id = 2; id <= 4; ++id)
    EXPECT_NEAR(sim.Share(id), 0.28, 0.03) << id;
  EXPECT_NEAR(sim.switches, 2 * 12 * 5, 2 * 7) << "two a turn of 200 ms";
}

TEST(ArbiterSim, ProcessesOfATenantShareItsTurn) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, kRequests);
  sim.Add(2, {kBatch, 1}, kBusy);
  for (ProcessId more : {12, 22}) sim.AddProcess(2, more, kBusy);
  sim.Add(3, {kBatch, 1}, kBusy);
  sim.Run(2 * kSecond);
  sim.Measure();
  sim.Run(12 * kSecond);
  EXPECT_NEAR(sim.Share(2), sim.Share(3), 0.06);
  EXPECT_GE(sim.Sum(), 0.92) << "three switch among themselves every 1 ms";
  EXPECT_LE(sim.Latency(1, 0.99), 2000 + 3 * 1080 + 100) << "a round of those";
}

// An agent that gets no processor for a while, as one with a limit for its
// container: just where no batch tenant may run, so that the latency tenant's
// context stays on the GPU with nothing to do. That is not held against it.
TEST(ArbiterSim, AStallOfTheAgentWithinAChangeOfTurnsCostsNoRequestAnything) {
  for (const int64_t stall_us : {60'000, 130'000, 250'000, 700'000}) {
    Sim sim;
    sim.Add(1, {kLatency, 1}, kRequests);
    for (TenantId id = 2; id <= 4; ++id) sim.Add(id, {kBatch, 1}, kBusy);
    sim.Run(2 * kSecond);
    sim.Measure();
    for (int i = 0; i < 4; ++i) {
      while (sim.runnable(2) || sim.runnable(3) || sim.runnable(4))
        sim.Run(kStepUs);
      sim.Stall(stall_us);
      sim.Run(2 * kSecond);
    }
    EXPECT_LE(sim.Latency(1, 1 - 1e-9), 4'000) << stall_us;
  }
}

// The host holds a call up until the gap is over: turns change in a later one.
// What a report does not tell is whether a request that was under way at its
// end still is.
TEST(ArbiterSim, ARequestUnderWayInTheLastReportIsNoGap) {
  for (const int64_t age_us : {200, 300, 450}) {
    Sim sim;
    sim.log_age_us = age_us;
    sim.Add(1, {kLatency, 1}, kRequests);
    for (TenantId id = 2; id <= 4; ++id) sim.Add(id, {kBatch, 1}, kBusy);
    sim.Run(2 * kSecond);
    sim.hits = sim.switches = 0;
    sim.Run(30 * kSecond);
    EXPECT_GE(sim.switches, 100);
    EXPECT_EQ(sim.hits, 0) << age_us;
  }
}

TEST(ArbiterSim, ACallThatComesTooLateForItsGapIsNotMade) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, kRequests);
  for (TenantId id = 2; id <= 4; ++id) sim.Add(id, {kBatch, 1}, kBusy);
  sim.Run(2 * kSecond);
  sim.Measure();
  sim.switches = sim.hits = 0;
  sim.held_up_every = 3;
  sim.Run(12 * kSecond);
  EXPECT_GT(sim.lates, 5);
  EXPECT_EQ(sim.hits, 0);
  EXPECT_GE(sim.Sum(), 0.95);
  for (TenantId id = 2; id <= 4; ++id)
    EXPECT_NEAR(sim.Share(id), 0.28, 0.03) << id;
  EXPECT_LE(sim.switches, 2 * 24 + 4) << "two a turn";
}

// One that always has work would leave nothing to a tiny slice, and two tiny
// ones, of two arbiters, nothing to anybody.
TEST(ArbiterSim, ProgramsWithoutRondoLeaveABatchTenantItsPart) {
  for (const auto source : {Sim::Source::kLog, Sim::Source::kNvml})
    for (const auto cls : {kBatch, kStandard})
      for (const uint32_t slice_us : {2048u, 20u}) {
        Sim sim(source);
        sim.Add(1, {kLatency, 1}, kRequests);
        sim.Add(2, {cls, 1}, kBusy);
        sim.AddOutsider(9, kBusy, slice_us);
        sim.Run(3 * kSecond);
        sim.Measure();
        sim.Run(10 * kSecond);
        EXPECT_GE(sim.Share(2), 0.35) << slice_us;
        EXPECT_LE(sim.Latency(1, 0.99), 2000 + 2 * 2048 + 500) << slice_us;
      }
}

TEST(ArbiterSim, LittleWorkOfProgramsWithoutRondoChangesNothing) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, kRequests);
  sim.Add(2, {kBatch, 1}, kBusy);
  sim.AddOutsider(9, {.work_us = 1000, .think_us = 15'000});
  sim.Run(2 * kSecond);
  EXPECT_EQ(sim.View(2).slice_us, 20u);
  sim.SetLoad(9, kBusy);
  sim.Run(3 * kSecond);
  EXPECT_EQ(sim.View(2).slice_us, 2048u);
  sim.SetLoad(9, kIdle);
  sim.Run(5 * kSecond);
  EXPECT_EQ(sim.View(2).slice_us, 20u) << "it has gone";
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

// The same where the agent sees little of it.
TEST(ArbiterSim, StallsOfTheAgentLeaveTheOthersTheirShareToo) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, kBusy);
  sim.Add(2, {kBatch, 1}, kBusy);
  sim.Run(2 * kSecond);
  sim.Measure();
  for (int i = 0; i < 20; ++i) {
    sim.Stall(200'000);
    sim.Run(500'000);
  }
  EXPECT_GE(sim.Share(2), 0.40);
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
  Sim sim(Sim::Source::kNone);
  sim.Add(1, {kLatency, 1}, kBusy);
  for (TenantId id = 2; id <= 3; ++id) sim.Add(id, {kBatch, 1}, kBusy);
  sim.Run(10 * kSecond);
  for (TenantId id = 2; id <= 3; ++id) EXPECT_GE(sim.Share(id), 0.08) << id;
}

TEST(ArbiterSim, TwoLatencyTenantsShareByWeight) {
  for (const Load first : {kBusy, kRequests}) {
    Sim sim;
    sim.Add(1, {kLatency, 3}, first);
    sim.Add(2, {kLatency, 1}, kBusy);
    sim.Run(5 * kSecond);
    sim.SetLoad(1, kBusy);
    sim.Run(2 * kSecond);
    sim.Measure();
    sim.slices = 0;
    sim.Run(5 * kSecond);
    EXPECT_NEAR(sim.Share(1), 0.75, 0.02);
    EXPECT_NEAR(sim.Share(2), 0.25, 0.02);
    EXPECT_EQ(sim.slices, 0) << "it stays as it is";
  }
}

TEST(ArbiterSim, OfTwoLatencyTenantsTheOneOverItsShareIsServedAsStandard) {
  for (const bool batch : {false, true}) {
    Sim sim;
    sim.Add(1, {kLatency, 1}, kRequests);
    sim.Add(2, {kLatency, 1}, kBusy);
    if (batch) sim.Add(3, {kBatch, 1}, kBusy);
    sim.Run(2 * kSecond);
    sim.Measure();
    sim.Run(10 * kSecond);
    EXPECT_FALSE(sim.View(1).over_share);
    EXPECT_TRUE(sim.View(2).over_share);
    EXPECT_LE(sim.Latency(1, 0.99), batch ? 2000 + 4000 + 400 : 2300);
    EXPECT_NEAR(sim.Share(2), batch ? 0.41 : 0.82, 0.03);
    EXPECT_NEAR(sim.Share(3), batch ? 0.41 : 0.00, 0.03);
  }
}

// One that waits for each of its kernels would have 0.05 by slices alone.
TEST(ArbiterSim, ALatencyTenantThatLeavesEarlyHasItsShareBesideAnother) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, {.work_us = 1000, .think_us = 30});
  sim.Add(2, {kLatency, 1}, kBusy);
  sim.Run(2 * kSecond);
  sim.Measure();
  sim.Run(20 * kSecond);
  EXPECT_GE(sim.Share(1), 0.35);
  EXPECT_GE(sim.Share(2), 0.25) << "half of its share, whatever is borrowed";
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
TEST(ArbiterSim, ALatencyTenantBesideThreeStandardTenantsWaitsForNone) {
  Sim sim;
  sim.Add(1, {kLatency, 1}, kRequests);
  for (TenantId id = 2; id <= 4; ++id) sim.Add(id, {kStandard, 1}, kBusy);
  sim.Run(2 * kSecond);
  sim.Measure();
  sim.Run(10 * kSecond);
  EXPECT_LE(sim.Latency(1, 0.99), 2300);
  for (TenantId id = 2; id <= 4; ++id) EXPECT_NEAR(sim.Share(id), 0.27, 0.03);
}

TEST(ArbiterSim, ALimitHoldsEvenAlone) {
  for (const auto source :
       {Sim::Source::kLog, Sim::Source::kNvml, Sim::Source::kNone}) {
    Sim sim(source);
    sim.Add(1, {kStandard, 1, 0.5}, kBusy);
    sim.Run(kSecond);
    sim.Measure();
    sim.Run(10 * kSecond);
    EXPECT_LE(sim.Share(1), 0.505);
    EXPECT_GE(sim.Share(1), 0.47);
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

// Whoever writes a pod may write any limit above 0.
TEST(ArbiterSim, ALimitNearNothingIsNoWorkForTheArbiter) {
  for (const double limit : {5e-324, 1e-300, 1e-13, 1e-9, 1e-4}) {
    for (const Load load : {kBusy, kIdle}) {
      Arbiter arbiter({});
      int64_t now_us = kSecond;
      arbiter.Step(now_us, TenantSet{1, {kStandard, 1, limit}});
      arbiter.Step(now_us, ProcessAttached{1, 1});
      arbiter.Step(now_us, ProcessGroups{1, 1});
      // The log is read, and then it is not.
      for (int i = 0; i < 100; ++i) {
        now_us += 2'000;
        Activity activity{.interval_us = 2'000};
        activity.runs.push_back(
            {.process = 1, .busy_us = load.starts_us == 0 ? 2'000 : 0});
        arbiter.Step(now_us, activity);
        const Decision decision = arbiter.Step(now_us, Tick{});
        EXPECT_GE(decision.wake_us, now_us + 1'000) << limit;
      }
      now_us += 10 * kSecond;
      arbiter.Step(now_us, Tick{});
      EXPECT_GT(arbiter.Step(now_us, Tick{}).wake_us, now_us) << limit;
    }
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
  EXPECT_LE(sim.slices, 5 * 16) << "not one for each that comes";
  sim.Run(2 * kSecond);
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
    EXPECT_LE(sim.slices, 2);
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
  // A pause is found out after the next request, and the turn goes on once
  // there is work again: what is lost is some 12 ms of each pause and two
  // switches.
  EXPECT_GE(sim.Sum(), 0.72);
  EXPECT_GE(sim.Share(3), 0.15);
  EXPECT_GE(sim.Share(2), 0.28);
  EXPECT_LE(sim.Latency(1, 0.99), 2500);
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
