// SPDX-License-Identifier: Apache-2.0

#include "config/merge.h"

#include "config/compile.h"
#include "config/flag_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::config {
namespace {

using Variables = std::map<std::string, std::string>;

Getenv From(const Variables& variables) {
  return [variables](absl::string_view name) -> std::optional<std::string> {
    const auto it = variables.find(std::string(name));
    if (it == variables.end()) return std::nullopt;
    return it->second;
  };
}

CompileResult Merge(absl::string_view file, const Variables& environment,
                    const Variables& command_line = {}) {
  return Compile(file, Overrides{command_line}, From(environment));
}

std::string FirstError(const CompileResult& result) {
  for (const Problem& problem : result.problems) {
    if (problem.severity == Severity::kError) return problem.message;
  }
  return "";
}

TEST(MergeTest, CommandLineBeatsEnvironmentBeatsFileBeatsDefault) {
  const char* file = "flags: {migStrategy: single}";
  EXPECT_EQ(Merge("", {}).plan->flags.mig_strategy, MigStrategy::kNone);
  EXPECT_EQ(Merge(file, {}).plan->flags.mig_strategy, MigStrategy::kSingle);
  EXPECT_EQ(Merge(file, {{"MIG_STRATEGY", "mixed"}}).plan->flags.mig_strategy,
            MigStrategy::kMixed);
  EXPECT_EQ(Merge(file, {{"MIG_STRATEGY", "mixed"}}, {{"migStrategy", "none"}})
                .plan->flags.mig_strategy,
            MigStrategy::kNone);
}

TEST(MergeTest, AnOverriddenFileValueIsSaid) {
  const CompileResult result =
      Merge("flags: {migStrategy: single}", {{"MIG_STRATEGY", "none"}});
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.problems[0].message,
            "`migStrategy` of the file is overridden by MIG_STRATEGY in the "
            "environment: none");
  EXPECT_TRUE(Merge("flags: {migStrategy: none}", {{"MIG_STRATEGY", "none"}})
                  .problems.empty());
}

TEST(MergeTest, SetButEmptyCountsAsSet) {
  EXPECT_EQ(FirstError(Merge("", {{"MIG_STRATEGY", ""}})),
            "unknown MIG strategy: ");
  EXPECT_FALSE(
      Merge("flags: {failOnInitError: true}", {{"FAIL_ON_INIT_ERROR", ""}})
          .plan->flags.fail_on_init_error);
  EXPECT_EQ(Merge("", {{"KUBELET_SOCKET", ""}}).plan->flags.kubelet_socket, "");
  EXPECT_EQ(FirstError(Merge("", {{"DEVICE_LIST_STRATEGY", ""}})),
            "invalid --device-list-strategy option: invalid strategy: ");
}

TEST(MergeTest, BooleansOfTheEnvironmentAreGos) {
  for (const char* yes : {"1", "t", "T", "true", "TRUE", "True"}) {
    EXPECT_TRUE(
        Merge("", {{"PASS_DEVICE_SPECS", yes}}).plan->flags.pass_device_specs)
        << yes;
  }
  for (const char* no : {"0", "f", "F", "false", "FALSE", "False"}) {
    EXPECT_FALSE(
        Merge("", {{"FAIL_ON_INIT_ERROR", no}}).plan->flags.fail_on_init_error)
        << no;
  }
  EXPECT_EQ(FirstError(Merge("", {{"FAIL_ON_INIT_ERROR", "yes"}})),
            "could not parse \"yes\" as bool value from environment variable "
            "\"FAIL_ON_INIT_ERROR\" for flag fail-on-init-error: "
            "strconv.ParseBool: parsing \"yes\": invalid syntax");
  EXPECT_EQ(
      FirstError(Merge("", {}, {{"failOnInitError", "yes"}})),
      "invalid boolean value \"yes\" for -fail-on-init-error: parse error");
}

TEST(MergeTest, ListsSplitOutsideTheFileOnly) {
  const std::vector<DeviceListStrategy> both = {DeviceListStrategy::kEnvvar,
                                                DeviceListStrategy::kCdiCri};
  EXPECT_EQ(Merge("", {{"DEVICE_LIST_STRATEGY", "envvar, cdi-cri"}})
                .plan->flags.device_list_strategies,
            both);
  EXPECT_EQ(Merge("", {}, {{"plugin.deviceListStrategy", "envvar,cdi-cri"}})
                .plan->flags.device_list_strategies,
            both);
  EXPECT_EQ(
      Merge("flags: {plugin: {deviceListStrategy: [envvar, cdi-cri]}}", {})
          .plan->flags.device_list_strategies,
      both);
  EXPECT_EQ(
      FirstError(Merge(
          "flags: {plugin: {deviceListStrategy: \"envvar,cdi-cri\"}}", {})),
      "invalid --device-list-strategy option: invalid strategy: "
      "envvar,cdi-cri");
}

TEST(MergeTest, AMistakeOfTheEnvironmentNamesItsVariable) {
  const CompileResult result =
      Merge("", {{"DEVICE_LIST_STRATEGY", "cdi-crii"}});
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.problems[0].hint,
            "DEVICE_LIST_STRATEGY in the environment sets it; did you mean "
            "cdi-cri?");
}

TEST(MergeTest, AListWithoutAStrategyIsWarnedOf) {
  const CompileResult result =
      Merge("flags: {plugin: {deviceListStrategy: []}}", {});
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.problems[0].code, Code::kFlagIgnored);
  EXPECT_TRUE(result.plan->flags.device_list_strategies.empty());
}

TEST(MergeTest, AnUnknownStrategyIsIgnoredOnlyInTheListOfAFile) {
  const CompileResult file =
      Merge("flags: {plugin: {deviceListStrategy: [envvar, bogus]}}", {});
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file.plan->flags.device_list_strategies.size(), 1u);
  EXPECT_EQ(file.problems[0].code, Code::kFlagIgnored);
  EXPECT_EQ(FirstError(Merge("", {{"DEVICE_LIST_STRATEGY", "envvar,bogus"}})),
            "invalid --device-list-strategy option: invalid strategy: bogus");
}

TEST(MergeTest, ValuesAreCheckedAfterMerging) {
  const struct {
    const char* key;
    const char* value;
    const char* error;
  } kRows[] = {
      {"migStrategy", "singel", "unknown MIG strategy: singel"},
      {"plugin.deviceIDStrategy", "name",
       "invalid --device-id-strategy option: name"},
      {"plugin.sharedDevicesAllocationPolicy", "random",
       "invalid --shared-devices-allocation-policy option: random"},
      {"deviceDiscoveryStrategy", "wsl",
       "invalid --device-discovery-strategy option wsl"},
      {"imex.channelIDs", "1",
       "invalid IMEX channel IDs: invalid IMEX config: channelIDs must be [] "
       "or "
       "[0]; found [1]"},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(FirstError(Merge("", {}, {{row.key, row.value}})), row.error);
  }
  // A bad value in the file does no harm where it is overridden.
  EXPECT_TRUE(
      Merge("flags: {migStrategy: singel}", {{"MIG_STRATEGY", "single"}}).ok());
}

TEST(MergeTest, DevRootFollowsDriverRoot) {
  const Flags flags =
      Merge("", {{"NVIDIA_DRIVER_ROOT", "/run/nvidia/driver"}}).plan->flags;
  EXPECT_EQ(flags.nvidia_dev_root, "/run/nvidia/driver");
}

TEST(MergeTest, TheFirstVariableThatIsSetCounts) {
  EXPECT_EQ(
      Merge("", {{"NVIDIA_CTK_PATH", "/b"}}).plan->flags.nvidia_cdi_hook_path,
      "/b");
  EXPECT_EQ(
      Merge("", {{"NVIDIA_CTK_PATH", "/b"}, {"NVIDIA_CDI_HOOK_PATH", "/a"}})
          .plan->flags.nvidia_cdi_hook_path,
      "/a");
}

// Every row of the table reaches the plan: setting it changes the printed plan
// or one of the fields that are not printed.
TEST(MergeTest, EveryFlagIsMerged) {
  const std::map<std::string, std::string> words = {
      {"migStrategy", "mixed"},
      {"deviceDiscoveryStrategy", "nvml"},
      {"plugin.deviceListStrategy", "volume-mounts"},
      {"plugin.deviceIDStrategy", "index"},
      {"plugin.sharedDevicesAllocationPolicy", "packed"},
      {"imex.channelIDs", "0"},
      {"failOnInitError", "false"},
      {"useNodeFeatureAPI", "false"}};
  const auto print = [](const Plan& plan) {
    return RunningWithConfigJson(plan, 0) + plan.flags.config_file +
           plan.flags.kubelet_socket + plan.flags.cdi_feature_flags +
           plan.flags.cdi_disable_hooks;
  };
  const std::string base = print(*Compile("").plan);
  for (const FlagInfo& flag : kFlags) {
    const auto it = words.find(flag.key);
    const std::string value = it != words.end()              ? it->second
                              : flag.type == FlagType::kBool ? "true"
                                                             : "/elsewhere";
    for (const char* variable : flag.environment) {
      if (variable == nullptr) continue;
      EXPECT_NE(print(*Merge("", {{variable, value}}).plan), base) << variable;
    }
    EXPECT_NE(print(*Merge("", {}, {{flag.key, value}}).plan), base)
        << flag.key;
  }
}

TEST(MergeTest, PrintsWhatNvidiasPluginLogs) {
  const std::string json = RunningWithConfigJson(*Compile("").plan);
  EXPECT_EQ(json.substr(0, json.find("\"rondo\"")),
            R"({
  "version": "v1",
  "flags": {
    "migStrategy": "none",
    "failOnInitError": true,
    "mpsRoot": "",
    "nvidiaDriverRoot": "/",
    "nvidiaDevRoot": "/",
    "gdrcopyEnabled": false,
    "gdsEnabled": false,
    "mofedEnabled": false,
    "useNodeFeatureAPI": true,
    "deviceDiscoveryStrategy": "auto",
    "plugin": {
      "passDeviceSpecs": false,
      "deviceListStrategy": [
        "envvar"
      ],
      "deviceIDStrategy": "uuid",
      "cdiAnnotationPrefix": "cdi.k8s.io/",
      "nvidiaCTKPath": "/usr/bin/nvidia-ctk",
      "containerDriverRoot": "/driver-root",
      "sharedDevicesAllocationPolicy": "distributed"
    }
  },
  "resources": {
    "gpus": [
      {
        "pattern": "*",
        "name": "nvidia.com/gpu"
      }
    ]
  },
  "sharing": {
    "timeSlicing": {}
  },
  "imex": {},
  )");
}

}  // namespace
}  // namespace rondo::config
