// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "deviceplugin/test_plugin.h"

namespace rondo::deviceplugin {
namespace {

using demo::Admission;
using demo::ResourceCounts;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

const std::string kGpu = "nvidia.com/gpu";
const std::string kShared = "nvidia.com/gpu.shared";

class ManagerTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(node_.kubelet.Start().ok()); }
  demo::StandInKubelet& kubelet() { return node_.kubelet; }
  Admission Admit(const std::string& pod, int count = 1,
                  const std::string& resource = kGpu) {
    return node_.kubelet.Admit(pod, {{{resource, count}}});
  }
  TestPlugin node_;
};

TEST_F(ManagerTest, OneGpuBecomesFour) {
  ASSERT_TRUE(node_.Apply(SharedPlan(4), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
  std::set<std::string> ids;
  for (const char* pod : {"a", "b", "c", "d"}) {
    const Admission admission = Admit(pod);
    ASSERT_EQ(admission.phase, Admission::Phase::kRunning) << admission.message;
    ASSERT_THAT(admission.grants, SizeIs(1));
    EXPECT_EQ(admission.grants[0].envs.at("NVIDIA_VISIBLE_DEVICES"),
              GpuUuid(0));
    ids.insert(admission.grants[0].device_ids[0]);
  }
  EXPECT_THAT(ids, SizeIs(4));
  const Admission fifth = Admit("e");
  EXPECT_EQ(fifth.phase, Admission::Phase::kPending);
  EXPECT_EQ(fifth.message,
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.");
  const ResourceStats stats = node_.Stats(kGpu);
  EXPECT_EQ(stats.devices_allocated, 4u);
  EXPECT_EQ(stats.allocate.durations.count, 4u);
  EXPECT_EQ(stats.allocate.errors, 0u);
  EXPECT_TRUE(stats.registered);
  EXPECT_TRUE(stats.watched);
  EXPECT_TRUE(node_.manager().Ready());
}

TEST_F(ManagerTest, FailRequestsGreaterThanOne) {
  config::Plan plan = SharedPlan(4);
  plan.sharing.fail_requests_greater_than_one = true;
  ASSERT_TRUE(node_.Apply(plan, TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
  const Admission admission = Admit("greedy", 2);
  EXPECT_EQ(admission.phase, Admission::Phase::kFailed);
  EXPECT_EQ(admission.reason, "UnexpectedAdmissionError");
  EXPECT_EQ(admission.message,
            "Allocate failed due to rpc error: code = Unknown desc = invalid "
            "allocation request for \"nvidia.com/gpu\": invalid request: "
            "maximum request size for shared resources is 1; found 2, which is "
            "unexpected");
  // Two containers with one each pass.
  EXPECT_EQ(node_.kubelet.Admit("pair", {{{kGpu, 1}}, {{kGpu, 1}}}).phase,
            Admission::Phase::kRunning);
  EXPECT_EQ(node_.Stats(kGpu).allocate.errors, 1u);
}

TEST_F(ManagerTest, AnEditSendsANewListAndKeepsTheRegistration) {
  ASSERT_TRUE(node_.Apply(SharedPlan(4), TestGpus(2)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 8));
  ASSERT_TRUE(node_.Apply(SharedPlan(6), TestGpus(2)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 12));
  EXPECT_EQ(kubelet().Counts(kGpu).registrations, 1);
  EXPECT_EQ(kubelet().Counts(kGpu).lists, 2);
  // Nothing that kubelet sees has changed: no list.
  config::Plan plan = SharedPlan(6);
  plan.flags.pass_device_specs = true;
  ASSERT_TRUE(node_.Apply(plan, TestGpus(2)).ok());
  EXPECT_EQ(node_.Stats(kGpu).lists_sent, 2u);
  // But answers follow.
  EXPECT_THAT(Admit("p").grants[0].device_paths,
              ElementsAre(StartsWith("/dev/nvidia")));
}

TEST_F(ManagerTest, APlanThatContradictsTheNodeChangesNothing) {
  ASSERT_TRUE(node_.Apply(SharedPlan(4), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
  config::Plan bad = SharedPlan(8);
  bad.sharing.resources[0].devices.kind = config::DeviceSelector::Kind::kCount;
  bad.sharing.resources[0].devices.count = 5;
  EXPECT_EQ(node_.Apply(bad, TestGpus(1)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(kubelet().Counts(kGpu).allocatable, 4);
  EXPECT_EQ(Admit("p").phase, Admission::Phase::kRunning);
}

TEST_F(ManagerTest, D13AListBeyondKubeletsMessageIsRefusedWithANumber) {
  const absl::Status status = node_.Apply(SharedPlan(100000), TestGpus(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("kubelet takes at most"));
  ASSERT_TRUE(node_.Apply(SharedPlan(16384), TestGpus(1)).ok());
  EXPECT_TRUE(kubelet().WaitForAllocatable(kGpu, 16384));
}

TEST_F(ManagerTest, HeldDevicesSurviveAReductionUntilThePodsEnd) {
  ASSERT_TRUE(node_.Apply(SharedPlan(4), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
  for (const char* pod : {"a", "b", "c", "d"}) ASSERT_EQ(Admit(pod).reason, "");
  ASSERT_TRUE(node_.Apply(SharedPlan(2), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 2));
  EXPECT_EQ(kubelet().Counts(kGpu).capacity, 4);
  EXPECT_THAT(kubelet().Ids(kGpu, /*healthy=*/false),
              ElementsAre(ReplicaId(GpuUuid(0), 2), ReplicaId(GpuUuid(0), 3)));
  EXPECT_EQ(node_.Stats(kGpu).retired, 2u);
  const auto slots = node_.OnLoop([&] { return node_.manager().Slots(); });
  ASSERT_THAT(slots, SizeIs(1));
  EXPECT_EQ(slots[0].uuid, GpuUuid(0));
  EXPECT_EQ(slots[0].replicas, 2);
  EXPECT_THAT(slots[0].numbers, ElementsAre(0, 1, 2, 3)) << "pods hold these";
  // Four run, two fit: nobody else comes in until two have gone.
  EXPECT_EQ(Admit("e").phase, Admission::Phase::kPending);
  for (const char* pod : {"a", "b", "c", "d"}) kubelet().Remove(pod);
  EXPECT_TRUE(kubelet().WaitFor(
      kGpu, [](const ResourceCounts& c) { return c.capacity == 2; }));
  EXPECT_EQ(Admit("f").phase, Admission::Phase::kRunning);
  EXPECT_EQ(kubelet().Counts(kGpu).registrations, 1);
}

TEST_F(ManagerTest, ARetiredDeviceThatIsConfiguredAgainIsHealthyAgain) {
  node_.options.retire_min = std::chrono::hours(1);
  ASSERT_TRUE(node_.Apply(SharedPlan(4), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
  ASSERT_TRUE(node_.Apply(SharedPlan(2), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 2));
  // Not held, yet still on the list: kubelet may just be allocating one, and
  // then gets its answer.
  EXPECT_EQ(kubelet().Counts(kGpu).capacity, 4);
  demo::PluginClient client(kGpu, node_.Stats(kGpu).socket);
  ASSERT_TRUE(client.Connect().ok());
  EXPECT_TRUE(client.prefers());
  const auto late = client.Allocate({ReplicaId(GpuUuid(0), 3)});
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(late->envs.at("NVIDIA_VISIBLE_DEVICES"), GpuUuid(0));
  ASSERT_TRUE(node_.Apply(SharedPlan(3), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 3));
  EXPECT_EQ(kubelet().Counts(kGpu).capacity, 4);
}

TEST_F(ManagerTest, RenameDrainsTheOldName) {
  ASSERT_TRUE(node_.Apply(SharedPlan(4), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
  ASSERT_EQ(Admit("old").reason, "");
  ASSERT_TRUE(node_.Apply(SharedPlan(4, kShared), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kShared, 4));
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 0));
  ASSERT_TRUE(kubelet().WaitFor(
      kGpu, [](const ResourceCounts& c) { return c.capacity == 1; }));
  EXPECT_TRUE(kubelet().Counts(kGpu).connected);
  EXPECT_EQ(Admit("new", 1, kShared).phase, Admission::Phase::kRunning);
  kubelet().Remove("old");
  EXPECT_TRUE(kubelet().WaitFor(
      kGpu, [](const ResourceCounts& c) { return !c.connected; }));
  EXPECT_EQ(kubelet().Counts(kShared).registrations, 1);
}

TEST_F(ManagerTest, PodsOutliveTheAgentAndItsOldConfig) {
  ASSERT_TRUE(node_.Apply(SharedPlan(4), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
  for (const char* pod : {"a", "b", "c", "d"}) ASSERT_EQ(Admit(pod).reason, "");
  node_.StopManager();
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 0));
  // A new process, a smaller config: what pods hold comes from kubelet.
  ASSERT_TRUE(node_.Apply(SharedPlan(2), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 2));
  EXPECT_EQ(kubelet().Counts(kGpu).capacity, 4);
}

TEST_F(ManagerTest, OtherPluginsResourcesAreLeftAlone) {
  node_.options.held_devices = []() -> absl::StatusOr<HeldDevices> {
    return HeldDevices{{"nvidia.com/hostdev", {"0000:3b:00.1"}},
                       {"example.com/nic", {"eth0"}}};
  };
  ASSERT_TRUE(node_.Apply(SharedPlan(2), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 2));
  EXPECT_THAT(node_.manager().Snapshot().resources, SizeIs(1));
}

TEST_F(ManagerTest, WhileHoldersAreUnknownNothingVanishes) {
  node_.options.held_devices = []() -> absl::StatusOr<HeldDevices> {
    return absl::InternalError("disk on fire");
  };
  ASSERT_TRUE(node_.Apply(SharedPlan(4), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
  ASSERT_TRUE(node_.Apply(SharedPlan(2), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 2));
  EXPECT_EQ(kubelet().Counts(kGpu).capacity, 4);
  // The checks go on; two of them later it is still so.
  const uint64_t lists = node_.Stats(kGpu).lists_sent;
  ASSERT_TRUE(node_.Apply(SharedPlan(2), TestGpus(1)).ok());
  EXPECT_EQ(node_.Stats(kGpu).lists_sent, lists);
}

TEST_F(ManagerTest, CdiStrategiesWriteTheirSpecs) {
  config::Plan plan = SharedPlan(2);
  plan.flags.device_list_strategies = {config::DeviceListStrategy::kCdiCri};
  ASSERT_TRUE(node_.Apply(plan, TestGpus(2)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
  const Admission admission = Admit("p");
  ASSERT_EQ(admission.reason, "") << admission.message;
  const auto spec =
      ReadFile(node_.dir() + "/cdi/k8s.device-plugin.nvidia.com-gpu.json");
  ASSERT_TRUE(spec.ok());
  const std::string& name = admission.grants[0].cdi_devices[0];
  EXPECT_THAT(name, StartsWith("k8s.device-plugin.nvidia.com/gpu=GPU-"));
  EXPECT_THAT(*spec, HasSubstr(name.substr(name.find('=') + 1)));
  EXPECT_THAT(admission.grants[0].envs, IsEmpty());
}

TEST_F(ManagerTest, D9LinksAreFoundOnceAndUsed) {
  for (int a = 0; a < 4; ++a) {
    for (int b = a + 1; b < 4; ++b) {
      nvml::Link link;
      link.ancestor = nvml::Ancestor::kCrossCpu;
      link.nvlinks = a + 2 == b ? 4 : 0;  // 0-2, 1-3
      node_.backend.SetLink(a, b, link);
    }
  }
  ASSERT_TRUE(node_.Apply(config::Plan(), TestGpus(4)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
  // Links come from a thread of their own: ask until they are known.
  std::vector<std::string> ids;
  for (int i = 0; i < 10000; ++i) {
    const Admission admission = Admit("p", 2);
    ASSERT_EQ(admission.reason, "") << admission.message;
    ids = admission.grants[0].device_ids;
    kubelet().Remove("p");
    if (ids[1] == GpuUuid(2)) break;
  }
  EXPECT_THAT(ids, ElementsAre(GpuUuid(0), GpuUuid(2)));
}

TEST_F(ManagerTest, NoGpusIsNotAnError) {
  ASSERT_TRUE(node_.Apply(SharedPlan(4), {}).ok());
  EXPECT_THAT(node_.manager().Snapshot().resources, IsEmpty());
  EXPECT_TRUE(node_.manager().Ready());
  ASSERT_TRUE(node_.Apply(SharedPlan(4), TestGpus(1)).ok());
  EXPECT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
}

TEST_F(ManagerTest, SocketsHaveTheirContractNamesAndGoWithTheManager) {
  ASSERT_TRUE(node_.Apply(SharedPlan(4, kShared), TestGpus(1)).ok());
  const std::string path = node_.options.socket_dir + "/nvidia-gpu.shared.sock";
  EXPECT_EQ(node_.Stats(kShared).socket, path);
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
  node_.StopManager();
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace rondo::deviceplugin
