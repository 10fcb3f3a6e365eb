// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/engine.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::sim::driver {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000'000;

struct Switch {
  GroupId group;
  bool starts;
  int64_t at;
  bool operator==(const Switch&) const = default;
};

// Tenants on one engine: batch ones keep their channel full, a latency one asks
// for a request of some kernels, waits for it, thinks.
class Card : public Engine::Observer {
 public:
  void AddBatch(GroupId id, int64_t slice, int64_t kernel) {
    engine.AddGroup(id, slice);
    batch_[id] = kernel;
    for (int i = 0; i < 4; ++i) engine.Submit(id, 0, {.duration_ns = kernel});
  }
  void AddLatency(GroupId id, int64_t slice, int64_t kernel, int kernels,
                  int64_t think) {
    engine.AddGroup(id, slice);
    latency_ = {id, kernel, kernels, think};
    next_request_ = think;
  }

  void RunUntil(int64_t end) {
    while (engine.now() < end) {
      const int64_t next = std::min({end, engine.NextEvent(), next_request_});
      engine.AdvanceTo(next);
      for (const GroupId id : refill_)
        engine.Submit(id, 0, {.duration_ns = batch_[id]});
      refill_.clear();
      if (next == next_request_) Request();
    }
  }

  void OnDone(GroupId group, uint32_t, uint64_t tag, uint64_t,
              int64_t at) override {
    if (batch_.count(group) != 0) refill_.push_back(group);
    if (tag == 1) {
      latencies.push_back(at - asked_);
      // Requests drift against the slices, as those of a real client do.
      jitter_ = (jitter_ * 1103 + 2521) % 7001;
      next_request_ = at + latency_.think + jitter_ * kUs;
    }
  }
  void OnSwitch(GroupId group, bool starts, int64_t at) override {
    switches.push_back({group, starts, at});
  }

  double Share(GroupId id) const {
    return static_cast<double>(engine.Progress(id)) / engine.now();
  }
  double Percentile(double p) {
    std::sort(latencies.begin(), latencies.end());
    return latencies[static_cast<size_t>(p * (latencies.size() - 1))] / 1e3;
  }

  Engine engine{this};
  std::vector<int64_t> latencies;
  std::vector<Switch> switches;

 private:
  void Request() {
    asked_ = engine.now();
    next_request_ = kNever;
    for (int i = 1; i <= latency_.kernels; ++i)
      engine.Submit(latency_.id, 0,
                    {.duration_ns = latency_.kernel,
                     .tag = i == latency_.kernels ? 1u : 0u});
  }

  struct {
    GroupId id = kNoGroup;
    int64_t kernel = 0;
    int kernels = 0;
    int64_t think = 0;
  } latency_;
  std::map<GroupId, int64_t> batch_;
  std::vector<GroupId> refill_;
  int64_t next_request_ = kNever, asked_ = 0, jitter_ = 0;
};

TEST(EngineTest, AloneNeverSwitches) {
  Card card;
  card.AddBatch(1, 2048 * kUs, 100 * kUs);
  card.RunUntil(1000 * kMs);
  EXPECT_THAT(card.Share(1), DoubleNear(0.973, 0.002));
  EXPECT_THAT(card.switches, ElementsAre(Switch{1, true, 82 * kUs}));
}

// Figures of the H200: kernel length, slices in µs, measured shares.
struct SharesCase {
  const char* name;
  int64_t kernel_us;
  std::vector<int64_t> slices_us;
  std::vector<double> shares;
  double tolerance;
};

class SharesTest : public testing::TestWithParam<SharesCase> {};

TEST_P(SharesTest, AreThoseOfTheCard) {
  const SharesCase& c = GetParam();
  Card card;
  for (size_t i = 0; i < c.slices_us.size(); ++i)
    card.AddBatch(i + 1, c.slices_us[i] * kUs, c.kernel_us * kUs);
  card.RunUntil(5000 * kMs);
  for (size_t i = 0; i < c.shares.size(); ++i)
    EXPECT_THAT(card.Share(i + 1), DoubleNear(c.shares[i], c.tolerance));
}

INSTANTIATE_TEST_SUITE_P(
    Card, SharesTest,
    testing::Values(
        SharesCase{"TwoStock", 100, {2048, 2048}, {0.4405, 0.4405}, 0.01},
        SharesCase{"TwoOn10ms", 100, {10000, 10000}, {0.476, 0.476}, 0.005},
        SharesCase{"TwoOn30ms", 100, {30000, 30000}, {0.483, 0.483}, 0.005},
        SharesCase{
            "FourStock", 1000, {2048, 2048, 2048, 2048}, {0.226, 0.226}, 0.005},
        SharesCase{"FourOn20ms",
                   1000,
                   {20000, 20000, 20000, 20000},
                   {0.247, 0.247, 0.247, 0.247},
                   0.004},
        SharesCase{"NineToThree", 100, {9000, 3000}, {0.705, 0.234}, 0.01},
        SharesCase{"ThreeOn200us", 1000, {200, 200, 200}, {0.127}, 0.015}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(EngineTest, TwoOnSlicesBelowTheSwitchCostMakeNoProgress) {
  Card card;
  card.AddBatch(1, 20 * kUs, 100 * kUs);
  card.AddBatch(2, 20 * kUs, 100 * kUs);
  card.AddBatch(3, 20 * kUs, 100 * kUs);
  card.RunUntil(3000 * kMs);
  for (GroupId id : {1, 2, 3}) EXPECT_EQ(card.engine.Progress(id), 0);
  for (GroupId id : {1, 2, 3}) card.engine.SetSlice(id, 2048 * kUs);
  card.RunUntil(6000 * kMs);
  for (GroupId id : {1, 2, 3}) EXPECT_GT(card.Share(id), 0.14);
}

TEST(EngineTest, OneOnATinySliceLosesNothing) {
  Card card;
  card.AddBatch(1, 1 * kUs, 100 * kUs);
  card.RunUntil(1000 * kMs);
  EXPECT_THAT(card.Share(1), DoubleNear(0.973, 0.002));
}

struct LatencyCase {
  const char* name;
  int64_t batch_slice_us;
  int kernels;
  double p50, p99;  // µs added to running alone
};

class LatencyTest : public testing::TestWithParam<LatencyCase> {};

// A latency tenant on a 20 ms slice beside one batch tenant.
TEST_P(LatencyTest, AddsWhatTheCardAdds) {
  const LatencyCase& c = GetParam();
  Card alone, shared;
  for (Card* card : {&alone, &shared}) {
    card->AddLatency(9, 20 * kMs, 94 * kUs, c.kernels, 10 * kMs);
    if (card == &shared) card->AddBatch(1, c.batch_slice_us * kUs, 1000 * kUs);
    card->RunUntil(20000 * kMs);
    ASSERT_GT(card->latencies.size(), 1000u);
  }
  EXPECT_THAT(shared.Percentile(0.5) - alone.Percentile(0.5),
              DoubleNear(c.p50, 30));
  EXPECT_THAT(shared.Percentile(0.99) - alone.Percentile(0.99),
              DoubleNear(c.p99, 30));
  EXPECT_GT(shared.Share(1), 0.79);
}

INSTANTIATE_TEST_SUITE_P(
    Card, LatencyTest,
    testing::Values(LatencyCase{"Slice200us", 200, 20, 295, 382},
                    LatencyCase{"Slice100us", 100, 20, 251, 288},
                    LatencyCase{"Slice50us", 50, 20, 210, 227},
                    LatencyCase{"Slice20us", 20, 20, 191, 194},
                    LatencyCase{"Slice1us", 1, 20, 175, 179},
                    LatencyCase{"OneKernel20us", 20, 1, 180, 187}),
    [](const auto& info) { return std::string(info.param.name); });

// What people have without Rondo: every batch tenant's slice comes first.
TEST(EngineTest, StockLatencyBesideThreeBatchTenants) {
  Card card;
  card.AddLatency(9, 2048 * kUs, 94 * kUs, 20, 10 * kMs);
  for (GroupId id : {1, 2, 3}) card.AddBatch(id, 2048 * kUs, 1000 * kUs);
  card.RunUntil(20000 * kMs);
  EXPECT_THAT(card.Percentile(0.5), DoubleNear(5455, 300));
  EXPECT_THAT(card.Percentile(0.99), DoubleNear(8941, 600));
}

TEST(EngineTest, SuspendedMidKernelAndResumedLosesNoWork) {
  Card card;
  card.AddBatch(1, 2048 * kUs, 20 * kMs);
  card.AddBatch(2, 2048 * kUs, 1 * kMs);
  card.RunUntil(100 * kMs);
  card.engine.SetEnabled(1, 0, false);
  EXPECT_FALSE(card.engine.Runnable(1));
  const int64_t at = card.engine.Progress(1);
  card.RunUntil(1100 * kMs);
  EXPECT_EQ(card.engine.Progress(1), at);
  EXPECT_GT(card.engine.Progress(2), 990 * kMs);
  card.engine.SetEnabled(1, 0, true);
  card.RunUntil(2100 * kMs);
  EXPECT_THAT((card.engine.Progress(1) - at) / 1e9, DoubleNear(0.457, 0.01));
}

TEST(EngineTest, DisablingSchedulingLetsTheSliceEnd) {
  Card card;
  card.AddBatch(1, 2000 * kUs, 20 * kMs);
  card.RunUntil(11 * kMs);
  const int64_t at = card.engine.Progress(1);
  card.engine.SetEnabled(1, 0, false, /*at_slice_end=*/true);
  card.RunUntil(50 * kMs);
  EXPECT_GT(card.engine.Progress(1), at);
  EXPECT_LE(card.engine.Progress(1), at + 2000 * kUs);
  EXPECT_FALSE(card.switches.back().starts);
}

TEST(EngineTest, AGroupThatGoesLeavesItsNeighbourTheEngine) {
  Card card;
  card.AddBatch(1, 2048 * kUs, 1 * kMs);
  card.AddBatch(2, 2048 * kUs, 1 * kMs);
  card.RunUntil(101 * kMs);
  card.engine.RemoveGroup(1);
  const int64_t at = card.engine.Progress(2);
  card.RunUntil(201 * kMs);
  EXPECT_GT(card.engine.Progress(2) - at, 99 * kMs);
  EXPECT_EQ(card.switches.back().group, 2u);
}

// Each change puts the driver's round back to its beginning, so toggling often
// starves the last.
TEST(EngineTest, ChangesTooOftenStarveTheLast) {
  Card card;
  for (GroupId id : {1, 2, 3}) card.AddBatch(id, 10 * kMs, 1 * kMs);
  for (int i = 1; i <= 400; ++i) {
    card.engine.SetSlice(1, (i % 2 != 0 ? 9 : 10) * kMs);
    card.RunUntil(i * 12 * kMs);
  }
  EXPECT_LT(card.Share(3), 0.05);
}

TEST(EngineTest, EntriesWaitForTheirCondition) {
  Card card;
  card.engine.AddGroup(1, 2048 * kUs);
  card.engine.Submit(
      1, 1, {.duration_ns = 5 * kUs, .wait_channel = 0, .wait_done = 2});
  EXPECT_EQ(card.engine.NextEvent(), kNever);
  card.engine.Submit(1, 0, {.duration_ns = 50 * kUs});
  card.engine.Submit(1, 0, {});
  card.RunUntil(kMs);
  EXPECT_EQ(card.engine.Progress(1), 55 * kUs);
}

TEST(EngineTest, SwitchesComeInPairsWithTheGapBetween) {
  Card card;
  card.AddBatch(1, 9 * kMs, 100 * kUs);
  card.AddBatch(2, 3 * kMs, 100 * kUs);
  card.RunUntil(500 * kMs);
  int64_t slice = 0;
  for (size_t i = 1; i < card.switches.size(); ++i) {
    const Switch& before = card.switches[i - 1];
    const Switch& s = card.switches[i];
    ASSERT_NE(s.starts, before.starts);
    if (s.starts) {
      EXPECT_EQ(s.at - before.at, 82 * kUs);
    } else {
      EXPECT_EQ(s.group, before.group);
      slice = s.at - before.at;
      EXPECT_EQ(slice, (s.group == 1 ? 9 : 3) * kMs);
    }
  }
}

}  // namespace
}  // namespace rondo::sim::driver
