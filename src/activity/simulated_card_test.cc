// SPDX-License-Identifier: Apache-2.0
//
// The reader and the RM client, unchanged, on the simulated driver under
// programs that compete for its card.
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <memory>

#include "activity/reader.h"
#include "base/clock.h"
#include "gtest/gtest.h"
#include "rm/client.h"
#include "rm/gpu.h"
#include "sim/driver/test_node.h"
#include "sim/driver/test_system.h"
#include "sim/driver/test_tenant.h"

namespace rondo::activity {
namespace {

using sim::driver::Tenant;
using sim::driver::Tenants;

class SimulatedCardTest : public sim::driver::NodeTest {
 protected:
  SimulatedCardTest() : NodeTest("2xH200") {}

  std::unique_ptr<Tenant> Add(const std::string& options) {
    return std::make_unique<Tenant>(TENANT, *node_, options);
  }

  sim::driver::SimulatedSystem system_;
};

TEST_F(SimulatedCardTest, TheClientFindsTheCardsAndTheirUsers) {
  auto client = rm::Client::Open(system_);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->driver_version(), "580.159.04");
  const auto gpus = rm::ListGpus(**client);
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  ASSERT_EQ(gpus->size(), 2u);
  EXPECT_EQ((*gpus)[1].uuid, *node_->Uuid(1));
  const auto tenant = Add("--memory 100 --device 1");
  const auto pid = static_cast<uint32_t>(tenant->pid());
  const auto bytes = rm::PidBytes(**client, (*gpus)[1], {pid, 1});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->at(pid), (518ull + 100) << 20);
  EXPECT_EQ(bytes->at(1), 0u);
}

TEST_F(SimulatedCardTest, TheReaderTellsWhoRan) {
  if (geteuid() != 0) GTEST_SKIP() << "foreign records need root";
  Reader reader(system_, {.interval = std::chrono::milliseconds(20)},
                [](const std::string&, const Report&) {});
  // A stay that began before the log was opened is set aside as odd.
  const MonotonicTime end = RealClock().Now() + std::chrono::seconds(20);
  while (!reader.Snapshot().gpus[uuid_].ready && RealClock().Now() < end)
    sched_yield();
  Tenants tenants;
  tenants.push_back(Add("--seconds 1"));
  tenants.push_back(Add("--seconds 1"));
  sim::driver::RunAll(tenants);
  const GpuAccount account = reader.Snapshot().gpus[uuid_];
  EXPECT_TRUE(account.ready) << account.problem;
  EXPECT_EQ(account.drops, 0u);
  EXPECT_EQ(account.odd_records, 0u);
  ASSERT_EQ(account.processes.size(), 2u);
  double sum = 0, shares = 0;
  for (const auto& [pid, time] : account.processes) sum += time.busy_ns / 1e9;
  for (const auto& t : tenants) shares += t->Share();
  // By turns. Their times differ by more: while nobody works, the log shows the
  // last who did.
  const double first = account.processes.begin()->second.stays;
  const double second = account.processes.rbegin()->second.stays;
  EXPECT_GT(first, 200);
  EXPECT_NEAR(first / second, 1, 0.05);
  // Kernels are what is left of it after refills and launch gaps.
  EXPECT_GT(sum, shares);
}

}  // namespace
}  // namespace rondo::activity
