// SPDX-License-Identifier: Apache-2.0
//
// Seeded random events, with messages lost, delayed and refused and anybody
// dying at any time. The rules of docs/arbiter.md must hold after every prefix.
#include <algorithm>
#include <random>
#include <set>

#include "gtest/gtest.h"
#include "share/time/arbiter.h"
#include "share/time/test_world.h"

namespace rondo::share {
namespace {

class Driver {
 public:
  // Odd seeds: anything goes. Even ones: a latency tenant and three batch
  // tenants that mostly stay, so that many turns change.
  explicit Driver(uint32_t seed)
      : random_(seed), arbiter_(TestRules()), steady_(seed % 2 == 0) {
    if (!steady_) return;
    for (TenantId id = 1; id <= 4; ++id) {
      specs_[id].cls = id == 1 ? TenantClass::kLatency : TenantClass::kBatch;
      Send(TenantSet{id, specs_[id]});
      world_.processes[++last_process_].tenant = id;
      Send(ProcessAttached{last_process_, id});
      AddGroup(last_process_);
    }
  }

  uint32_t Pick(uint32_t n) { return random_() % n; }
  bool Chance(double p) { return Pick(10'000) < p * 10'000; }

  static Rules TestRules() {
    Rules rules;
    rules.turns.batch_us = rules.turns.standard_us = 20'000;
    rules.turns.gap_wait_us = 5'000;
    return rules;
  }

  void Send(const Event& event) {
    const Decision decision = arbiter_.Step(now_us_, event);
    // A message to a shim, or a call to the driver, may vanish altogether.
    std::vector<Action> kept;
    for (const Action& action : decision.actions)
      if (!Chance(loss_)) kept.push_back(action);
    world_.Take(kept);
    wake_us_ = decision.wake_us;
    Check();
  }

  void Check() {
    ASSERT_LE(world_.TinyRunnable(), 1) << "at " << now_us_ << " us\n"
                                        << world_.Describe();
  }

  void RandomStep() {
    uint32_t what = Pick(100);
    if (steady_ && what < 18 && !Chance(0.03)) what = 18 + Pick(82);
    if (what < 4)
      SetTenant();
    else if (what < 5)
      DropTenant();
    else if (what < 9)
      AttachProcess();
    else if (what < 15)
      ChangeGroups();
    else if (what < 18)
      DropProcess();
    else if (what < 45)
      ShimStep();
    else if (what < 65)
      DriverStep();
    else if (what < 85)
      Answer();
    else if (what < 90)
      Sample();
    else
      Sleep(Chance(0.1) ? 300'000 : 5'000);
    Check();
  }

  void SetTenant() {
    TenantSpec spec;
    spec.cls = static_cast<TenantClass>(Pick(3));
    spec.weight = 1 + Pick(4);
    if (Chance(0.2)) spec.limit = 0.1 * (1 + Pick(9));
    const TenantId id = 1 + Pick(5);
    specs_[id] = spec;
    Send(TenantSet{id, spec});
  }

  void DropTenant() {
    if (specs_.empty()) return;
    const TenantId id = std::next(specs_.begin(), Pick(specs_.size()))->first;
    specs_.erase(id);
    std::erase_if(world_.processes,
                  [&](const auto& p) { return p.second.tenant == id; });
    Send(TenantGone{id});
  }

  void AttachProcess() {
    if (specs_.empty() || world_.processes.size() >= 9) return;
    const TenantId id = std::next(specs_.begin(), Pick(specs_.size()))->first;
    const ProcessId process = ++last_process_;
    world_.processes[process].tenant = id;
    Send(ProcessAttached{process, id});
    if (Chance(0.8)) AddGroup(process);
  }

  void AddGroup(ProcessId process) {
    world_.AddGroup(process);
    Check();
    Send(ProcessGroups{
        process, static_cast<int>(world_.processes[process].groups.size())});
  }

  ProcessId AnyProcess() {
    return std::next(world_.processes.begin(), Pick(world_.processes.size()))
        ->first;
  }

  void ChangeGroups() {
    if (world_.processes.empty()) return;
    const ProcessId process = AnyProcess();
    auto& groups = world_.processes[process].groups;
    if (groups.empty() || (groups.size() < 3 && Chance(0.4))) {
      AddGroup(process);
      return;
    }
    groups.pop_back();
    Send(ProcessGroups{process, static_cast<int>(groups.size())});
  }

  void DropProcess() {
    if (world_.processes.empty()) return;
    const ProcessId process = AnyProcess();
    world_.processes.erase(process);
    Send(ProcessGone{process});
  }

  void ShimStep() {
    if (world_.processes.empty()) return;
    world_.ShimStep(AnyProcess(), Chance(refuse_), Chance(loss_));
  }

  void DriverStep() {
    const bool done = !Chance(refuse_);
    world_.DriverStep(done, !Chance(refuse_), Chance(loss_), Chance(0.5));
  }

  void Answer() {
    if (world_.answers.empty()) return;
    const Event answer = world_.answers.front();
    world_.answers.pop_front();
    Send(answer);
  }

  // Only who may run has run; busy tells the tenants that want to.
  void Sample() {
    Activity activity;
    activity.source = Chance(0.9) ? Activity::Source::kSwitchLog
                                  : Activity::Source::kSampling;
    activity.interval_us = std::max<int64_t>(1, now_us_ - sampled_us_);
    sampled_us_ = now_us_;
    int64_t left_us = activity.interval_us;
    for (const auto& [id, p] : world_.processes) {
      bool may = false;
      for (const WorldGroup& g : p.groups) may |= g.runnable;
      if (!may || Chance(0.3)) continue;
      const int64_t busy = Pick(static_cast<uint32_t>(left_us) + 1);
      left_us -= busy;
      activity.runs.push_back({id, busy, Chance(0.5) ? 0 : Pick(1000)});
    }
    Send(activity);
  }

  void Sleep(int64_t at_most_us) {
    now_us_ += 1 + Pick(static_cast<uint32_t>(at_most_us));
    if (now_us_ >= wake_us_) Send(Tick{});
  }

  // The agent dies: what it sent still arrives, nothing more comes. Each shim
  // restores its default slice and then resumes itself, in any interleaving.
  void AgentDies() {
    World world = world_;
    std::map<ProcessId, int> stage;
    std::vector<ProcessId> left;
    for (const auto& [id, p] : world.processes) left.push_back(id);
    while (!left.empty()) {
      const size_t i = Pick(left.size());
      WorldProcess& p = world.processes[left[i]];
      if (!p.inbox.empty()) {
        world.ShimStep(left[i], /*refuse=*/false, /*lose_answer=*/true);
      } else if (stage[left[i]]++ == 0) {
        for (WorldGroup& g : p.groups) g.slice_us = World::kDefaultUs;
      } else {
        for (WorldGroup& g : p.groups) g.runnable = true;
        left.erase(left.begin() + i);
      }
      ASSERT_LE(world.TinyRunnable(), 1) << world.Describe();
    }
  }

  // From here on everything works: time passes in small steps, everybody who
  // may run does. Returns the tenants that could run at some moment.
  std::set<TenantId> Calm(int64_t for_us) {
    loss_ = refuse_ = 0;
    std::set<TenantId> ran;
    const int64_t end_us = now_us_ + for_us;
    while (now_us_ < end_us) {
      while (!world_.calls.empty()) DriverStep();
      for (auto& [id, p] : world_.processes)
        while (!p.inbox.empty()) world_.ShimStep(id, false, false);
      while (!world_.answers.empty()) Answer();
      Check();
      for (const auto& [id, p] : world_.processes)
        for (const WorldGroup& g : p.groups)
          if (g.runnable) ran.insert(p.tenant);
      now_us_ += 2000;
      if (now_us_ >= wake_us_) Send(Tick{});
      FairSample();
    }
    return ran;
  }

  // Runnable groups share the time equally.
  void FairSample() {
    Activity activity;
    activity.interval_us = now_us_ - sampled_us_;
    sampled_us_ = now_us_;
    for (const auto& [id, p] : world_.processes) {
      for (const WorldGroup& g : p.groups) {
        if (!g.runnable) continue;
        activity.runs.push_back({id, 0, 300});
        break;
      }
    }
    for (Activity::Run& run : activity.runs)
      run.busy_us = activity.interval_us / activity.runs.size();
    Send(activity);
  }

  std::set<TenantId> Present() const {
    std::set<TenantId> present;
    for (const auto& [id, p] : world_.processes)
      if (!p.groups.empty()) present.insert(p.tenant);
    return present;
  }

  void KeepOnly(TenantId keep) {
    const auto all = specs_;
    for (const auto& [id, spec] : all) {
      if (id == keep) continue;
      specs_.erase(id);
      std::erase_if(world_.processes,
                    [id = id](const auto& p) { return p.second.tenant == id; });
      Send(TenantGone{id});
    }
    specs_[keep].limit = 1;
    Send(TenantSet{keep, specs_[keep]});
  }

  void ExpectAllRunOnSafeSlices() {
    for (const auto& [id, p] : world_.processes)
      for (const WorldGroup& g : p.groups) {
        EXPECT_TRUE(g.runnable) << world_.Describe();
        EXPECT_GE(g.slice_us, World::kFloorUs) << world_.Describe();
      }
  }

  std::mt19937 random_;
  double loss_ = 0.05, refuse_ = 0.05;
  int64_t now_us_ = 1'000'000, wake_us_ = INT64_MAX, sampled_us_ = 1'000'000;
  Arbiter arbiter_;
  const bool steady_;
  World world_;
  std::map<TenantId, TenantSpec> specs_;
  ProcessId last_process_ = 0;
};

class ArbiterProperty : public testing::TestWithParam<uint32_t> {};

TEST_P(ArbiterProperty, HoldsAfterEveryPrefixOfEvents) {
  Driver driver(GetParam());
  for (int step = 0; step < 2500; ++step) {
    SCOPED_TRACE(absl::StrCat("seed ", GetParam(), " step ", step));
    driver.RandomStep();
    if (testing::Test::HasFatalFailure()) return;
    if (step % 10 == 0) driver.AgentDies();
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST_P(ArbiterProperty, NobodyStarvesOnceMessagesArriveAgain) {
  Driver driver(GetParam());
  for (int step = 0; step < 600; ++step) driver.RandomStep();
  driver.Calm(5'000'000);  // longest back-off
  const std::set<TenantId> present = driver.Present();
  // Turns of all, the longest ten times the usual, and gaps to wait for.
  EXPECT_EQ(driver.Calm(6'000'000), present) << driver.world_.Describe();
  if (testing::Test::HasFatalFailure()) return;
  if (present.empty()) return;
  driver.KeepOnly(*present.begin());
  driver.Calm(5'000'000);
  driver.ExpectAllRunOnSafeSlices();
}

INSTANTIATE_TEST_SUITE_P(Seeds, ArbiterProperty, testing::Range(1u, 121u));

}  // namespace
}  // namespace rondo::share
