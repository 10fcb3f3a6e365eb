// SPDX-License-Identifier: Apache-2.0
#include "sim/node.h"

#include <sys/stat.h>

#include <set>

#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/layout.h"
#include "sim/stage.h"
#include "sim/state.h"

namespace rondo::sim {
namespace {

using testing::HasSubstr;

class NodeTest : public testing::Test {
 protected:
  void SetUp() override {
    auto dir = TempDir::Create("node");
    ASSERT_TRUE(dir.ok());
    dir_.emplace(*std::move(dir));
  }
  Node Create(const std::string& profile) {
    auto node = Node::Create(profile, dir_->path());
    EXPECT_TRUE(node.ok()) << node.status();
    return *std::move(node);
  }
  bool Exists(const std::string& path) {
    struct stat info;
    return stat((dir_->path() + path).c_str(), &info) == 0;
  }
  std::string Read(const std::string& path) {
    auto text = ReadFile(dir_->path() + path);
    return text.ok() ? *text : std::string(text.status().message());
  }
  std::optional<TempDir> dir_;
};

TEST_F(NodeTest, IsLaidOutAsADriverRoot) {
  const Node node = Create("2xT4");
  for (const char* path :
       {"/usr/lib64/libnvidia-ml.so.1", "/usr/lib64/rondo-sim.state",
        "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm",
        "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset",
        "/sys/bus/pci/devices/0000:17:00.0/numa_node"})
    EXPECT_TRUE(Exists(path)) << path;
  EXPECT_FALSE(Exists("/dev/nvidia2"));
  EXPECT_FALSE(Exists("/dev/nvidia-caps"));
  EXPECT_EQ(Read("/sys/bus/pci/devices/0000:17:00.0/vendor"), "0x10de\n");
  EXPECT_EQ(node.library_path(), dir_->path() + "/usr/lib64/libnvidia-ml.so.1");
}

TEST_F(NodeTest, NumaNodesFollowTheBoard) {
  Create("8xA100");
  EXPECT_EQ(Read("/sys/bus/pci/devices/0000:17:00.0/numa_node"), "0\n");
  EXPECT_EQ(Read("/sys/bus/pci/devices/0000:cb:00.0/numa_node"), "1\n");
  Create("RTX-4090");
  EXPECT_EQ(Read("/sys/bus/pci/devices/0000:17:00.0/numa_node"), "-1\n");
}

// The numbers are the driver's: 9 for each of 15 GPU instances of a GPU.
TEST_F(NodeTest, MigDevicesHaveTheirCapabilities) {
  Create("T4,A100+3g.40gb+1g.10gb");
  EXPECT_EQ(CapMinor(0, 0, -1), 3);
  EXPECT_EQ(CapMinor(0, 1, 0), 13);
  const std::string minors = Read("/proc/driver/nvidia-caps/mig-minors");
  EXPECT_THAT(minors, HasSubstr("config 1\nmonitor 2\ngpu0/gi0/access 3\n"));
  EXPECT_THAT(minors, HasSubstr("gpu1/gi1/access 147\n"));
  EXPECT_THAT(minors, HasSubstr("gpu1/gi1/ci0/access 148\n"));
  // 3g.40gb is GPU instance 1 and 1g.10gb instance 7 of GPU 1.
  for (int minor : {1, 2, 147, 148, 3 + 135 + 63, 3 + 135 + 64})
    EXPECT_TRUE(Exists(absl::StrCat("/dev/nvidia-caps/nvidia-cap", minor)))
        << minor;
}

TEST_F(NodeTest, UuidsDependOnTheProfileAlone) {
  std::set<std::string> uuids;
  for (const char* profile : {"8xH100", "8xA100"}) {
    const Node node = Create(profile);
    auto other_dir = TempDir::Create("other");
    ASSERT_TRUE(other_dir.ok());
    const auto other = Node::Create(profile, other_dir->path());
    ASSERT_TRUE(other.ok());
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(*node.Uuid(i), *other->Uuid(i));
      uuids.insert(*node.Uuid(i));
    }
  }
  EXPECT_EQ(uuids.size(), 16);
}

TEST_F(NodeTest, OpensByFolderAndByFile) {
  Node node = Create("2xT4");
  const auto by_dir = Node::Open(dir_->path());
  ASSERT_TRUE(by_dir.ok()) << by_dir.status();
  const auto by_file = Node::Open(node.state_path());
  ASSERT_TRUE(by_file.ok()) << by_file.status();
  EXPECT_EQ(by_file->dir(), dir_->path());
  EXPECT_EQ(by_file->Find(*by_dir->Uuid(1))->gpu, 1);
  EXPECT_TRUE(absl::IsNotFound(Node::Open(dir_->path() + "/no").status()));
  ASSERT_TRUE(WriteFileAtomically(node.state_path(), "short").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Node::Open(dir_->path()).status()));
}

TEST_F(NodeTest, FindsGpusAndMigDevices) {
  const Node node = Create("T4,A100+3g.40gb+3g.40gb");
  EXPECT_EQ(node.Find("1")->gpu, 1);
  EXPECT_EQ(node.Find("1")->mig_slot, -1);
  EXPECT_TRUE(absl::IsInvalidArgument(node.Find("2").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(node.Find("-1").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(node.Find("GPU-x").status()));
}

TEST_F(NodeTest, RefusesWhatIsNotThere) {
  Node node = Create("RTX-4090");
  EXPECT_TRUE(absl::IsInvalidArgument(node.Xid(1, 79)));
  EXPECT_TRUE(absl::IsInvalidArgument(node.Xid(0, 79, 0)));
  EXPECT_TRUE(absl::IsInvalidArgument(node.EccError(0)));
  EXPECT_TRUE(absl::IsNotFound(node.RemoveProcess(0, 5)));
  for (uint32_t pid = 1; pid <= kMaxProcesses; ++pid)
    ASSERT_TRUE(node.SetProcess(0, {.pid = pid}).ok());
  EXPECT_TRUE(node.SetProcess(0, {.pid = 3, .used_bytes = 9}).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(node.SetProcess(0, {.pid = 1000})));
}

TEST_F(NodeTest, ABadProfileLeavesTheNodeThatWasThere) {
  const Node node = Create("T4");
  EXPECT_FALSE(Node::Create("A100+4g.40gb+4g.40gb", dir_->path()).ok());
  EXPECT_EQ(Node::Open(dir_->path())->gpu_count(), 1);
}

TEST(MigLayout, FitsWhatTheDriverFits) {
  for (const char* text :
       {"A100+7g.80gb", "A100+4g.40gb+3g.40gb", "A100+3g.40gb+4g.40gb",
        "A100+3g.40gb+2g.20gb+1g.10gb+1g.10gb", "A100+1g.10gb+2g.20gb+3g.40gb",
        "A100+3x2g.20gb+1g.10gb", "A100+4x1g.20gb", "A100+7x1g.10gb",
        "A100+3g.40gb+4x1g.10gb", "A100+3x1c.3g.40gb+4g.40gb",
        "A100+6x1g.10gb+1g.10gb+me"}) {
    const auto profile = ParseShortProfile(text);
    ASSERT_TRUE(profile.ok()) << profile.status();
    const auto state = std::make_unique<NodeState>();
    EXPECT_TRUE(FillState(*profile, state.get()).ok()) << text;
    const GpuState& g = state->gpus[0];
    ASSERT_EQ(g.mig_count, profile->gpus[0].mig.size());
    // No two GPU instances lie over each other.
    uint32_t used = 0;
    std::set<uint32_t> instances;
    for (uint32_t i = 0; i < g.mig_count; ++i) {
      if (!instances.insert(g.migs[i].gpu_instance).second) continue;
      const uint32_t mask = ((1u << g.migs[i].size) - 1) << g.migs[i].start;
      EXPECT_EQ(used & mask, 0) << text;
      used |= mask;
    }
  }
}

TEST(MigLayout, RefusesWhatDoesNotFit) {
  for (const char* text :
       {"A100+7g.80gb+1g.10gb", "A100+4g.40gb+4g.40gb", "A100+8x1g.10gb",
        "A100+3g.40gb+3g.40gb+1g.10gb", "A100+4x2g.20gb", "A100+5x1g.20gb",
        "A100+1g.10gb+me+1g.10gb+me"}) {
    const auto profile = ParseShortProfile(text);
    ASSERT_TRUE(profile.ok()) << profile.status();
    const auto state = std::make_unique<NodeState>();
    const absl::Status status = FillState(*profile, state.get());
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("GPU 0: the MIG devices do not fit"));
  }
}

}  // namespace
}  // namespace rondo::sim
