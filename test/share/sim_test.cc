// SPDX-License-Identifier: Apache-2.0
//
// Slots, arbiter, suspender and account against real programs under librondo.so
// on the simulated driver, where slices, suspensions and switches have their
// measured costs and tiny slices their livelock.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/event_loop.h"
#include "metrics/node_view.h"
#include "metrics/prometheus.h"
#include "nvml/real.h"
#include "rm/abi.h"
#include "rm/control.h"
#include "share/activity_bridge.h"
#include "share/share.h"
#include "sim/driver/test_node.h"
#include "sim/driver/test_system.h"
#include "sim/driver/test_tenant.h"
#include "test/shim/tenant_process.h"

namespace rondo::share {
namespace {

using sim::driver::Tenant;
using sim::driver::Tenants;
using std::chrono::milliseconds;

constexpr auto kLatency = TenantClass::kLatency;
constexpr auto kBatch = TenantClass::kBatch;
constexpr std::chrono::seconds kPatience{12};
// An arbiter that a machine holds up for longer keeps no shares.
constexpr milliseconds kLongestStall{40};
constexpr char kNeverStill[] =
    "the machine held the agent up in every run: the shares say nothing";

// An agent's sharing on a thread of its own.
class Agent {
 public:
  Agent(rm::System& system, const std::string& nvml_library,
        const std::string& run_dir, const ShareConfig& config)
      : nvml_library_(nvml_library), thread_([this, &system, run_dir, config] {
          Main(system, run_dir, config);
        }) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return share_ != nullptr; });
  }
  ~Agent() {
    loop_.Stop();
    thread_.join();
  }
  // Asks on the loop's thread.
  ShareStats Stats() {
    std::optional<ShareStats> stats;
    loop_.Post([&] {
      std::lock_guard lock(mutex_);
      stats = share_->Snapshot();
      ready_.notify_all();
    });
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return stats.has_value(); });
    return *stats;
  }
  // The longest that its thread got no processor since the last call.
  MonotonicTime TakeLongestStall() {
    return MonotonicTime(longest_stall_ns_.exchange(0));
  }
  bool Until(const std::function<bool(const ShareStats&)>& wanted) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!wanted(Stats()))
      if (std::chrono::steady_clock::now() > deadline) return false;
    return true;
  }

 private:
  void Main(rm::System& system, const std::string& run_dir,
            const ShareConfig& config) {
    ShareOptions options;
    options.run_dir = run_dir;
    options.replay_window = milliseconds(300);
    options.audit_interval = milliseconds(100);
    auto share = Share::Create(loop_, RealClock(), system, options);
    ASSERT_TRUE(share.ok()) << share.status();
    ASSERT_TRUE((*share)->Configure(config).ok());
    ActivityBridge bridge(
        loop_, system, **share,
        [this]() -> absl::StatusOr<std::shared_ptr<nvml::Backend>> {
          return nvml::Real::Load(nvml_library_);
        },
        {});
    {
      std::lock_guard lock(mutex_);
      share_ = share->get();
    }
    ready_.notify_all();
    WatchStalls();
    loop_.Run();
  }
  void WatchStalls() {
    constexpr milliseconds kTick{2};
    const MonotonicTime due = RealClock().Now() + kTick;
    loop_.RunAfter(kTick, [this, due] {
      const int64_t late_ns = (RealClock().Now() - due).count();
      longest_stall_ns_ = std::max(longest_stall_ns_.load(), late_ns);
      WatchStalls();
    });
  }

  const std::string nvml_library_;
  EventLoop loop_;
  std::atomic<int64_t> longest_stall_ns_{0};
  std::mutex mutex_;
  std::condition_variable ready_;
  Share* share_ = nullptr;
  std::thread thread_;
};

// As an agent without privilege has it: the driver keeps the context-switch log
// to itself.
class WithoutLog : public sim::driver::SimulatedSystem {
 public:
  absl::Status Ioctl(int fd, uint32_t request, void* argument) override {
    auto* control = static_cast<rm::ControlArg*>(argument);
    if (refuse && rm::RequestNr(request) == rm::kEscControl &&
        control->cmd == rm::kCtrlBindFecs) {
      control->status = 0x1b;
      return absl::OkStatus();
    }
    return SimulatedSystem::Ioctl(fd, request, argument);
  }
  bool refuse = false;
};

class ShareSim : public sim::driver::NodeTest {
 protected:
  void AddSlot(TenantSpec tenant, uint64_t limit = uint64_t{8} << 30) {
    SlotSpec spec;
    spec.gpu_uuid = uuid_;
    spec.replica = static_cast<int>(config_.slots.size());
    spec.limit_bytes = limit;
    spec.memory = config::MemoryMode::kEnforce;
    spec.tenant = tenant;
    config_.slots.push_back(spec);
  }
  void StartAgent() {
    agent_ = std::make_unique<Agent>(system_, node_->library_path(),
                                     run_dir_.path(), config_);
  }
  std::unique_ptr<Tenant> Add(int slot, const std::string& options) {
    return std::make_unique<Tenant>(
        RONDO_TEST_SIM_TENANT, *node_, options, RONDO_TEST_LIBRONDO,
        std::vector<std::string>{"RONDO_RUN_DIR=" + run_dir_.path(),
                                 "RONDO_SLOTS=" + config_.slots[slot].id()});
  }

  // Programs that `start` makes, at the same time and to their end; once more
  // where the agent was held up meanwhile. Empty: it was in every run.
  Tenants RunUndisturbed(const std::function<Tenants()>& start,
                         const std::function<void()>& meanwhile = {}) {
    for (int run = 0; run < 3; ++run) {
      Tenants tenants = start();
      for (const auto& t : tenants) t->Begin();
      agent_->TakeLongestStall();
      if (meanwhile) meanwhile();
      for (const auto& t : tenants) t->Finish();
      const MonotonicTime stall = agent_->TakeLongestStall();
      const double stall_ms = static_cast<double>(stall.count()) / 1e6;
      if (stall <= kLongestStall) {
        std::printf("judged: the agent was held up for %.0f ms\n", stall_ms);
        return tenants;
      }
      std::printf("the agent was held up for %.0f ms: once more\n", stall_ms);
    }
    return {};
  }
  // One a slot: the first with `first`, the others with `others`.
  Tenants RunAllUndisturbed(const std::string& first,
                            const std::string& others) {
    return RunUndisturbed([&] { return AddAll(first, others); });
  }
  Tenants AddAll(const std::string& first, const std::string& others) {
    Tenants tenants;
    for (size_t i = 0; i < config_.slots.size(); ++i)
      tenants.push_back(Add(static_cast<int>(i), i == 0 ? first : others));
    return tenants;
  }

  const RunDir run_dir_;
  WithoutLog system_;
  ShareConfig config_;
  std::unique_ptr<Agent> agent_;
};

// A program that a busy host holds up looks like one that comes and goes, and
// then no long slices are earned for a while. What they are worth is judged
// under virtual time (share_mixes_test).
constexpr double kOnTheDriversSlices = 0.92;

TEST_F(ShareSim, WeightsComeOutAsWritten) {
  AddSlot({.weight = 3});
  AddSlot({.weight = 1});
  StartAgent();
  const std::string busy = "--kernel-us 1000 --warmup 2 --seconds 3";
  const Tenants tenants = RunAllUndisturbed(busy, busy);
  if (tenants.empty()) GTEST_SKIP() << kNeverStill;
  const double sum = tenants[0]->Share() + tenants[1]->Share();
  EXPECT_NEAR(tenants[0]->Share() / sum, 0.75, 0.02);
  EXPECT_GT(sum, kOnTheDriversSlices);
}

TEST_F(ShareSim, ProcessesOfATenantSplitItsSlice) {
  AddSlot({});
  AddSlot({});
  StartAgent();
  const std::string busy = "--kernel-us 1000 --warmup 2 --seconds 3";
  const Tenants programs = RunUndisturbed([&] {
    Tenants made;
    for (const int slot : {0, 0, 1}) made.push_back(Add(slot, busy));
    return made;
  });
  if (programs.empty()) GTEST_SKIP() << kNeverStill;
  const double sum =
      programs[0]->Share() + programs[1]->Share() + programs[2]->Share();
  EXPECT_NEAR(programs[0]->Share() / sum, 0.25, 0.02);
  EXPECT_NEAR(programs[1]->Share() / sum, 0.25, 0.02);
  EXPECT_NEAR(programs[2]->Share() / sum, 0.50, 0.02);
  EXPECT_GT(sum, kOnTheDriversSlices)
      << programs[0]->Share() << " " << programs[1]->Share() << " "
      << programs[2]->Share();
}

TEST_F(ShareSim, TwoLatencyTenantsShareByWeight) {
  AddSlot({.cls = kLatency, .weight = 3});
  AddSlot({.cls = kLatency, .weight = 1});
  StartAgent();
  const std::string busy = "--kernel-us 1000 --warmup 3 --seconds 3";
  const Tenants tenants = RunAllUndisturbed(busy, busy);
  if (tenants.empty()) GTEST_SKIP() << kNeverStill;
  const double sum = tenants[0]->Share() + tenants[1]->Share();
  EXPECT_NEAR(tenants[0]->Share() / sum, 0.75, 0.02);
  EXPECT_GT(sum, kOnTheDriversSlices);
}

TEST_F(ShareSim, ALatencyTenantBesideThreeBatchTenants) {
  AddSlot({.cls = kLatency});
  for (int i = 0; i < 3; ++i) AddSlot({.cls = kBatch});
  StartAgent();
  const Tenants tenants = RunUndisturbed(
      [&] {
        return AddAll(
            "--think-us 10000 --jitter-us 2000 --warmup 2 --seconds 4",
            "--kernel-us 1000 --warmup 2 --seconds 4");
      },
      [&] {
        EXPECT_TRUE(agent_->Until([&](const ShareStats& stats) {
          uint64_t suspensions = 0;
          for (const SlotStats& slot : stats.slots)
            suspensions += slot.suspensions;
          return suspensions >= 6;
        }));
      });
  if (tenants.empty()) GTEST_SKIP() << kNeverStill;
  double sum = 0;
  for (const auto& t : tenants) sum += t->Share();
  EXPECT_LT(tenants[0]->Number("p50"), 2500) << "alone 2000, stock 5800";
  EXPECT_GT(sum, 0.93);
  for (int i = 1; i <= 3; ++i) EXPECT_GT(tenants[i]->Share(), 0.15) << i;
}

// One of the batch tenants has nothing to do: how long it is given turns all
// the same, by what tells who runs. Its neighbour has them then.
TEST_F(ShareSim, AnIdleTenantsTurnsEndWithTheLogAndWithSamples) {
  for (const bool refuse : {false, true}) {
    system_.refuse = refuse;
    config_.slots.clear();
    AddSlot({.cls = kLatency});
    for (int i = 0; i < 2; ++i) AddSlot({.cls = kBatch});
    StartAgent();
    const auto idle = Add(2, "--seconds 0.1");  // never begins
    MonotonicTime had;
    std::string source;
    const Tenants tenants = RunUndisturbed(
        [&] {
          Tenants made;
          made.push_back(Add(
              0, "--think-us 10000 --jitter-us 2000 --warmup 4 --seconds 2"));
          made.push_back(Add(1, "--kernel-us 1000 --warmup 4 --seconds 2"));
          return made;
        },
        [&] {
          const MonotonicTime start = RealClock().Now();
          MonotonicTime last = start, before = start;
          had = {};
          ASSERT_TRUE(agent_->Until([&](const ShareStats& stats) {
            const MonotonicTime now = RealClock().Now();
            if (stats.slots[2].turn) {
              had += now - before;
              last = now;
            }
            before = now;
            source = stats.gpus[0].activity_source;
            return now - last > std::chrono::seconds(2) ||
                   now - start > kPatience;
          }));
          EXPECT_LT(last - start, kPatience - std::chrono::seconds(2));
        });
    if (tenants.empty()) GTEST_SKIP() << kNeverStill;
    EXPECT_EQ(source, refuse ? "sampling" : "switch-log");
    std::printf("%s: the idle one had turns for %lld ms\n", source.c_str(),
                static_cast<long long>(
                    std::chrono::duration_cast<milliseconds>(had).count()));
    EXPECT_GT(tenants[1]->Share(), 0.7) << "0.4 if the idle one had its half";
    EXPECT_LT(tenants[0]->Number("p50"), 2600);
    agent_.reset();
  }
}

TEST_F(ShareSim, BySamplesOneThatNeverPausesLeavesTheOthersTheirShare) {
  system_.refuse = true;
  AddSlot({.cls = kLatency});
  AddSlot({.cls = kBatch});
  StartAgent();
  const std::string busy = "--kernel-us 1000 --warmup 4 --seconds 4";
  const Tenants tenants = RunAllUndisturbed(busy, busy);
  if (tenants.empty()) GTEST_SKIP() << kNeverStill;
  EXPECT_GT(tenants[1]->Share(), 0.42);
  EXPECT_GT(tenants[0]->Share(), 0.42);
}

TEST_F(ShareSim, ALatencyTenantThatNeverPausesLeavesTheOthersTheirShare) {
  AddSlot({.cls = kLatency});
  AddSlot({.cls = kBatch});
  StartAgent();
  const std::string busy = "--kernel-us 1000 --warmup 2 --seconds 4";
  const Tenants tenants = RunAllUndisturbed(busy, busy);
  if (tenants.empty()) GTEST_SKIP() << kNeverStill;
  EXPECT_GT(tenants[1]->Share(), 0.42);
  EXPECT_GT(tenants[0]->Share(), 0.42);
}

TEST_F(ShareSim, ALimitHoldsEvenAlone) {
  AddSlot({.limit = 0.5});
  StartAgent();
  const Tenants tenants =
      RunAllUndisturbed("--kernel-us 1000 --warmup 1 --seconds 4", "");
  if (tenants.empty()) GTEST_SKIP() << kNeverStill;
  EXPECT_LT(tenants[0]->Share(), 0.53);
  EXPECT_GT(tenants[0]->Share(), 0.42);
}

// It cannot answer, and what it has launched goes on: suspended and resumed
// without it, it holds up nobody's turn.
TEST_F(ShareSim, AStoppedTenantTakesItsTurnsAsTheOthers) {
  AddSlot({.cls = kLatency});
  for (int i = 0; i < 2; ++i) AddSlot({.cls = kBatch});
  config_.turn = milliseconds(200);
  StartAgent();
  Tenants tenants;
  tenants.push_back(Add(0, "--think-us 10000 --warmup 2 --seconds 3"));
  // Two requests of a second each wait while it works on a third one.
  tenants.push_back(Add(1, "--turns 1000 --kernel-us 50000 --seconds 3"));
  tenants.push_back(Add(2, "--kernel-us 1000 --warmup 2 --seconds 3"));
  for (const auto& t : tenants) t->Begin();
  EXPECT_TRUE(agent_->Until([](const ShareStats& stats) {
    return stats.slots[1].used_share > 0.2 && stats.slots[2].suspensions > 0;
  }));
  ASSERT_EQ(kill(tenants[1]->pid(), SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(waitpid(tenants[1]->pid(), &status, WUNTRACED), tenants[1]->pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  const ShareStats before = agent_->Stats();
  int resumed = 0;
  bool was_off = false;
  EXPECT_TRUE(agent_->Until([&](const ShareStats& stats) {
    const SlotStats& slot = stats.slots[1];
    resumed += was_off && !slot.suspended && slot.turn;
    was_off = slot.suspended;
    return resumed >= 3 &&
           slot.suspensions >= before.slots[1].suspensions + 3 &&
           stats.slots[2].suspensions >= before.slots[2].suspensions + 3;
  }));
  EXPECT_TRUE(agent_->Stats().slots[1].governed);
  kill(tenants[1]->pid(), SIGCONT);
  for (const auto& t : tenants) t->Finish();
  EXPECT_GT(tenants[2]->Share(), 0.3);
  EXPECT_LT(tenants[0]->Number("p50"), 3000) << "it is not on a long slice";
}

TEST_F(ShareSim, MemoryIsLimitedAndTheAuditAgrees) {
  AddSlot({}, uint64_t{4} << 30);
  StartAgent();
  Tenants tenants;  // the second one does not get all that it asks for
  for (int i = 0; i < 2; ++i)
    tenants.push_back(Add(0, "--memory 2500 --chunk 2 --seconds 2"));
  for (const auto& t : tenants) t->Begin();
  EXPECT_TRUE(agent_->Until([](const ShareStats& stats) {
    return stats.slots[0].processes.size() == 2 &&
           stats.slots[0].audit_difference_bytes == 0 &&
           stats.slots[0].denials > 0;
  }));
  const SlotStats slot = agent_->Stats().slots[0];
  EXPECT_LE(slot.device_bytes, uint64_t{4} << 30);
  EXPECT_GT(slot.device_bytes, (uint64_t{4} << 30) - (uint64_t{4} << 20));
  EXPECT_EQ(slot.audit_alarms, 0u);
  for (const auto& t : tenants) t->Kill();
  EXPECT_TRUE(agent_->Until([](const ShareStats& stats) {
    return stats.slots[0].device_bytes == 0;
  }));
}

// handover.cc, two processes of a slot of 4 GiB.
class ShareSimHandover : public ShareSim {
 protected:
  static constexpr uint64_t kMiB = 1 << 20;
  static constexpr uint64_t kContext = 518 * kMiB;

  void Start(bool count_managed = true) {
    AddSlot({}, uint64_t{4} << 30);
    config_.slots[0].count_managed = count_managed;
    StartAgent();
    TenantProcess::Options options;
    options.program = RONDO_TEST_HANDOVER;
    options.slots = config_.slots[0].id();
    for (const auto& [name, value] :
         sim::driver::Environment(*node_, "", RONDO_TEST_LIBRONDO)) {
      if (name == "LD_PRELOAD")
        options.preload = value;
      else
        options.env[name] = value;
    }
    pair_ = std::make_unique<TenantProcess>(run_dir_, options);
    ASSERT_EQ(pair_->ReadLine(), "ready");
  }
  bool HoldsManaged(uint64_t bytes) {
    return agent_->Until([&](const ShareStats& stats) {
      return stats.slots[0].managed_bytes == bytes;
    });
  }
  // Until the ledger holds that much, and the driver says the same.
  bool Holds(uint64_t bytes) {
    return agent_->Until([&](const ShareStats& stats) {
      return stats.slots[0].device_bytes == bytes &&
             stats.slots[0].audit_difference_bytes == 0;
    });
  }

  std::unique_ptr<TenantProcess> pair_;
};

TEST_F(ShareSimHandover, ExportedMemoryIsChargedOnceUntilTheLastHolderGoes) {
  Start();
  EXPECT_EQ(pair_->Do("A create 512"), "0");
  EXPECT_EQ(pair_->Do("B import"), "0");
  EXPECT_TRUE(Holds(2 * kContext + 512 * kMiB));
  EXPECT_EQ(pair_->Do("B release"), "0");
  EXPECT_TRUE(Holds(2 * kContext + 512 * kMiB));
  EXPECT_EQ(pair_->Do("A release"), "0");
  EXPECT_TRUE(Holds(2 * kContext));
  EXPECT_EQ(pair_->Do("B create 256"), "0");
  EXPECT_EQ(pair_->Do("A import"), "0");
  EXPECT_EQ(pair_->Do("B exit"), "gone");
  EXPECT_TRUE(Holds(kContext + 256 * kMiB)) << "the maker has died";
  EXPECT_EQ(pair_->Do("A release"), "0");
  EXPECT_TRUE(Holds(kContext));
  EXPECT_EQ(agent_->Stats().slots[0].audit_alarms, 0u);
}

// One makes, the other keeps: what was passed on stays within the limit.
TEST_F(ShareSimHandover, PassingOnDoesNotPassTheLimit) {
  Start();
  const std::string kOutOfMemory = "2";
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(pair_->Do("A create 512"), "0");
    ASSERT_EQ(pair_->Do("B import"), "0");
    ASSERT_EQ(pair_->Do("A release"), "0");
    ASSERT_TRUE(Holds(2 * kContext + (i + 1) * 512 * kMiB));
  }
  EXPECT_EQ(pair_->Do("A create 512"), kOutOfMemory);
  // A fresh agent hears who keeps what.
  agent_.reset();
  StartAgent();
  EXPECT_TRUE(Holds(2 * kContext + 5 * 512 * kMiB));
  EXPECT_EQ(pair_->Do("A create 512"), kOutOfMemory);
  EXPECT_EQ(pair_->Do("B release"), "0");
  EXPECT_EQ(pair_->Do("A create 512"), "0");
}

TEST_F(ShareSimHandover, ManagedMemoryIsANumberOfItsOwnWithinTheLimit) {
  Start();
  EXPECT_EQ(pair_->Do("A managed 1500"), "0");
  EXPECT_TRUE(HoldsManaged(1500 * kMiB));
  EXPECT_TRUE(Holds(2 * kContext)) << "it is none of the driver's figure";
  EXPECT_EQ(pair_->Do("B managed 1600"), "2");
  EXPECT_EQ(pair_->Do("B create 1600"), "2") << "all of it is in one limit";
  EXPECT_EQ(pair_->Do("A free"), "0");
  EXPECT_TRUE(HoldsManaged(0));
  EXPECT_EQ(pair_->Do("B managed 1600"), "0");
  EXPECT_EQ(pair_->Do("B exit"), "gone");
  EXPECT_TRUE(HoldsManaged(0));
}

TEST_F(ShareSimHandover, ManagedMemoryMayBeIgnored) {
  Start(/*count_managed=*/false);
  EXPECT_EQ(pair_->Do("A managed 8000"), "0");
  EXPECT_EQ(pair_->Do("A create 3000"), "0");
  EXPECT_TRUE(Holds(2 * kContext + 3000 * kMiB));
  EXPECT_TRUE(HoldsManaged(0));
}

// From the program to the metric.
TEST_F(ShareSimHandover, ARequestOfUnknownShapeMakesTheSlotUngoverned) {
  Start();
  const auto metrics = [&] {
    metrics::NodeView node;
    node.sharing.stats = agent_->Stats();
    return metrics::RenderPrometheus(node);
  };
  const std::string metric =
      "rondo_slot_governed{slot=\"" + config_.slots[0].id() + "\"} ";
  EXPECT_THAT(metrics(), testing::HasSubstr(metric + "1\n"));
  EXPECT_EQ(pair_->Do("B odd"), "0");
  EXPECT_TRUE(agent_->Until(
      [](const ShareStats& stats) { return !stats.slots[0].governed; }));
  EXPECT_EQ(agent_->Stats().slots[0].reason,
            "unknown size of a driver request");
  EXPECT_THAT(metrics(), testing::HasSubstr(metric + "0\n"));
  EXPECT_EQ(pair_->Do("B exit"), "gone");
  EXPECT_TRUE(agent_->Until([](const ShareStats& stats) {
    return stats.slots[0].governed;
  })) << "the other one is as it should be";
}

// An agent that goes while tenants are suspended, and another that comes.
TEST_F(ShareSim, AgentsComeAndGo) {
  AddSlot({.cls = kLatency});
  for (int i = 0; i < 2; ++i) AddSlot({.cls = kBatch});
  StartAgent();
  Tenants tenants;
  tenants.push_back(Add(0, "--think-us 10000 --warmup 0.5 --seconds 5"));
  for (int i = 1; i <= 2; ++i)
    tenants.push_back(Add(i, "--kernel-us 1000 --warmup 0.5 --seconds 5"));
  for (const auto& t : tenants) t->Begin();
  const auto some_suspended = [](const ShareStats& stats) {
    return std::any_of(stats.slots.begin(), stats.slots.end(),
                       [](const SlotStats& slot) { return slot.suspended; });
  };
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(agent_->Until(some_suspended));
    const uint64_t held = agent_->Stats().slots[1].device_bytes;
    EXPECT_GT(held, 0u);
    agent_.reset();
    StartAgent();
    EXPECT_TRUE(agent_->Until([&](const ShareStats& stats) {
      return stats.slots[1].device_bytes == held;
    })) << "told again";
  }
  for (const auto& t : tenants) t->Finish();  // would wait for ever
  for (int i = 1; i <= 2; ++i) EXPECT_GT(tenants[i]->Share(), 0.1);
}

}  // namespace
}  // namespace rondo::share
