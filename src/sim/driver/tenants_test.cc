// SPDX-License-Identifier: Apache-2.0
//
// Real programs on a simulated node: the tenant program, by way of the staged
// libraries, against the running driver.
#include <sched.h>
#include <signal.h>

#include <memory>
#include <string>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "sim/driver/test_node.h"
#include "sim/driver/test_tenant.h"
#include "sim/state.h"

namespace rondo::sim::driver {
namespace {

class TenantsTest : public NodeTest {
 protected:
  std::unique_ptr<Tenant> Add(const std::string& options) {
    return std::make_unique<Tenant>(TENANT, *node_, options);
  }
};

TEST_F(TenantsTest, AloneIsAsFastAsTheCard) {
  Tenants tenants;
  tenants.push_back(Add("--seconds 1"));
  RunAll(tenants);
  // The window ends within a request of 0.002, which counts or does not.
  EXPECT_NEAR(tenants[0]->Share(), 0.973, 0.0041);
  EXPECT_EQ(tenants[0]->Number("memory_bytes"), 0);
  // What a context leaves of an H200, and all of it.
  EXPECT_EQ(tenants[0]->Number("total_bytes"), 143156.0 * (1 << 20));
  EXPECT_EQ(tenants[0]->Number("free_bytes"), (143156.0 - 518) * (1 << 20));
}

TEST_F(TenantsTest, TwoShareEvenly) {
  Tenants tenants;
  tenants.push_back(Add("--seconds 1"));
  tenants.push_back(Add("--seconds 1"));
  RunAll(tenants);
  EXPECT_NEAR(tenants[0]->Share(), 0.44, 0.02);
  EXPECT_NEAR(tenants[1]->Share(), 0.44, 0.02);
}

TEST_F(TenantsTest, ALatencyTenantWaitsForTheSlicesOfOthers) {
  const std::string latency =
      "--kernel-us 94 --think-us 10000 --jitter-us 2000 --seconds 2";
  auto alone = Add(latency);
  alone->Begin();
  alone->Finish();
  EXPECT_NEAR(alone->Number("p50"), 1934, 10);
  EXPECT_NEAR(alone->Number("p99"), 1934, 10);
  auto batch = Add("--kernel-us 1000 --kernels 4 --seconds 2");
  auto beside = Add(latency);
  Tenants tenants;
  tenants.push_back(std::move(batch));
  tenants.push_back(std::move(beside));
  RunAll(tenants);
  EXPECT_NEAR(tenants[1]->Number("p50"), 1934 + 182 + 1024, 250);
  EXPECT_NEAR(tenants[1]->Number("p99"), 1934 + 182 + 2048, 150);
  EXPECT_GT(tenants[0]->Share(), 0.75);
}

TEST_F(TenantsTest, WhoAsksForTooMuchIsToldAndGoesOn) {
  auto neighbour = Add("--seconds 0.2 --memory 1024");
  auto greedy = Add("--seconds 0.2 --memory 200000 --chunk 1024");
  greedy->Begin();
  greedy->Finish();
  EXPECT_GT(greedy->Number("memory_bytes"), 100e9);
  EXPECT_LT(greedy->Number("memory_bytes"), 143156.0 * (1 << 20));
  EXPECT_GT(greedy->Share(), 0.9);
  neighbour->Begin();
  neighbour->Finish();
  EXPECT_EQ(neighbour->Number("memory_bytes"), 1 << 30);
}

TEST_F(TenantsTest, NvmlShowsWhoHoldsWhatUntilTheyDie) {
  constexpr uint64_t kMiB = 1 << 20;
  auto tenant = Add("--memory 256");
  const auto held = [&] {
    uint64_t bytes = 0;
    for (const ProcessState& p : node_->state().gpus[0].processes)
      if (p.pid == static_cast<uint32_t>(tenant->pid())) bytes += p.used_bytes;
    return bytes;
  };
  const auto wait_for = [&](uint64_t bytes) {
    const MonotonicTime end = RealClock().Now() + std::chrono::seconds(20);
    while (held() != bytes && RealClock().Now() < end) sched_yield();
    return held();
  };
  EXPECT_EQ(wait_for((518 + 256) * kMiB), (518 + 256) * kMiB);
  kill(tenant->pid(), SIGKILL);
  EXPECT_EQ(wait_for(0), 0u);
}

TEST_F(TenantsTest, ADriverThatEndsIsAnErrorNotAHang) {
  auto tenant = Add("--seconds 1000");
  tenant->Begin();
  auto second = Add("--seconds 1000");
  driver_.reset();
  second->Begin();
  EXPECT_EQ(tenant->Wait(), 1);
  EXPECT_EQ(second->Wait(), 1);
}

// A tenant that is stopped while simulated time waits for it must not stop the
// others for good.
TEST_F(TenantsTest, AStoppedTenantHoldsNobodyUp) {
  auto stopped = Add("--kernel-us 2000 --kernels 1 --seconds 1000");
  stopped->Begin();
  auto other = Add("--seconds 0.5");
  kill(stopped->pid(), SIGSTOP);
  other->Begin();
  other->Finish();
  EXPECT_GT(other->Share(), 0.9);
}

}  // namespace
}  // namespace rondo::sim::driver
