// SPDX-License-Identifier: Apache-2.0

#include "config/node.h"

#include "absl/strings/str_cat.h"
#include "config/compile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::config {
namespace {

using testing::HasSubstr;

Plan PlanOf(const std::string& text) {
  const CompileResult result = Compile(text);
  EXPECT_TRUE(result.ok()) << ToStatus(result.problems);
  return result.plan.value_or(Plan());
}

Plan Shared(const std::string& entries, const std::string& more = "") {
  return PlanOf(absl::StrCat("sharing: {timeSlicing: {resources: [", entries,
                             "]}}\n", more));
}

std::string Text(const std::vector<Advertised>& list) {
  std::string out;
  for (const Advertised& advertised : list) {
    absl::StrAppend(&out, advertised.resource, "=", advertised.devices, " ");
  }
  return out;
}

DeviceGroups Gpus(int count, uint64_t mib = 0) {
  return {{"nvidia.com/gpu", {count, mib << 20}}};
}

TEST(AdvertiseTest, DevicesTimesReplicas) {
  EXPECT_EQ(Text(Advertise(Plan(), Gpus(4))), "nvidia.com/gpu=4 ");
  EXPECT_EQ(Text(Advertise(Shared("{name: gpu, replicas: 4}"), Gpus(4))),
            "nvidia.com/gpu=16 ");
  EXPECT_EQ(
      Text(Advertise(Shared("{name: gpu, rename: x, replicas: 4}"), Gpus(2))),
      "nvidia.com/x=8 ");
}

TEST(AdvertiseTest, DevicesNotSelectedStayUnshared) {
  EXPECT_EQ(Text(Advertise(Shared("{name: gpu, devices: [0], rename: gpu.s, "
                                  "replicas: 4}"),
                           Gpus(4))),
            "nvidia.com/gpu=3 nvidia.com/gpu.s=4 ");
  EXPECT_EQ(
      Text(Advertise(Shared("{name: gpu, devices: 2, replicas: 4}"), Gpus(4))),
      "nvidia.com/gpu=10 ");
  // Two counts on two GPUs (#404), by index and by UUID.
  EXPECT_EQ(
      Text(Advertise(
          Shared(
              "{name: gpu, devices: [0], replicas: 4}, {name: gpu, devices: "
              "[\"GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c\"], replicas: 2}"),
          Gpus(2))),
      "nvidia.com/gpu=6 ");
}

TEST(AdvertiseTest, TheSameResourceTwiceGivesTheLargerNumber) {
  EXPECT_EQ(Text(Advertise(Shared("{name: gpu, replicas: 8}, {name: gpu, "
                                  "replicas: 2}"),
                           Gpus(1))),
            "nvidia.com/gpu=8 ");
}

TEST(AdvertiseTest, MigResources) {
  const Plan plan =
      Shared("{name: mig-1g.10gb, replicas: 2}", "flags: {migStrategy: mixed}");
  const DeviceGroups groups = {{"nvidia.com/gpu", {1, 0}},
                               {"nvidia.com/mig-1g.10gb", {7, 0}}};
  EXPECT_EQ(Text(Advertise(plan, groups)),
            "nvidia.com/gpu=1 nvidia.com/mig-1g.10gb=14 ");
  EXPECT_EQ(Text(Advertise(plan, SmallestNode(plan))),
            "nvidia.com/mig-1g.10gb=2 ");
}

TEST(SmallestNodeTest, HoldsTheDevicesThatAreNamed) {
  EXPECT_EQ(SmallestNode(Plan()).at("nvidia.com/gpu").count, 1);
  EXPECT_EQ(SmallestNode(Shared("{name: gpu, devices: [0, 3], replicas: 2}"))
                .at("nvidia.com/gpu")
                .count,
            4);
  EXPECT_EQ(SmallestNode(Shared("{name: gpu, devices: 3, replicas: 2}"))
                .at("nvidia.com/gpu")
                .count,
            3);
}

TEST(CheckOnNodeTest, FindsWhatDoesNotSuitTheNode) {
  const struct {
    const char* entries;
    const char* more;
    DeviceGroups groups;
    const char* problem;  // empty = none
    int line = 1;
  } kRows[] = {
      {"{name: gpu, replicas: 4}", "", Gpus(4, 81920), ""},
      {"{name: gpu, replicas: 8}", "", Gpus(1, 15360),
       "has 1920 MiB: under 2 GiB few programs run (at most 7 replicas"},
      {"{name: gpu, replicas: 8}", "", Gpus(1), ""},
      {"{name: gpu, replicas: 4}", "rondo: {slotMemory: 1Gi}", Gpus(1, 81920),
       "under 2 GiB"},
      {"{name: gpu, replicas: 4}", "rondo: {slotMemory: 24Gi}", Gpus(1, 81920),
       "line 2, column 21: `rondo.slotMemory`: 4 slots of 24Gi need more than "
       "the 81920 MiB of a device (write auto, or at most 20480Mi, or lower "
       "replicas to 3)",
       2},
      {"{name: gpu, replicas: 4}", "rondo: {slotMemory: 100Gi}", Gpus(1, 81920),
       "line 2, column 21: `rondo.slotMemory`: 100Gi is more than the 81920 "
       "MiB of a device (write auto, or at most 20480Mi)",
       2},
      {"{name: gpu, replicas: 4}", "rondo: {slotMemory: 20Gi}", Gpus(1, 81920),
       ""},
      // 4 x 4 EiB would wrap round to 0.
      {"{name: gpu, replicas: 4}", "rondo: {slotMemory: 4Ei}", Gpus(1, 81920),
       "4Ei is more than", 2},
      {"{name: gpu, devices: 5, replicas: 2}", "", Gpus(4), "`devices: 5`"},
      {"{name: gpu, devices: [4], replicas: 2}", "", Gpus(4), "no device 4"},
      {"{name: gpu, replicas: 10000}", "", Gpus(8), "at most 7"},
      {"{name: mig-1g.5gb, replicas: 2}", "flags: {migStrategy: mixed}",
       Gpus(1), "the node has no nvidia.com/mig-1g.5gb"},
  };
  for (const auto& row : kRows) {
    const std::vector<Problem> problems =
        CheckOnNode(Shared(row.entries, row.more), row.groups);
    if (*row.problem == '\0') {
      EXPECT_TRUE(problems.empty()) << row.entries;
      continue;
    }
    ASSERT_EQ(problems.size(), 1u) << row.entries;
    EXPECT_THAT(Describe(problems[0]), HasSubstr(row.problem));
    EXPECT_EQ(problems[0].line, row.line);
  }
}

TEST(CompareForPodsTest, SaysWhatHappensToPods) {
  const Plan four = Shared("{name: gpu, replicas: 4}");
  EXPECT_TRUE(CompareForPods(four, four).empty());
  const struct {
    Plan to;
    const char* what;
    const char* effect;
  } kRows[] = {
      {Shared("{name: gpu, replicas: 6}"),
       "nvidia.com/gpu: 4 -> 6 replicas of each device",
       "running pods stay; 2 more pods fit on each device"},
      {Shared("{name: gpu, replicas: 2}"),
       "nvidia.com/gpu: 4 -> 2 replicas of each device",
       "running pods stay; a device with more than 2 pods takes no new one"},
      {Shared("{name: gpu, replicas: 5}, {name: mig-1g.5gb, replicas: 2}"),
       "nvidia.com/gpu: 4 -> 5 replicas of each device",
       "running pods stay; 1 more pod fits on each device"},
      {Plan(), "nvidia.com/gpu: 4 -> 1 (not shared) of each device",
       "running pods stay; a device with more than 1 pod takes no new one"},
      {Shared("{name: gpu, rename: gpu.x, replicas: 4}"),
       "nvidia.com/gpu is advertised as nvidia.com/gpu.x",
       "those that ask for nvidia.com/gpu stay Pending"},
      {Shared("{name: gpu, replicas: 4}", "rondo: {turn: 1s, injection: none}"),
       "rondo.turn: 500ms -> 1s", "at once"},
      {Shared("{name: gpu, replicas: 4}",
              "flags: {plugin: {deviceIDStrategy: index}}"),
       "deviceIDStrategy: uuid -> index", "for containers started from now on"},
  };
  for (const auto& row : kRows) {
    const std::vector<Change> changes = CompareForPods(four, row.to);
    ASSERT_EQ(changes.size(), 1u) << row.what;
    EXPECT_EQ(changes[0].what, row.what);
    EXPECT_THAT(changes[0].effect, HasSubstr(row.effect));
  }
}

}  // namespace
}  // namespace rondo::config
