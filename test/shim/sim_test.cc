// SPDX-License-Identifier: Apache-2.0
//
// librondo.so between real programs and the simulated driver, whose memory,
// slices and suspensions have consequences.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "rm/client.h"
#include "rm/gpu.h"
#include "sim/driver/test_node.h"
#include "sim/driver/test_system.h"
#include "sim/driver/test_tenant.h"
#include "test/shim/fake_agent.h"
#include "test/shim/tenant_process.h"

namespace rondo {
namespace {

using sim::driver::Tenant;
using sim::driver::Tenants;

constexpr double kMiB = 1 << 20;
constexpr double kContext = 518 * kMiB;  // what a context takes on an H200

class ShimSim : public sim::driver::NodeTest {
 protected:
  std::unique_ptr<FakeAgent> Agent(int slot, uint32_t slice_us = 0) {
    FakeAgent::Options options;
    options.policy.slice_us = slice_us;
    return std::make_unique<FakeAgent>(run_dir_.Socket(uuid_, slot), options);
  }
  std::unique_ptr<Tenant> Add(int slot, const std::string& options) {
    return std::make_unique<Tenant>(
        RONDO_TEST_SIM_TENANT, *node_, options, RONDO_TEST_LIBRONDO,
        std::vector<std::string>{
            "RONDO_RUN_DIR=" + run_dir_.path(),
            "RONDO_SLOTS=" + uuid_ + "::" + std::to_string(slot)});
  }

  sim::driver::SimulatedSystem system_;
  RunDir run_dir_;
};

TEST_F(ShimSim, AProgramSeesItsSlotAndGetsNoMore) {
  auto agent = Agent(0);
  auto tenant = Add(0, "--memory 20000 --chunk 64 --seconds 0.2");
  tenant->Begin();
  tenant->Finish();
  EXPECT_EQ(tenant->Number("total_bytes"), 8192 * kMiB);
  EXPECT_LE(tenant->Number("memory_bytes") + kContext, 8192 * kMiB);
  EXPECT_GT(tenant->Number("memory_bytes") + kContext, (8192 - 66) * kMiB);
  EXPECT_GT(tenant->Share(), 0.9) << "and carries on";
}

TEST_F(ShimSim, TheLedgerIsWhatTheDriverCharges) {
  auto agent = Agent(0);
  auto tenant = Add(0, "--memory 300 --chunk 2");
  auto client = rm::Client::Open(system_);
  ASSERT_TRUE(client.ok()) << client.status();
  const auto gpus = rm::ListGpus(**client);
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  const auto pid = static_cast<uint32_t>(tenant->pid());
  const auto bytes = rm::PidBytes(**client, (*gpus)[0], {pid});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->at(pid), (518ull + 300) << 20);
  EXPECT_TRUE(
      agent->Wait([&](const auto& s) { return s.Used() == bytes->at(pid); }));
  tenant->Kill();
  EXPECT_TRUE(agent->Wait([](const auto& s) { return s.Used() == 0; }));
}

TEST_F(ShimSim, SlicesMakeShares) {
  auto first = Agent(0, 9000), second = Agent(1, 3000);
  Tenants tenants;
  tenants.push_back(Add(0, "--kernel-us 1000 --seconds 2"));
  tenants.push_back(Add(1, "--kernel-us 1000 --seconds 2"));
  RunAll(tenants);
  EXPECT_NEAR(tenants[0]->Share() / tenants[1]->Share(), 3, 0.1);
  EXPECT_GT(tenants[0]->Share() + tenants[1]->Share(), 0.93);
}

TEST_F(ShimSim, AnAgentThatDiesLeavesNobodySuspended) {
  auto agent = Agent(0, /*slice_us=*/20);
  auto tenant = Add(0, "--seconds 0.5");
  ASSERT_TRUE(agent->Wait([](const auto& s) { return !s.channels.empty(); }));
  auto client = rm::Client::Open(system_);
  ASSERT_TRUE(client.ok()) << client.status();
  const auto gpus = rm::ListGpus(**client);
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  std::vector<rm::Channel> channels;
  for (const auto& [owner, handle] : agent->Get().channels) {
    channels.push_back({owner, handle});
  }
  ASSERT_TRUE(rm::SwitchChannels(**client, (*gpus)[0], true, channels).ok());
  tenant->Begin();
  agent.reset();
  tenant->Finish();  // would wait for ever
  EXPECT_GT(tenant->Share(), 0.5);
}

}  // namespace
}  // namespace rondo
