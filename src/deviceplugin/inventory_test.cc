// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "base/file.h"
#include "deviceplugin/test_node.h"

namespace rondo::deviceplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// "nvidia.com/gpu: 0 1x4" = device 0 exclusive, device 1 with 4 replicas.
std::string Summary(const Inventory& inventory) {
  std::vector<std::string> lines;
  for (const Resource& resource : inventory.resources) {
    std::string line = absl::StrCat(resource.name, ":");
    for (const Device& device : resource.devices) {
      absl::StrAppend(&line, " ", device.index);
      if (device.replicas > 0) absl::StrAppend(&line, "x", device.replicas);
    }
    lines.push_back(line);
  }
  return absl::StrJoin(lines, "; ");
}

config::DeviceRef Ref(const std::string& text) {
  config::DeviceRef ref;
  ref.text = text;
  ref.kind = text[1] == 'P' || text[1] == 'I' ? config::DeviceRef::Kind::kUuid
                                              : config::DeviceRef::Kind::kIndex;
  return ref;
}

config::SharedResource ShareList(config::SharedResource entry,
                                 const std::vector<std::string>& refs) {
  entry.devices.kind = config::DeviceSelector::Kind::kList;
  for (const std::string& ref : refs) entry.devices.list.push_back(Ref(ref));
  return entry;
}

config::SharedResource ShareCount(config::SharedResource entry, int count) {
  entry.devices.kind = config::DeviceSelector::Kind::kCount;
  entry.devices.count = count;
  return entry;
}

struct SharingCase {
  std::string name;
  std::vector<config::SharedResource> entries;
  std::string expected;  // summary, or the error when it starts with "error "
};

class InventorySharing : public ::testing::TestWithParam<SharingCase> {};

TEST_P(InventorySharing, OfThreeGpus) {
  config::Plan plan;
  plan.sharing.resources = GetParam().entries;
  const auto inventory = BuildInventory(TestGpus(3), plan, "/nonexistent");
  if (!inventory.ok()) {
    EXPECT_EQ(absl::StrCat("error ", inventory.status().message()),
              GetParam().expected);
    return;
  }
  EXPECT_EQ(Summary(*inventory), GetParam().expected);
}

const std::string kGpu = "nvidia.com/gpu";

INSTANTIATE_TEST_SUITE_P(
    Table, InventorySharing,
    ::testing::Values(
        SharingCase{"none", {}, "nvidia.com/gpu: 0 1 2"},
        SharingCase{"all", {Share(kGpu, 4)}, "nvidia.com/gpu: 0x4 1x4 2x4"},
        SharingCase{"rename",
                    {Share(kGpu, 4, "nvidia.com/gpu.shared")},
                    "nvidia.com/gpu.shared: 0x4 1x4 2x4"},
        SharingCase{"unknown_name",
                    {Share("nvidia.com/gpus", 4)},
                    "nvidia.com/gpu: 0 1 2"},
        SharingCase{"twice_merges",
                    {Share(kGpu, 4), Share(kGpu, 2)},
                    "nvidia.com/gpu: 0x4 1x4 2x4"},
        SharingCase{"issue_353_share_gpu_0_keep_the_rest",
                    {ShareList(Share(kGpu, 4, "nvidia.com/gpu.shared"), {"0"})},
                    "nvidia.com/gpu: 1 2; nvidia.com/gpu.shared: 0x4"},
        SharingCase{"issue_404_same_name_shared_and_exclusive",
                    {ShareList(Share(kGpu, 4), {"1"})},
                    "nvidia.com/gpu: 0 1x4 2"},
        SharingCase{"issue_628_counts_per_gpu",
                    {ShareList(Share(kGpu, 2), {"0"}),
                     ShareList(Share(kGpu, 8), {"1", "2"})},
                    "nvidia.com/gpu: 0x2 1x8 2x8"},
        SharingCase{"issue_1786_custom_names",
                    {ShareList(Share(kGpu, 2, "nvidia.com/big"), {"2"}),
                     ShareList(Share(kGpu, 8, "nvidia.com/small"), {"1"})},
                    "nvidia.com/big: 2x2; nvidia.com/gpu: 0; "
                    "nvidia.com/small: 1x8"},
        SharingCase{"by_uuid",
                    {ShareList(Share(kGpu, 2), {GpuUuid(1)})},
                    "nvidia.com/gpu: 0 1x2 2"},
        SharingCase{"count",
                    {ShareCount(Share(kGpu, 3, "nvidia.com/gpu.shared"), 2)},
                    "nvidia.com/gpu: 2; nvidia.com/gpu.shared: 0x3 1x3"},
        SharingCase{"count_too_many",
                    {ShareCount(Share(kGpu, 3), 4)},
                    "error line 7: 'devices: 4' of 'nvidia.com/gpu', but this "
                    "node has 3"},
        SharingCase{"no_such_device",
                    {ShareList(Share(kGpu, 3), {"5"})},
                    "error line 7: no device '5' of 'nvidia.com/gpu' on this "
                    "node"}),
    [](const auto& row) { return row.param.name; });

TEST(Inventory, UnknownNameIsAWarningWithItsLine) {
  config::Plan plan;
  plan.sharing.resources = {Share("nvidia.com/gpus", 4)};
  const auto inventory = BuildInventory(TestGpus(1), plan, "/nonexistent");
  ASSERT_TRUE(inventory.ok());
  EXPECT_THAT(inventory->warnings,
              ElementsAre(HasSubstr("line 7: no GPU on this node offers "
                                    "'nvidia.com/gpus'")));
}

TEST(Inventory, Issue231And2038OneLostGpuLeavesTheOthers) {
  auto gpus = TestGpus(3);
  gpus[1] = absl::UnavailableError("GPU is lost");
  config::Plan plan;
  plan.sharing.resources = {ShareList(Share(kGpu, 4), {"1", "2"})};
  const auto inventory = BuildInventory(gpus, plan, "/nonexistent");
  ASSERT_TRUE(inventory.ok()) << inventory.status();
  EXPECT_EQ(Summary(*inventory), "nvidia.com/gpu: 0 2x4");
  EXPECT_THAT(inventory->warnings,
              ElementsAre(HasSubstr("GPU 1 is left out: GPU is lost"),
                          HasSubstr("no device '1'")));
}

TEST(Inventory, DisplayCardsAreSkippedAndIndicesStay) {
  auto gpus = TestGpus(3);
  gpus[1]->name = "NVIDIA DGX Display";
  const auto inventory = BuildInventory(gpus, config::Plan(), "/nonexistent");
  ASSERT_TRUE(inventory.ok());
  EXPECT_EQ(Summary(*inventory), "nvidia.com/gpu: 0 2");
}

class InventoryFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    auto dir = TempDir::Create();
    ASSERT_TRUE(dir.ok());
    dir_.emplace(*std::move(dir));
  }
  void Write(const std::string& path, const std::string& text) {
    const std::string full = dir_->path() + path;
    ASSERT_TRUE(MakeDirectories(full.substr(0, full.rfind('/'))).ok());
    ASSERT_TRUE(WriteFileAtomically(full, text).ok());
  }
  std::optional<TempDir> dir_;
};

TEST_F(InventoryFiles, NumaNodes) {
  Write("/sys/bus/pci/devices/0000:10:00.0/numa_node", "1\n");
  Write("/sys/bus/pci/devices/0000:11:00.0/numa_node", "-1\n");
  Write("/sys/bus/pci/devices/0000:12:00.0/numa_node", "many\n");
  const auto inventory =
      BuildInventory(TestGpus(4), config::Plan(), dir_->path());
  ASSERT_TRUE(inventory.ok());
  const std::vector<Device>& devices = inventory->resources[0].devices;
  EXPECT_EQ(devices[0].numa_node, 1);
  EXPECT_EQ(devices[1].numa_node, std::nullopt);
  EXPECT_EQ(devices[2].numa_node, std::nullopt);
  EXPECT_EQ(devices[3].numa_node, std::nullopt);
  EXPECT_THAT(inventory->warnings, ElementsAre(HasSubstr("holds no number")));
}

struct MigCase {
  std::string name;
  config::MigStrategy strategy;
  // Profiles of each GPU's MIG devices; "-" = MIG off.
  std::vector<std::vector<std::string>> gpus;
  std::vector<config::SharedResource> entries;
  std::string expected;
};

class InventoryMig : public InventoryFiles,
                     public ::testing::WithParamInterface<MigCase> {};

TEST_P(InventoryMig, Strategies) {
  std::string minors = "config 1\nmonitor 2\n";
  std::vector<absl::StatusOr<nvml::Gpu>> gpus;
  for (const auto& profiles : GetParam().gpus) {
    nvml::Gpu gpu = TestGpu(static_cast<int>(gpus.size()));
    gpu.mig_enabled = profiles != std::vector<std::string>{"-"};
    for (size_t i = 0; gpu.mig_enabled && i < profiles.size(); ++i) {
      gpu.migs.push_back(TestMig(gpu.index, static_cast<int>(i), profiles[i]));
      absl::StrAppend(&minors, "gpu", gpu.index, "/gi", i + 1, "/access ",
                      10 * (i + 1), "\ngpu", gpu.index, "/gi", i + 1,
                      "/ci0/access ", 10 * (i + 1) + 1, "\n");
    }
    gpus.push_back(gpu);
  }
  Write("/proc/driver/nvidia-caps/mig-minors", minors);
  config::Plan plan;
  plan.flags.mig_strategy = GetParam().strategy;
  plan.sharing.resources = GetParam().entries;
  const auto inventory = BuildInventory(gpus, plan, dir_->path());
  EXPECT_EQ(inventory.ok()
                ? Summary(*inventory)
                : absl::StrCat("error ", inventory.status().message()),
            GetParam().expected);
}

using Mig = config::MigStrategy;

INSTANTIATE_TEST_SUITE_P(
    Table, InventoryMig,
    ::testing::Values(
        MigCase{"none_lists_whole_gpus",
                Mig::kNone,
                {{"1g.10gb", "1g.10gb"}, {"-"}},
                {},
                "nvidia.com/gpu: 0 1"},
        MigCase{"single",
                Mig::kSingle,
                {{"1g.10gb", "1g.10gb"}, {"1g.10gb"}},
                {},
                "nvidia.com/gpu: 0:0 0:1 1:0"},
        MigCase{"single_without_mig",
                Mig::kSingle,
                {{"-"}, {"-"}},
                {},
                "nvidia.com/gpu: 0 1"},
        MigCase{"single_shared",
                Mig::kSingle,
                {{"1g.10gb", "1g.10gb"}},
                {Share("nvidia.com/gpu", 3)},
                "nvidia.com/gpu: 0:0x3 0:1x3"},
        MigCase{"single_disagreeing_modes",
                Mig::kSingle,
                {{"1g.10gb"}, {"-"}},
                {},
                "error all devices on the node must be configured with the "
                "same migEnabled value"},
        MigCase{"single_empty_gpu",
                Mig::kSingle,
                {{"1g.10gb"}, {}},
                {},
                "error device 1 has no MIG devices configured"},
        MigCase{"single_two_shapes",
                Mig::kSingle,
                {{"1g.10gb", "2g.20gb"}},
                {},
                "error more than one MIG device type present on node"},
        MigCase{"mixed",
                Mig::kMixed,
                {{"1g.10gb", "2g.20gb"}, {"-"}, {"1g.10gb"}},
                {},
                "nvidia.com/gpu: 1; nvidia.com/mig-1g.10gb: 0:0 2:0; "
                "nvidia.com/mig-2g.20gb: 0:1"},
        MigCase{"mixed_media_extensions",
                Mig::kMixed,
                {{"1g.10gb+me"}},
                {},
                "nvidia.com/mig-1g.10gb.me: 0:0"},
        MigCase{"mixed_shares_only_what_is_listed",
                Mig::kMixed,
                {{"1g.10gb", "2g.20gb"}, {"-"}},
                {Share("nvidia.com/mig-1g.10gb", 2)},
                "nvidia.com/gpu: 1; nvidia.com/mig-1g.10gb: 0:0x2; "
                "nvidia.com/mig-2g.20gb: 0:1"},
        MigCase{"mixed_empty_gpu_only_warns",
                Mig::kMixed,
                {{}, {"-"}},
                {},
                "nvidia.com/gpu: 1"}),
    [](const auto& row) { return row.param.name; });

TEST_F(InventoryFiles, MigDevicesHaveTheirCapabilityNodes) {
  Write("/proc/driver/nvidia-caps/mig-minors",
        "gpu0/gi1/access 30\ngpu0/gi1/ci0/access 31\n");
  nvml::Gpu gpu = TestGpu(0);
  gpu.mig_enabled = true;
  gpu.migs = {TestMig(0, 0)};
  config::Plan plan;
  plan.flags.mig_strategy = Mig::kSingle;
  const auto inventory = BuildInventory({gpu}, plan, dir_->path());
  ASSERT_TRUE(inventory.ok()) << inventory.status();
  const Device& device = inventory->resources[0].devices[0];
  EXPECT_THAT(device.paths,
              ElementsAre("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap30",
                          "/dev/nvidia-caps/nvidia-cap31"));
  EXPECT_EQ(device.memory_bytes, uint64_t{9728} << 20);
  EXPECT_EQ(device.gpu_uuid, GpuUuid(0));

  Write("/proc/driver/nvidia-caps/mig-minors", "gpu0/gi1/access 30\n");
  EXPECT_THAT(
      std::string(BuildInventory({gpu}, plan, dir_->path()).status().message()),
      HasSubstr("gpu0/gi1/ci0/access"));
}

TEST(Inventory, NoGpusNoResources) {
  const auto inventory = BuildInventory({}, SharedPlan(4), "/nonexistent");
  ASSERT_TRUE(inventory.ok());
  EXPECT_THAT(inventory->resources, IsEmpty());
}

}  // namespace
}  // namespace rondo::deviceplugin
