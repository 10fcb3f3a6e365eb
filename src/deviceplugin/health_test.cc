// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"

namespace rondo::deviceplugin {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

struct FilterCase {
  std::string name, disable, enable;
  std::vector<uint64_t> ignored, counted;
};

class Filter : public ::testing::TestWithParam<FilterCase> {};

TEST_P(Filter, Table) {
  const XidFilter filter(GetParam().disable, GetParam().enable);
  for (const uint64_t xid : GetParam().ignored)
    EXPECT_TRUE(filter.Ignores(xid)) << xid;
  for (const uint64_t xid : GetParam().counted)
    EXPECT_FALSE(filter.Ignores(xid)) << xid;
}

INSTANTIATE_TEST_SUITE_P(
    Table, Filter,
    ::testing::Values(
        FilterCase{"defaults",
                   "",
                   "",
                   {13, 31, 43, 45, 68, 109},
                   {48, 62, 63, 64, 74, 79, 94, 95, 119, 0}},
        FilterCase{"disable_number", "48", "", {48, 13}, {79}},
        FilterCase{"disable_list", " 48 , 79,", "", {48, 79}, {62}},
        FilterCase{"disable_all", "all", "", {48, 79, 13}, {}},
        FilterCase{"disable_xids_any_case", "XIDs", "", {48, 79, 13}, {}},
        FilterCase{"disable_junk", "4x8,-1", "", {13}, {48, 8}},
        FilterCase{"enable_number", "", "31", {13, 43}, {31, 48}},
        FilterCase{"enable_all", "", "all", {}, {13, 31, 48}},
        FilterCase{"enable_beats_disable", "48", "48", {13}, {48}},
        FilterCase{"D7_disable_all_but_one", "all", "48", {13, 79}, {48}},
        FilterCase{"enable_all_beats_disable_all", "all", "all", {}, {13, 48}}),
    [](const auto& row) { return row.param.name; });

TEST(Filter, SaysWhetherAnythingCanCount) {
  EXPECT_TRUE(XidFilter("all", "").IgnoresAll());
  EXPECT_FALSE(XidFilter("all", "48").IgnoresAll());
  EXPECT_FALSE(XidFilter("all", "all").IgnoresAll());
  EXPECT_FALSE(XidFilter("48", "").IgnoresAll());
  EXPECT_EQ(XidFilter("4x8", "junk").warnings().size(), 2u);
}

Device Gpu(const std::string& uuid, int replicas = 4) {
  Device device;
  device.uuid = device.gpu_uuid = uuid;
  device.replicas = replicas;
  return device;
}

Device MigOf(const std::string& gpu, int gi, int ci) {
  Device device = Gpu(gpu);
  device.uuid = "MIG-" + gpu + std::to_string(gi) + std::to_string(ci);
  device.mig = true;
  device.gpu_instance = gi;
  device.compute_instance = ci;
  return device;
}

nvml::XidEvent Xid(const std::string& uuid, uint64_t xid = 79) {
  nvml::XidEvent event;
  event.uuid = uuid;
  event.xid = xid;
  return event;
}

class HealthTest : public ::testing::Test {
 protected:
  HealthTest() : health_(XidFilter("", ""), Health::Options()) {
    health_.SetDevices({Gpu("A"), Gpu("B")}, seconds(0));
  }
  // "A B+": A only has to answer, B must be well.
  std::string Due(MonotonicTime now) {
    std::vector<std::string> due;
    for (const Health::Probe& probe : health_.DueProbes(now))
      due.push_back(probe.gpu_uuid + (probe.after_xid ? "+" : ""));
    return absl::StrJoin(due, " ");
  }
  bool Healthy(const std::string& uuid) {
    return health_.UnhealthyReason(uuid).empty();
  }
  Health health_;
};

TEST_F(HealthTest, D5OneXidConcernsTheWholeGpuAndNoOther) {
  EXPECT_TRUE(health_.OnXid(Xid("A"), seconds(1)));
  EXPECT_EQ(health_.UnhealthyReason("A"), "Xid 79");
  EXPECT_TRUE(Healthy("B"));
  EXPECT_EQ(health_.xid_events(), 1u);
}

TEST_F(HealthTest, ApplicationXidsAndStrangersAreNothing) {
  EXPECT_FALSE(health_.OnXid(Xid("A", 31), seconds(1)));
  EXPECT_FALSE(health_.OnXid(Xid("C"), seconds(1)));
  EXPECT_TRUE(Healthy("A"));
  EXPECT_EQ(health_.xid_events(), 0u);
}

TEST_F(HealthTest, AnEventWithoutAGpuConcernsAll) {
  EXPECT_TRUE(health_.OnXid(Xid(""), seconds(1)));
  EXPECT_FALSE(Healthy("A"));
  EXPECT_FALSE(Healthy("B"));
}

TEST_F(HealthTest, D6RecoversWhenItAnswersAndStaysQuiet) {
  health_.OnXid(Xid("A"), seconds(10));
  EXPECT_EQ(Due(seconds(14)), "");
  // Another one starts the hold-down anew.
  health_.OnXid(Xid("A"), seconds(14));
  EXPECT_EQ(Due(seconds(18)), "B");
  EXPECT_EQ(Due(seconds(19)), "A+");
  EXPECT_TRUE(health_.OnProbe("A", absl::OkStatus(), seconds(19)));
  EXPECT_TRUE(Healthy("A"));
  EXPECT_EQ(health_.recoveries(), 1u);
}

TEST_F(HealthTest, AnEarlyProbeDoesNotRecover) {
  health_.OnXid(Xid("A"), seconds(10));
  EXPECT_FALSE(health_.OnProbe("A", absl::OkStatus(), seconds(12)));
  EXPECT_FALSE(Healthy("A"));
  EXPECT_EQ(Due(seconds(15)), "A+ B");
}

TEST_F(HealthTest, NeedsResetStaysUnhealthyUntilItIsDone) {
  health_.OnXid(Xid("A", 48), seconds(0));
  const absl::Status reset = absl::FailedPreconditionError("needs a reset");
  for (int second = 5; second < 60; second += 5)
    health_.OnProbe("A", reset, seconds(second));
  EXPECT_FALSE(Healthy("A"));
  EXPECT_TRUE(health_.OnProbe("A", absl::OkStatus(), seconds(60)));
  EXPECT_TRUE(Healthy("A"));
}

TEST_F(HealthTest, RelapsesWaitLongerEachTime) {
  MonotonicTime now = seconds(100);
  std::vector<int64_t> waits;
  for (int round = 0; round < 8; ++round) {
    health_.OnXid(Xid("A"), now);
    const MonotonicTime start = now;
    while (!Healthy("A")) {
      now += seconds(1);
      health_.OnProbe("A", absl::OkStatus(), now);
    }
    waits.push_back((now - start) / seconds(1));
    now += seconds(1);
  }
  EXPECT_THAT(waits, ElementsAre(5, 10, 20, 40, 80, 160, 160, 160));
  // A long time without trouble forgives.
  now += std::chrono::hours(2);
  health_.OnXid(Xid("A"), now);
  health_.OnProbe("A", absl::OkStatus(), now + seconds(5));
  EXPECT_TRUE(Healthy("A"));
}

TEST_F(HealthTest, Issue1640ALostGpuIsFoundWithoutAnEvent) {
  EXPECT_EQ(Due(seconds(15)), "A B");
  EXPECT_TRUE(
      health_.OnProbe("A", absl::UnavailableError("lost"), seconds(15)));
  EXPECT_EQ(health_.UnhealthyReason("A"), "lost");
  EXPECT_FALSE(
      health_.OnProbe("A", absl::UnavailableError("lost"), seconds(20)));
  EXPECT_TRUE(health_.OnProbe("A", absl::OkStatus(), seconds(25)));
  EXPECT_TRUE(Healthy("A"));
}

TEST_F(HealthTest, AProbeThatTheDriverDoesNotKnowIsNoFault) {
  EXPECT_FALSE(
      health_.OnProbe("A", absl::UnimplementedError("x"), seconds(15)));
  EXPECT_TRUE(Healthy("A"));
}

TEST_F(HealthTest, D8WhatCannotBeWatchedIsNotTrusted) {
  EXPECT_TRUE(health_.OnRegister("A", absl::InternalError("no handle")));
  EXPECT_FALSE(health_.OnRegister("A", absl::InternalError("no handle")));
  EXPECT_EQ(health_.UnhealthyReason("A"), "cannot be watched: no handle");
  EXPECT_FALSE(health_.OnProbe("A", absl::OkStatus(), seconds(15)));
  EXPECT_FALSE(Healthy("A"));
  EXPECT_TRUE(health_.OnRegister("A", absl::OkStatus()));
  EXPECT_TRUE(Healthy("A"));
}

TEST_F(HealthTest, AfterAWaitErrorAllAreProbedAtOnce) {
  EXPECT_EQ(Due(seconds(1)), "");
  health_.ProbeAllNow();
  EXPECT_EQ(Due(seconds(1)), "A B");
}

TEST_F(HealthTest, FaultsSurviveANewDeviceList) {
  health_.OnXid(Xid("A"), seconds(1));
  health_.SetDevices({Gpu("A", 8), Gpu("C")}, seconds(2));
  EXPECT_FALSE(Healthy("A"));
  EXPECT_TRUE(Healthy("C"));
  EXPECT_FALSE(health_.OnXid(Xid("B"), seconds(3)));
}

TEST_F(HealthTest, MigEventsHitTheDeviceTheyName) {
  health_.SetDevices({MigOf("A", 1, 0), MigOf("A", 1, 1), MigOf("A", 2, 0)},
                     seconds(0));
  nvml::XidEvent event = Xid("A");
  event.gpu_instance = 1;
  event.compute_instance = 1;
  EXPECT_TRUE(health_.OnXid(event, seconds(1)));
  EXPECT_TRUE(Healthy("MIG-A10"));
  EXPECT_FALSE(Healthy("MIG-A11"));
  EXPECT_TRUE(Healthy("MIG-A20"));
  event.compute_instance.reset();
  EXPECT_TRUE(health_.OnXid(event, seconds(2)));
  EXPECT_FALSE(Healthy("MIG-A10"));
  EXPECT_TRUE(Healthy("MIG-A20"));
  event.gpu_instance = 9;
  EXPECT_FALSE(health_.OnXid(event, seconds(3)));
  EXPECT_TRUE(health_.OnXid(Xid("A"), seconds(4)));
  EXPECT_FALSE(Healthy("MIG-A20"));
}

}  // namespace
}  // namespace rondo::deviceplugin
