// SPDX-License-Identifier: Apache-2.0
//
// From an Xid to kubelet's allocatable, and back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "deviceplugin/test_plugin.h"

namespace rondo::deviceplugin {
namespace {

const std::string kGpu = "nvidia.com/gpu";

class HealthWatcherTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(node_.kubelet.Start().ok()); }
  void Share(int gpus, int replicas) {
    ASSERT_TRUE(node_.Apply(SharedPlan(replicas), TestGpus(gpus)).ok());
    ASSERT_TRUE(node_.kubelet.WaitForAllocatable(kGpu, gpus * replicas));
  }
  bool Allocatable(int count) {
    return node_.kubelet.WaitForAllocatable(kGpu, count);
  }
  TestPlugin node_;
  nvml::FakeBackend& backend_ = node_.backend;
};

TEST_F(HealthWatcherTest, Issue1929AllReplicasGoAndComeBack) {
  Share(2, 4);
  backend_.SetProbe(GpuUuid(1), absl::FailedPreconditionError("needs reset"));
  backend_.SendXid(GpuUuid(1), 48);
  ASSERT_TRUE(Allocatable(4));
  EXPECT_EQ(node_.kubelet.Counts(kGpu).capacity, 8);
  for (const std::string& id : node_.kubelet.Ids(kGpu, /*healthy=*/false))
    EXPECT_EQ(ParseDeviceId(id)->uuid, GpuUuid(1));
  EXPECT_FALSE(node_.Stats(kGpu).devices[1].healthy);
  EXPECT_EQ(node_.Stats(kGpu).devices[1].unhealthy_reason, "Xid 48");

  backend_.SetProbe(GpuUuid(1), absl::OkStatus());
  ASSERT_TRUE(Allocatable(8));
  EXPECT_EQ(node_.kubelet.Counts(kGpu).registrations, 1);
  const Stats stats = node_.manager().Snapshot();
  EXPECT_EQ(stats.xid_events, 1u);
  EXPECT_EQ(stats.recoveries, 1u);
}

TEST_F(HealthWatcherTest, IgnoredXidsSendNoList) {
  Share(1, 4);
  const uint64_t lists = node_.Stats(kGpu).lists_sent;
  backend_.SendXid(GpuUuid(0), 31);
  // Events are taken in order: when the second one shows, the first is past.
  backend_.SendXid(GpuUuid(0), 79);
  ASSERT_TRUE(Allocatable(0));
  EXPECT_EQ(node_.Stats(kGpu).lists_sent, lists + 1);
  EXPECT_EQ(node_.manager().Snapshot().xid_events, 1u);
}

TEST_F(HealthWatcherTest, DisabledChecksNeverAskTheDriver) {
  node_.options.disable_health_checks = "all";
  Share(1, 4);
  node_.StopManager();
  EXPECT_EQ(backend_.waits(), 0);
}

TEST_F(HealthWatcherTest, Issue1640NvmlFailingMarksOnlyWhatDoesNotAnswer) {
  Share(2, 4);
  backend_.SetProbe(GpuUuid(0), absl::UnavailableError("GPU is lost"));
  backend_.SetWait(absl::InternalError("event set is gone"));
  ASSERT_TRUE(Allocatable(4));
  backend_.SetProbe(GpuUuid(1), absl::UnavailableError("GPU is lost"));
  ASSERT_TRUE(Allocatable(0));
  // No busy loop: the pause grows.
  EXPECT_LT(backend_.waits(), 100);
  backend_.SetProbe(GpuUuid(0), absl::OkStatus());
  backend_.SetProbe(GpuUuid(1), absl::OkStatus());
  backend_.SetWait(absl::OkStatus());
  ASSERT_TRUE(Allocatable(8));
  EXPECT_GT(node_.manager().Snapshot().nvml_wait_errors, 0u);
  // Events come again: the GPUs were registered anew.
  ASSERT_TRUE(backend_.WaitForRegistrations(GpuUuid(0), 2));
  backend_.SetProbe(GpuUuid(0), absl::FailedPreconditionError("reset"));
  backend_.SendXid(GpuUuid(0), 79);
  EXPECT_TRUE(Allocatable(4));
}

TEST_F(HealthWatcherTest, D8AGpuThatCannotBeWatchedIsUnhealthyUntilItCan) {
  backend_.SetRegister(GpuUuid(0), absl::InternalError("no handle"));
  ASSERT_TRUE(node_.Apply(SharedPlan(4), TestGpus(2)).ok());
  ASSERT_TRUE(Allocatable(4));
  backend_.SetRegister(GpuUuid(0), absl::OkStatus());
  EXPECT_TRUE(Allocatable(8));
}

TEST_F(HealthWatcherTest, AGpuWithoutXidEventsIsHealthyButProbed) {
  backend_.SetRegister(GpuUuid(0), absl::UnimplementedError("no events"));
  Share(1, 4);
  backend_.SetProbe(GpuUuid(0), absl::UnavailableError("GPU is lost"));
  ASSERT_TRUE(Allocatable(0));
  backend_.SetProbe(GpuUuid(0), absl::OkStatus());
  EXPECT_TRUE(Allocatable(4));
}

TEST_F(HealthWatcherTest, AWishForAResetWithoutAnXidIsNoFault) {
  backend_.SetProbe(GpuUuid(0), absl::FailedPreconditionError("remap pending"));
  Share(2, 4);
  // When the other GPU's loss shows, the first one has been asked as well.
  backend_.SetProbe(GpuUuid(1), absl::UnavailableError("GPU is lost"));
  ASSERT_TRUE(Allocatable(4));
  EXPECT_TRUE(node_.Stats(kGpu).devices[0].healthy);
}

TEST_F(HealthWatcherTest, AFaultSurvivesAConfigChange) {
  Share(1, 4);
  backend_.SetProbe(GpuUuid(0), absl::FailedPreconditionError("reset"));
  backend_.SendXid(GpuUuid(0), 79);
  ASSERT_TRUE(Allocatable(0));
  ASSERT_TRUE(node_.Apply(SharedPlan(6), TestGpus(1)).ok());
  ASSERT_TRUE(node_.kubelet.WaitFor(
      kGpu, [](const demo::ResourceCounts& c) { return c.capacity == 6; }));
  EXPECT_EQ(node_.kubelet.Counts(kGpu).allocatable, 0);
}

}  // namespace
}  // namespace rondo::deviceplugin
