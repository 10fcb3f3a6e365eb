// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/cdi_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "deviceplugin/test_node.h"

namespace rondo::deviceplugin {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<Device> Devices(int count) {
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i) {
    Device device;
    device.uuid = GpuUuid(i);
    device.index = absl::StrCat(i);
    device.paths = {absl::StrCat("/dev/nvidia", i)};
    devices.push_back(device);
  }
  return devices;
}

config::Flags Flags() {
  config::Flags flags;
  flags.nvidia_dev_root = "/";
  return flags;
}

DriverFiles Driver() {
  DriverFiles driver;
  driver.version = "550.54.15";
  driver.libraries = {"/usr/lib64/libcuda.so.550.54.15"};
  driver.links = {{"/usr/lib64/libcuda.so.1", "libcuda.so.550.54.15"}};
  driver.binaries = {"/usr/bin/nvidia-smi"};
  driver.sockets = {"/run/nvidia-persistenced/socket"};
  return driver;
}

TEST(CdiSpec, HasWhatTheSchemaAsksFor) {
  const json spec = json::parse(
      GpuCdiSpec(Flags(), Devices(2), {"/dev/nvidiactl"}, Driver()));
  EXPECT_EQ(spec["cdiVersion"], "0.5.0");
  EXPECT_EQ(spec["kind"], "k8s.device-plugin.nvidia.com/gpu");
  ASSERT_EQ(spec["devices"].size(), 3u);
  EXPECT_EQ(spec["devices"][0],
            json::parse(R"({"name":"GPU-00000000-0000-0000-0000-000000000000",
              "containerEdits":{"deviceNodes":[{"path":"/dev/nvidia0"}]}})"));
  EXPECT_EQ(spec["devices"][2], json::parse(R"({"name":"all",
      "containerEdits":{"deviceNodes":[{"path":"/dev/nvidia0"},
                                       {"path":"/dev/nvidia1"}]}})"));
  const json& edits = spec["containerEdits"];
  EXPECT_EQ(edits["env"], json::parse(R"(["NVIDIA_VISIBLE_DEVICES=void"])"));
  EXPECT_EQ(edits["deviceNodes"],
            json::parse(R"([{"path":"/dev/nvidiactl"}])"));
  EXPECT_EQ(edits["mounts"][0], json::parse(R"({
      "hostPath":"/usr/lib64/libcuda.so.550.54.15",
      "containerPath":"/usr/lib64/libcuda.so.550.54.15",
      "options":["ro","nosuid","nodev","rbind","rprivate"]})"));
  EXPECT_EQ(edits["mounts"].size(), 3u);
}

TEST(CdiSpec, HooksOfNvidiaCtkAndOfNvidiaCdiHook) {
  config::Flags flags = Flags();
  json hooks = json::parse(
      GpuCdiSpec(flags, Devices(1), {}, Driver()))["containerEdits"]["hooks"];
  EXPECT_EQ(hooks, json::parse(R"([
      {"hookName":"createContainer","path":"/usr/bin/nvidia-ctk",
       "args":["nvidia-ctk","hook","create-symlinks","--link",
               "libcuda.so.550.54.15::/usr/lib64/libcuda.so.1"]},
      {"hookName":"createContainer","path":"/usr/bin/nvidia-ctk",
       "args":["nvidia-ctk","hook","update-ldcache","--folder",
               "/usr/lib64"]}])"));
  flags.nvidia_cdi_hook_path = "/usr/local/nvidia/toolkit/nvidia-cdi-hook";
  hooks = json::parse(
      GpuCdiSpec(flags, Devices(1), {}, Driver()))["containerEdits"]["hooks"];
  EXPECT_EQ(hooks[1]["args"], json::parse(R"(["nvidia-cdi-hook",
      "update-ldcache","--folder","/usr/lib64"])"));
}

TEST(CdiSpec, WithoutHooksTheSonamesAreMounted) {
  config::Flags flags = Flags();
  flags.cdi_disable_hooks = "all";
  const json edits = json::parse(
      GpuCdiSpec(flags, Devices(1), {}, Driver()))["containerEdits"];
  EXPECT_FALSE(edits.contains("hooks"));
  EXPECT_EQ(edits["mounts"].back()["containerPath"], "/usr/lib64/libcuda.so.1");
}

TEST(CdiSpec, IndexStrategyAndRoots) {
  config::Flags flags = Flags();
  flags.device_id_strategy = config::DeviceIdStrategy::kIndex;
  flags.nvidia_driver_root = flags.nvidia_dev_root = "/run/nvidia/driver";
  const json spec = json::parse(GpuCdiSpec(flags, Devices(1), {}, Driver()));
  EXPECT_EQ(spec["devices"][0]["name"], "0");
  EXPECT_EQ(spec["devices"][0]["containerEdits"]["deviceNodes"][0],
            json::parse(R"({"path":"/dev/nvidia0",
                            "hostPath":"/run/nvidia/driver/dev/nvidia0"})"));
  EXPECT_EQ(spec["containerEdits"]["mounts"][0]["hostPath"],
            "/run/nvidia/driver/usr/lib64/libcuda.so.550.54.15");
}

class CdiFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    auto dir = TempDir::Create();
    ASSERT_TRUE(dir.ok());
    dir_.emplace(*std::move(dir));
  }
  void Touch(const std::string& path) {
    const std::string full = dir_->path() + path;
    ASSERT_TRUE(MakeDirectories(full.substr(0, full.rfind('/'))).ok());
    ASSERT_TRUE(WriteFileAtomically(full, "").ok());
  }
  std::optional<TempDir> dir_;
};

TEST_F(CdiFiles, FindsTheDriver) {
  Touch("/usr/lib64/libcuda.so.550.54.15");
  Touch("/usr/lib64/libnvidia-ml.so.550.54.15");
  Touch("/usr/lib64/libnvidia-container.so.1.14.0");
  Touch("/usr/lib64/libc.so.6");
  Touch("/usr/bin/nvidia-smi");
  Touch("/lib/firmware/nvidia/550.54.15/gsp_ga10x.bin");
  const std::string lib = dir_->path() + "/usr/lib64/";
  ASSERT_EQ(symlink("libcuda.so.550.54.15", (lib + "libcuda.so.1").c_str()), 0);
  ASSERT_EQ(symlink("/etc/passwd", (lib + "libnvidia-x.so.1").c_str()), 0);
  ASSERT_EQ(symlink("usr/lib64", (dir_->path() + "/lib64").c_str()), 0);
  const DriverFiles driver = FindDriverFiles(dir_->path());
  EXPECT_EQ(driver.version, "550.54.15");
  EXPECT_THAT(driver.libraries,
              ElementsAre("/usr/lib64/libcuda.so.550.54.15",
                          "/usr/lib64/libnvidia-ml.so.550.54.15"));
  EXPECT_THAT(driver.links, ElementsAre(Pair("/usr/lib64/libcuda.so.1",
                                             "libcuda.so.550.54.15")));
  EXPECT_THAT(driver.binaries, ElementsAre("/usr/bin/nvidia-smi"));
  EXPECT_THAT(driver.firmware,
              ElementsAre("/lib/firmware/nvidia/550.54.15/gsp_ga10x.bin"));
  EXPECT_EQ(VisibleDriverRoot(Flags(), dir_->path()), dir_->path());
  EXPECT_THAT(FindDriverFiles("/nonexistent").libraries, IsEmpty());
}

TEST_F(CdiFiles, WritesOneSpecForEachClassThatIsThere) {
  Touch("/dev/gdrdrv");
  Touch("/dev/infiniband/uverbs0");
  Touch("/dev/infiniband/rdma_cm");
  config::Flags flags = Flags();
  flags.gdrcopy_enabled = flags.gds_enabled = flags.mofed_enabled = true;
  AllocateSettings settings;
  settings.imex_channels = {0};
  const std::string cdi = dir_->path() + "/var/run/cdi";
  const auto classes =
      WriteCdiSpecs(flags, Devices(1), settings, dir_->path(), cdi);
  ASSERT_TRUE(classes.ok()) << classes.status();
  EXPECT_THAT(*classes, ElementsAre("gdrcopy", "mofed"));
  const std::string prefix = cdi + "/k8s.device-plugin.nvidia.com-";
  const json mofed = json::parse(*ReadFile(prefix + "mofed.json"));
  EXPECT_EQ(mofed["kind"], "k8s.device-plugin.nvidia.com/mofed");
  EXPECT_EQ(mofed["devices"], json::parse(R"([{"name":"all","containerEdits":
      {"deviceNodes":[{"path":"/dev/infiniband/rdma_cm"},
                      {"path":"/dev/infiniband/uverbs0"}]}}])"));
  const json imex = json::parse(*ReadFile(prefix + "imex-channel.json"));
  EXPECT_EQ(imex["devices"][0]["name"], "0");
  EXPECT_TRUE(ReadFile(prefix + "gpu.json").ok());
  EXPECT_TRUE(absl::IsNotFound(ReadFile(prefix + "gds.json").status()));
}

}  // namespace
}  // namespace rondo::deviceplugin
