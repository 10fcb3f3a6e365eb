// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/allocate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "base/file.h"
#include "deviceplugin/test_node.h"

namespace rondo::deviceplugin {
namespace {

using config::DeviceListStrategy;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// All that the answer holds, one item a line.
std::string Text(const ContainerAnswer& answer) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : answer.envs)
    lines.push_back(absl::StrCat("env ", name, "=", value));
  for (const Mount& mount : answer.mounts)
    lines.push_back(absl::StrCat("mount ", mount.host_path, " at ",
                                 mount.container_path,
                                 mount.read_only ? " ro" : ""));
  for (const DeviceSpec& device : answer.devices)
    lines.push_back(absl::StrCat("device ", device.host_path, " at ",
                                 device.container_path, " ",
                                 device.permissions));
  for (const auto& [key, value] : answer.annotations)
    lines.push_back(absl::StrCat("annotation ", key, "=", value));
  for (const std::string& name : answer.cdi_devices)
    lines.push_back(absl::StrCat("cdi ", name));
  return absl::StrJoin(lines, "\n");
}

struct Case {
  std::string name;
  std::vector<DeviceListStrategy> strategies;
  std::vector<std::string> ids;
  std::function<void(AllocateSettings&)> adjust;
  std::string expected;
};

class AllocateTable : public ::testing::TestWithParam<Case> {};

TEST_P(AllocateTable, Answers) {
  const auto view = TestView({{"A", 4}, {"B", 4}, {"C", 0}});
  AllocateSettings settings;
  settings.flags.device_list_strategies = GetParam().strategies;
  settings.flags.nvidia_dev_root = "/";
  settings.sharing_active = true;
  settings.control_devices = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
  if (GetParam().adjust) GetParam().adjust(settings);
  const auto answer = Allocate(*view, settings, GetParam().ids, "unique");
  EXPECT_EQ(answer.ok() ? Text(*answer)
                        : absl::StrCat("error ", answer.status().message()),
            GetParam().expected);
  if (!answer.ok()) {
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnknown);
  }
}

constexpr auto kEnvvar = DeviceListStrategy::kEnvvar;
constexpr auto kMounts = DeviceListStrategy::kVolumeMounts;
constexpr auto kAnnotations = DeviceListStrategy::kCdiAnnotations;
constexpr auto kCri = DeviceListStrategy::kCdiCri;

INSTANTIATE_TEST_SUITE_P(
    Strategies, AllocateTable,
    ::testing::Values(
        Case{"envvar",
             {kEnvvar},
             {"A::0"},
             nullptr,
             "env NVIDIA_VISIBLE_DEVICES=A"},
        Case{"envvar_keeps_the_order_of_the_request",
             {kEnvvar},
             {"C", "B::1", "A::0"},
             nullptr,
             "env NVIDIA_VISIBLE_DEVICES=C,B,A"},
        Case{"issue_1432_each_device_once",
             {kEnvvar},
             {"A::3", "A::0", "B::1", "A::1"},
             nullptr,
             "env NVIDIA_VISIBLE_DEVICES=A,B"},
        Case{"D15_index_order_is_the_request's",
             {kEnvvar},
             {"C", "B::0"},
             [](AllocateSettings& s) {
               s.flags.device_id_strategy = config::DeviceIdStrategy::kIndex;
             },
             "env NVIDIA_VISIBLE_DEVICES=2,1"},
        Case{"volume_mounts",
             {kMounts},
             {"A::0", "B::0"},
             nullptr,
             "env NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices\n"
             "mount /dev/null at /var/run/nvidia-container-devices/A\n"
             "mount /dev/null at /var/run/nvidia-container-devices/B"},
        Case{"volume_mounts_overwrite_envvar",
             {kEnvvar, kMounts},
             {"C"},
             nullptr,
             "env NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices\n"
             "mount /dev/null at /var/run/nvidia-container-devices/C"},
        Case{"cdi_annotations",
             {kAnnotations},
             {"A::0", "B::0"},
             nullptr,
             "annotation cdi.k8s.io/nvidia-device-plugin_unique="
             "k8s.device-plugin.nvidia.com/gpu=A,"
             "k8s.device-plugin.nvidia.com/gpu=B"},
        Case{"cdi_cri",
             {kCri},
             {"A::0"},
             nullptr,
             "cdi k8s.device-plugin.nvidia.com/gpu=A"},
        Case{"cdi_only_has_no_device_specs",
             {kAnnotations, kCri},
             {"A::0"},
             [](AllocateSettings& s) { s.flags.pass_device_specs = true; },
             "annotation cdi.k8s.io/nvidia-device-plugin_unique="
             "k8s.device-plugin.nvidia.com/gpu=A\n"
             "cdi k8s.device-plugin.nvidia.com/gpu=A"},
        Case{"cdi_classes_and_imex",
             {kCri},
             {"A::0"},
             [](AllocateSettings& s) {
               s.imex_channels = {0};
               s.cdi_classes = {"gdrcopy", "mofed"};
             },
             "cdi k8s.device-plugin.nvidia.com/gpu=A\n"
             "cdi k8s.device-plugin.nvidia.com/imex-channel=0\n"
             "cdi k8s.device-plugin.nvidia.com/gdrcopy=all\n"
             "cdi k8s.device-plugin.nvidia.com/mofed=all"},
        Case{"cdi_and_envvar",
             {kCri, kEnvvar},
             {"C"},
             nullptr,
             "env NVIDIA_VISIBLE_DEVICES=C\n"
             "cdi k8s.device-plugin.nvidia.com/gpu=C"},
        Case{"other_prefix",
             {kAnnotations},
             {"C"},
             [](AllocateSettings& s) {
               s.flags.cdi_annotation_prefix = "example.com/";
             },
             "annotation example.com/nvidia-device-plugin_unique="
             "k8s.device-plugin.nvidia.com/gpu=C"},
        Case{"imex",
             {kEnvvar, kMounts},
             {"C"},
             [](AllocateSettings& s) { s.imex_channels = {0}; },
             "env NVIDIA_IMEX_CHANNELS=0\n"
             "env NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices\n"
             "mount /dev/null at /var/run/nvidia-container-devices/C\n"
             "mount /dev/null at /var/run/nvidia-container-devices/imex/0"},
        Case{"gdrcopy_gds_mofed",
             {kEnvvar},
             {"C"},
             [](AllocateSettings& s) {
               s.flags.gdrcopy_enabled = s.flags.gds_enabled =
                   s.flags.mofed_enabled = true;
             },
             "env NVIDIA_GDRCOPY=enabled\n"
             "env NVIDIA_GDS=enabled\n"
             "env NVIDIA_MOFED=enabled\n"
             "env NVIDIA_VISIBLE_DEVICES=C"},
        Case{"D14_device_specs_once",
             {kEnvvar},
             {"A::0", "A::1", "C"},
             [](AllocateSettings& s) {
               s.flags.pass_device_specs = true;
               s.flags.nvidia_dev_root = "/run/nvidia/driver";
             },
             "env NVIDIA_VISIBLE_DEVICES=A,C\n"
             "device /run/nvidia/driver/dev/nvidiactl at /dev/nvidiactl rw\n"
             "device /run/nvidia/driver/dev/nvidia-uvm at /dev/nvidia-uvm rw\n"
             "device /run/nvidia/driver/dev/nvidia0 at /dev/nvidia0 rw\n"
             "device /run/nvidia/driver/dev/nvidia2 at /dev/nvidia2 rw"}),
    [](const auto& row) {
      std::string name = row.param.name;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return !std::isalnum(c); },
          '_');
      return name;
    });

std::function<void(AllocateSettings&)> Injected(config::Injection injection,
                                                std::string dir = "/s") {
  return [injection, dir](AllocateSettings& s) {
    s.injection = injection;
    s.slot_dir = dir;
  };
}

INSTANTIATE_TEST_SUITE_P(
    Injection, AllocateTable,
    ::testing::Values(
        Case{"env",
             {kEnvvar},
             {"A::3"},
             Injected(config::Injection::kEnv),
             "env LD_PRELOAD=/usr/local/rondo/librondo.so\n"
             "env NVIDIA_VISIBLE_DEVICES=A\n"
             "env RONDO_SLOTS=A::3\n"
             "mount /s/lib at /usr/local/rondo ro\n"
             "mount /s/A-3 at /run/rondo/A-3 ro"},
        Case{"file",
             {kEnvvar},
             {"A::3"},
             Injected(config::Injection::kFile),
             "env NVIDIA_VISIBLE_DEVICES=A\n"
             "env RONDO_SLOTS=A::3\n"
             "mount /s/lib at /usr/local/rondo ro\n"
             "mount /s/lib/ld.so.preload at /etc/ld.so.preload ro\n"
             "mount /s/A-3 at /run/rondo/A-3 ro"},
        Case{"with_cdi_only",
             {kCri},
             {"A::0"},
             Injected(config::Injection::kEnv),
             "env LD_PRELOAD=/usr/local/rondo/librondo.so\n"
             "env RONDO_SLOTS=A::0\n"
             "mount /s/lib at /usr/local/rondo ro\n"
             "mount /s/A-0 at /run/rondo/A-0 ro\n"
             "cdi k8s.device-plugin.nvidia.com/gpu=A"},
        Case{"each_slot_in_order_and_once",
             {kEnvvar},
             {"B::1", "A::0", "A::2", "B::1"},
             Injected(config::Injection::kEnv),
             "env LD_PRELOAD=/usr/local/rondo/librondo.so\n"
             "env NVIDIA_VISIBLE_DEVICES=B,A\n"
             "env RONDO_SLOTS=B::1,A::0,A::2\n"
             "mount /s/lib at /usr/local/rondo ro\n"
             "mount /s/B-1 at /run/rondo/B-1 ro\n"
             "mount /s/A-0 at /run/rondo/A-0 ro\n"
             "mount /s/A-2 at /run/rondo/A-2 ro"},
        Case{"cdi",
             {kEnvvar},
             {"B::1", "A::0", "B::1"},
             Injected(config::Injection::kCdi),
             "env NVIDIA_VISIBLE_DEVICES=B,A\n"
             "env RONDO_SLOTS=B::1,A::0\n"
             "cdi rondo/slot=B::1\n"
             "cdi rondo/slot=A::0"},
        Case{"cdi_beside_the_gpus",
             {kCri, kAnnotations},
             {"A::3"},
             Injected(config::Injection::kCdi),
             "env RONDO_SLOTS=A::3\n"
             "annotation cdi.k8s.io/nvidia-device-plugin_unique="
             "k8s.device-plugin.nvidia.com/gpu=A\n"
             "cdi k8s.device-plugin.nvidia.com/gpu=A\n"
             "cdi rondo/slot=A::3"},
        Case{"cdi_by_annotation",
             {kAnnotations},
             {"A::3"},
             Injected(config::Injection::kCdi),
             "env RONDO_SLOTS=A::3\n"
             "annotation cdi.k8s.io/nvidia-device-plugin_unique="
             "k8s.device-plugin.nvidia.com/gpu=A,rondo/slot=A::3"},
        Case{"cdi_not_for_whole_gpus",
             {kEnvvar},
             {"C"},
             Injected(config::Injection::kCdi),
             "env NVIDIA_VISIBLE_DEVICES=C"},
        Case{"not_for_whole_gpus",
             {kEnvvar},
             {"C"},
             Injected(config::Injection::kEnv),
             "env NVIDIA_VISIBLE_DEVICES=C"},
        Case{"none",
             {kEnvvar},
             {"A::3"},
             Injected(config::Injection::kNone),
             "env NVIDIA_VISIBLE_DEVICES=A"},
        Case{"without_a_folder",
             {kEnvvar},
             {"A::3"},
             Injected(config::Injection::kFile, ""),
             "env NVIDIA_VISIBLE_DEVICES=A"}),
    [](const auto& row) { return row.param.name; });

const auto kFailMore = [](AllocateSettings& s) {
  s.fail_requests_greater_than_one = true;
};

INSTANTIATE_TEST_SUITE_P(
    Refusals, AllocateTable,
    ::testing::Values(
        Case{"unknown",
             {kEnvvar},
             {"D::0"},
             nullptr,
             "error invalid allocation request for \"nvidia.com/gpu\": invalid "
             "request: unknown device: D::0"},
        Case{"replica_too_high",
             {kEnvvar},
             {"A::4"},
             nullptr,
             "error invalid allocation request for \"nvidia.com/gpu\": invalid "
             "request: unknown device: A::4"},
        Case{"shared_without_a_number",
             {kEnvvar},
             {"A"},
             nullptr,
             "error invalid allocation request for \"nvidia.com/gpu\": invalid "
             "request: unknown device: A"},
        Case{"no_number",
             {kEnvvar},
             {"A::x"},
             nullptr,
             "error invalid allocation request for \"nvidia.com/gpu\": invalid "
             "request: unknown device: A::x"},
        Case{"two_shares",
             {kEnvvar},
             {"A::0", "B::0"},
             kFailMore,
             "error invalid allocation request for \"nvidia.com/gpu\": invalid "
             "request: maximum request size for shared resources is 1; found "
             "2"},
        Case{"unknown_comes_first",
             {kEnvvar},
             {"A::0", "D::0"},
             kFailMore,
             "error invalid allocation request for \"nvidia.com/gpu\": invalid "
             "request: unknown device: D::0"},
        Case{"one_share",
             {kEnvvar},
             {"A::0"},
             kFailMore,
             "env NVIDIA_VISIBLE_DEVICES=A"},
        Case{"no_sharing",
             {kEnvvar},
             {"A::0", "B::0"},
             [](AllocateSettings& s) {
               s.fail_requests_greater_than_one = true;
               s.sharing_active = false;
             },
             "env NVIDIA_VISIBLE_DEVICES=A,B"}),
    [](const auto& row) { return row.param.name; });

TEST(Allocate, WholeGpusAreNotSharesEvenWhenSharesAreLimited) {
  const auto view = TestView({{"A", 0}, {"B", 0}, {"C", 4}});
  AllocateSettings settings;
  settings.sharing_active = settings.fail_requests_greater_than_one = true;
  EXPECT_TRUE(Allocate(*view, settings, {"A", "B"}, "").ok());
}

TEST(AllocateSettingsOfANode, ControlDevicesBelowTheDriverRoot) {
  const auto dir = TempDir::Create();
  ASSERT_TRUE(dir.ok());
  const auto touch = [&](const std::string& path) {
    const std::string full = dir->path() + path;
    ASSERT_TRUE(MakeDirectories(full.substr(0, full.rfind('/'))).ok());
    ASSERT_TRUE(WriteFileAtomically(full, "").ok());
  };
  touch("/dev/nvidiactl");
  touch("/dev/nvidia-modeset");
  config::Plan plan;
  auto settings = MakeAllocateSettings(plan, dir->path());
  ASSERT_TRUE(settings.ok());
  EXPECT_THAT(settings->control_devices,
              ElementsAre("/dev/nvidiactl", "/dev/nvidia-modeset"));

  touch("/driver-root/dev/nvidia-uvm");
  settings = MakeAllocateSettings(plan, dir->path());
  ASSERT_TRUE(settings.ok());
  EXPECT_THAT(settings->control_devices, ElementsAre("/dev/nvidia-uvm"));
}

TEST(AllocateSettingsOfANode, ImexChannelMustBeACharacterDevice) {
  const auto dir = TempDir::Create();
  ASSERT_TRUE(dir.ok());
  config::Plan plan;
  plan.imex.channel_ids = {0};
  auto settings = MakeAllocateSettings(plan, dir->path());
  ASSERT_TRUE(settings.ok());
  EXPECT_THAT(settings->imex_channels, IsEmpty());
  plan.imex.required = true;
  EXPECT_EQ(MakeAllocateSettings(plan, dir->path()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace rondo::deviceplugin
