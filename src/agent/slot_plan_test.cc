// SPDX-License-Identifier: Apache-2.0
#include "agent/slot_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::agent {
namespace {

using share::TenantClass;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kGiB = 1 << 30;

TEST(MakeShareConfig, AutoDividesWhatIsUsableInWholeMebibytes) {
  const std::vector<deviceplugin::SlotGroup> groups = {
      {"GPU-a", 10 * kGiB, 3, {0, 1, 2}},
      {"GPU-b", std::nullopt, 2, {0, 1}},
      // No longer shared, but pods still hold two slots.
      {"GPU-c", 10 * kGiB, 0, {1, 5}}};
  config::RondoOptions options;
  options.memory = config::MemoryMode::kEnforce;
  options.on_agent_loss = config::OnAgentLoss::kOpen;
  options.managed = config::ManagedMode::kIgnore;
  options.turn = std::chrono::seconds(2);
  const share::ShareConfig config = MakeShareConfig(options, groups);
  EXPECT_EQ(config.turn, std::chrono::seconds(2));
  ASSERT_EQ(config.slots.size(), 7u);
  EXPECT_EQ(config.slots[2].id(), "GPU-a::2");
  EXPECT_EQ(config.slots[2].limit_bytes, 3413 * kMiB);
  EXPECT_EQ(config.slots[2].memory, config::MemoryMode::kEnforce);
  EXPECT_EQ(config.slots[2].on_agent_loss, config::OnAgentLoss::kOpen);
  EXPECT_FALSE(config.slots[2].count_managed);
  EXPECT_EQ(config.slots[3].limit_bytes, std::nullopt) << "not known";
  EXPECT_EQ(config.slots[6].id(), "GPU-c::5");
  EXPECT_EQ(config.slots[6].limit_bytes, 5 * kGiB);
  options.slot_memory_bytes = 2 * kGiB;
  options.managed = config::ManagedMode::kCount;
  for (const share::SlotSpec& slot : MakeShareConfig(options, groups).slots) {
    EXPECT_EQ(slot.limit_bytes, 2 * kGiB);
    EXPECT_TRUE(slot.count_managed);
  }
}

TEST(MakeShareConfig, NoSlotIsLargerThanItsDevice) {
  config::RondoOptions options;
  options.slot_memory_bytes = 12 * kGiB;
  const share::ShareConfig config =
      MakeShareConfig(options, {{"GPU-a", 10 * kGiB + 1, 2, {0, 1}},
                                {"GPU-b", 16 * kGiB, 2, {0}},
                                {"GPU-c", std::nullopt, 2, {0}}});
  EXPECT_EQ(config.slots[0].limit_bytes, 10 * kGiB);
  EXPECT_EQ(config.slots[2].limit_bytes, 12 * kGiB);
  EXPECT_EQ(config.slots[3].limit_bytes, 12 * kGiB) << "size not known";
}

TEST(CheckSlotMemory, SaysWhereTheSlotsNeedMoreThanTheDeviceHas) {
  const std::vector<deviceplugin::SlotGroup> groups = {
      {"GPU-a", 40 * kGiB, 4, {0, 1, 2, 3}},
      {"GPU-b", 16 * kGiB, 4, {0, 1, 2, 3}},
      {"GPU-c", std::nullopt, 4, {0}},
      // No longer shared: nothing is promised.
      {"GPU-d", 1 * kGiB, 0, {1}},
      {"GPU-e", 24 * kGiB, 2, {0, 1}}};
  config::RondoOptions options;
  options.slot_memory_line = 8;
  options.slot_memory_column = 15;
  EXPECT_TRUE(CheckSlotMemory(options, groups).ok()) << "auto";
  options.slot_memory_bytes = 4 * kGiB;
  EXPECT_TRUE(CheckSlotMemory(options, groups).ok()) << "fits exactly";
  options.slot_memory_bytes = 5 * kGiB;
  EXPECT_EQ(CheckSlotMemory(options, groups).message(),
            "line 8, column 15: `rondo.slotMemory`: 4 slots of 5Gi need more "
            "than the 16384 MiB of GPU-b (write auto, or at most 4096Mi, or "
            "lower replicas to 3): it can be full before a slot is");
  options.slot_memory_bytes = 30 * kGiB;
  EXPECT_EQ(CheckSlotMemory(options, groups).message(),
            "line 8, column 15: `rondo.slotMemory`: 4 slots of 30Gi need more "
            "than the 40960 MiB of GPU-a (write auto, or at most 10240Mi): it "
            "can be full before a slot is; the same holds for 2 more");
  options.memory = config::MemoryMode::kOff;
  EXPECT_TRUE(CheckSlotMemory(options, groups).ok()) << "limits nothing";
}

kube::DeviceHolder Holder(const std::string& pod,
                          std::vector<std::string> slots,
                          const std::string& container = "main") {
  return {.name_space = "ml",
          .pod = pod,
          .uid = "",
          .container = container,
          .resource = "nvidia.com/gpu",
          .device_ids = std::move(slots)};
}

kube::Pod Pod(const std::string& name,
              std::map<std::string, std::string> annotations,
              const std::string& uid = "u", int64_t created = 1) {
  return {.name_space = "ml",
          .name = name,
          .uid = uid,
          .created_unix_seconds = created,
          .ended = false,
          .annotations = std::move(annotations)};
}

// Slots 0 and 1 of two GPUs; of the second one, the memory is not known.
class PlanSlotsTest : public testing::Test {
 protected:
  PlanSlotsTest() {
    for (const char* gpu : {"GPU-a", "GPU-b"})
      for (const int replica : {0, 1})
        defaults_.slots.push_back(
            {.gpu_uuid = gpu, .replica = replica, .limit_bytes = 4 * kGiB});
  }
  SlotPlan Plan() const {
    return PlanSlots(defaults_, {{"GPU-a", 16 * kGiB}}, book_);
  }

  share::ShareConfig defaults_;
  PodBook book_;
};

TEST_F(PlanSlotsTest, SettingsGoToEverySlotOfThePodAndNoOther) {
  book_.SetHolders(
      {Holder("a", {"GPU-a::0"}, "one"), Holder("a", {"GPU-b::1"}, "two"),
       Holder("b", {"GPU-a::1", "not-ours::7"})},
      {}, 0);
  book_.SetPods({Pod("a",
                     {{"rondo/weight", "3"},
                      {"rondo/class", "batch"},
                      {"rondo/limit", "0.5"},
                      {"rondo/memory", "8Gi"}},
                     "ua"),
                 Pod("b", {}, "ub")});
  const SlotPlan plan = Plan();
  EXPECT_THAT(plan.problems, IsEmpty());
  for (const size_t i : {0, 3}) {
    EXPECT_EQ(plan.config.slots[i].tenant,
              (share::TenantSpec{TenantClass::kBatch, 3, 0.5}));
    EXPECT_EQ(plan.config.slots[i].limit_bytes, 8 * kGiB);
  }
  for (const size_t i : {1, 2}) {
    EXPECT_EQ(plan.config.slots[i].tenant, share::TenantSpec());
    EXPECT_EQ(plan.config.slots[i].limit_bytes, 4 * kGiB);
  }
  ASSERT_THAT(plan.owners, SizeIs(3));
  EXPECT_EQ(plan.owners.at("GPU-b::1").container, "two");
  EXPECT_EQ(plan.owners.at("GPU-b::1").uid, "ua");
  EXPECT_EQ(plan.owners.at("GPU-a::1").name, "b");
}

TEST_F(PlanSlotsTest, MoreMemoryThanTheGpuHasIsAProblemThere) {
  book_.SetHolders({Holder("a", {"GPU-a::0", "GPU-a::1", "GPU-b::0"})}, {}, 0);
  book_.SetPods({Pod("a", {{"rondo/memory", "17Gi"}})});
  const SlotPlan plan = Plan();
  ASSERT_THAT(plan.problems, SizeIs(1)) << "told once, not for each slot";
  EXPECT_EQ(plan.problems[0].annotation.value, "17Gi");
  EXPECT_THAT(plan.problems[0].annotation.message,
              testing::HasSubstr("write at most 16384Mi"));
  EXPECT_EQ(plan.config.slots[0].limit_bytes, 4 * kGiB);
  EXPECT_EQ(plan.config.slots[2].limit_bytes, 17 * kGiB) << "size not known";
}

TEST_F(PlanSlotsTest, AnUnknownPodHasTheDefaults) {
  book_.SetHolders({Holder("a", {"GPU-a::0"})}, {}, 0);
  book_.SetPods({Pod("b", {{"rondo/weight", "3"}})});
  const SlotPlan plan = Plan();
  EXPECT_EQ(plan.config.slots[0].tenant, share::TenantSpec());
  EXPECT_EQ(plan.owners.at("GPU-a::0").name, "a");
  EXPECT_EQ(plan.owners.at("GPU-a::0").uid, "");
}

TEST_F(PlanSlotsTest, OfTwoPodsOfANameTheNewestCounts) {
  book_.SetHolders({Holder("a", {"GPU-a::0"})}, {}, 0);
  book_.SetPods({Pod("a", {{"rondo/weight", "3"}}, "new", 9),
                 Pod("a", {{"rondo/weight", "2"}}, "old", 5)});
  EXPECT_EQ(Plan().config.slots[0].tenant.weight, 3);
}

TEST_F(PlanSlotsTest, ASlotThatTwoPodsSeemToHoldIsNobodys) {
  book_.SetHolders({Holder("a", {"GPU-a::0"}), Holder("b", {"GPU-a::0"})}, {},
                   0);
  book_.SetPods({Pod("a", {{"rondo/weight", "3"}}, "ua"),
                 Pod("b", {{"rondo/weight", "2"}}, "ub")});
  const SlotPlan plan = Plan();
  EXPECT_EQ(plan.config.slots[0].tenant.weight, 1);
  EXPECT_THAT(plan.owners, IsEmpty());
}

TEST_F(PlanSlotsTest, AnAllocationEndsTheOldSettingsWhateverOlderReportsSay) {
  const std::vector<kube::DeviceHolder> before = {
      Holder("a", {"GPU-a::0", "GPU-a::1"})};
  book_.SetPods({Pod("a", {{"rondo/weight", "3"}}, "ua"),
                 Pod("b", {{"rondo/weight", "2"}}, "ub")});
  book_.SetHolders(before, {}, 4);
  ASSERT_EQ(Plan().config.slots[0].tenant.weight, 3);
  book_.OnAllocated({"GPU-a::0"}, 5);
  EXPECT_EQ(Plan().config.slots[0].tenant.weight, 1);
  EXPECT_EQ(Plan().config.slots[1].tenant.weight, 3) << "not handed out";
  book_.SetHolders(before, {}, 4);  // was on its way
  EXPECT_EQ(Plan().config.slots[0].tenant.weight, 1);
  book_.SetHolders({Holder("b", {"GPU-a::0"})}, {}, 5);
  EXPECT_EQ(Plan().config.slots[0].tenant.weight, 2);
  EXPECT_EQ(Plan().config.slots[1].tenant.weight, 1) << "given back";
}

TEST(ToldProblems, AreToldOnceAndNotForEver) {
  ToldProblems told;
  PodProblem problem{.uid = "u", .annotation = {.key = "k", .value = "v"}};
  EXPECT_TRUE(told.Add(problem));
  EXPECT_FALSE(told.Add(problem));
  int count = 1;
  for (int i = 0; i < 1000; ++i) {
    problem.annotation.value = std::to_string(i);
    count += told.Add(problem);
  }
  EXPECT_EQ(count, 64);
  problem.uid = "other";
  EXPECT_TRUE(told.Add(problem)) << "another pod's are told";
  told.KeepOnly({"u"});
  EXPECT_TRUE(told.Add(problem));
}

kube::DeviceHolder Recorded(const std::string& uid,
                            const std::string& container,
                            std::vector<std::string> slots) {
  return {.name_space = "",
          .pod = "",
          .uid = uid,
          .container = container,
          .resource = "nvidia.com/gpu",
          .device_ids = std::move(slots)};
}

// kubelet lists containers and sidecars (init containers that restart); other
// init containers stand in its record only. Ephemeral containers can have no
// devices.
TEST_F(PlanSlotsTest, EveryKindOfContainerHasItsPodsSettings) {
  book_.SetPods({Pod("a", {{"rondo/weight", "3"}}, "ua"),
                 Pod("b", {{"rondo/weight", "2"}}, "ub")});
  const struct {
    const char* what;
    std::vector<kube::DeviceHolder> listed, recorded;
    std::vector<double> weights;  // of the four slots
    const char* container;        // of the first
  } kRows[] = {
      {"an init container alone",
       {},
       {Recorded("ua", "init", {"GPU-a::0"})},
       {3, 1, 1, 1},
       "init"},
      {"two init containers, one after the other on one slot",
       {},
       {Recorded("ua", "init-1", {"GPU-a::0"}),
        Recorded("ua", "init-2", {"GPU-a::0", "GPU-a::1"})},
       {3, 3, 1, 1},
       "init-2"},
      {"an init container whose slot the main one takes over",
       {Holder("a", {"GPU-a::0"})},
       {Recorded("ua", "init", {"GPU-a::0", "GPU-b::0"}),
        Recorded("ua", "main", {"GPU-a::0"})},
       {3, 1, 3, 1},
       "main"},
      {"a sidecar beside a main container of the same pod",
       {Holder("a", {"GPU-a::0"}, "sidecar"), Holder("a", {"GPU-b::1"})},
       {Recorded("ua", "sidecar", {"GPU-a::0"}),
        Recorded("ua", "main", {"GPU-b::1"})},
       {3, 1, 1, 3},
       "sidecar"},
      {"what kubelet lists is newer than its record",
       {Holder("a", {"GPU-a::0"})},
       {Recorded("ub", "init", {"GPU-a::0"})},
       {3, 1, 1, 1},
       "main"},
      {"two pods in the record: nobody's",
       {},
       {Recorded("ua", "init", {"GPU-a::0"}),
        Recorded("ub", "init", {"GPU-a::0"})},
       {1, 1, 1, 1},
       nullptr},
      {"a pod that is not known",
       {},
       {Recorded("uz", "init", {"GPU-a::0"})},
       {1, 1, 1, 1},
       nullptr}};
  for (const auto& row : kRows) {
    book_.SetHolders(row.listed, row.recorded, 0);
    const SlotPlan plan = Plan();
    for (size_t i = 0; i < 4; ++i)
      EXPECT_EQ(plan.config.slots[i].tenant.weight, row.weights[i])
          << row.what << ", slot " << i;
    ASSERT_EQ(plan.owners.contains("GPU-a::0"), row.container != nullptr)
        << row.what;
    if (row.container == nullptr) continue;
    const metrics::SlotPod& owner = plan.owners.at("GPU-a::0");
    EXPECT_EQ(owner.container, row.container) << row.what;
    EXPECT_EQ(owner.name, "a") << row.what;
    EXPECT_EQ(owner.name_space, "ml") << row.what;
    EXPECT_EQ(owner.uid, "ua") << row.what;
  }
}

TEST_F(PlanSlotsTest, ARecordOlderThanTheAllocationIsNotBelieved) {
  book_.SetPods({Pod("a", {{"rondo/weight", "3"}}, "ua"),
                 Pod("b", {{"rondo/weight", "2"}}, "ub")});
  const kube::DeviceHolder before = Recorded("ua", "init", {"GPU-a::0"});
  book_.SetHolders({}, {before}, 4);
  ASSERT_EQ(Plan().config.slots[0].tenant.weight, 3);
  book_.OnAllocated({"GPU-a::0"}, 5);
  EXPECT_EQ(Plan().config.slots[0].tenant.weight, 1);
  // Read after the Allocate, but not yet written again.
  book_.SetHolders({}, {before}, 5);
  EXPECT_EQ(Plan().config.slots[0].tenant.weight, 1);
  book_.SetHolders({}, {before, Recorded("ub", "init", {"GPU-a::0"})}, 5);
  EXPECT_EQ(Plan().config.slots[0].tenant.weight, 2);
  book_.SetHolders({}, {Recorded("ub", "init", {"GPU-a::0"})}, 5);
  EXPECT_EQ(Plan().config.slots[0].tenant.weight, 2);
  // It may come back to who had it.
  book_.OnAllocated({"GPU-a::0"}, 6);
  book_.SetHolders({}, {before}, 6);
  EXPECT_EQ(Plan().config.slots[0].tenant.weight, 3);
}

}  // namespace
}  // namespace rondo::agent
