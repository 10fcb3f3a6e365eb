// SPDX-License-Identifier: Apache-2.0
#include "configmanager/options.h"

#include <map>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::configmanager {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Environment = std::map<std::string, std::string, std::less<>>;

ParsedOptions Parse(std::vector<std::string> words,
                    const Environment& environment) {
  words.insert(words.begin(), "config-manager");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return ParseOptions(
      static_cast<int>(argv.size()), argv.data(), [&](absl::string_view name) {
        const auto it = environment.find(std::string(name));
        return it == environment.end() ? std::nullopt
                                       : std::optional<std::string>(it->second);
      });
}

const Environment kLeast = {{"NODE_NAME", "n1"},
                            {"CONFIG_FILE_SRCDIR", "/available-configs"},
                            {"CONFIG_FILE_DST", "/config/config.yaml"}};

TEST(Options, DefaultsAreNvidias) {
  const auto parsed = Parse({}, kLeast);
  ASSERT_TRUE(parsed.options);
  EXPECT_FALSE(parsed.options->oneshot);
  EXPECT_EQ(parsed.options->node_label, "nvidia.com/device-plugin.config");
  EXPECT_TRUE(parsed.options->fallback_strategies.empty());
  EXPECT_TRUE(parsed.options->send_signal);
  EXPECT_EQ(parsed.options->signal, 1);
  EXPECT_EQ(parsed.options->process, "nvidia-device-plugin");
}

TEST(Options, TheCommandLineIsStrongerThanTheEnvironment) {
  Environment environment = kLeast;
  environment.insert({{"ONESHOT", "true"},
                      {"SEND_SIGNAL", ""},  // set but empty: false
                      {"SIGNAL", "12"},
                      {"FALLBACK_STRATEGIES", "named, single"},
                      {"PROCESS_TO_SIGNAL", "gpu-feature-discovery"},
                      {"DEFAULT_CONFIG", "a"}});
  auto parsed = Parse({}, environment);
  ASSERT_TRUE(parsed.options);
  EXPECT_TRUE(parsed.options->oneshot);
  EXPECT_FALSE(parsed.options->send_signal);
  EXPECT_EQ(parsed.options->signal, 12);
  EXPECT_THAT(parsed.options->fallback_strategies,
              ElementsAre("named", "single"));
  EXPECT_EQ(parsed.options->process, "gpu-feature-discovery");
  parsed = Parse({"--oneshot=false", "--send-signal", "--signal=10",
                  "--fallback-strategies=empty", "--default-config="},
                 environment);
  ASSERT_TRUE(parsed.options);
  EXPECT_FALSE(parsed.options->oneshot);
  EXPECT_TRUE(parsed.options->send_signal);
  EXPECT_EQ(parsed.options->signal, 10);
  EXPECT_THAT(parsed.options->fallback_strategies, ElementsAre("empty"));
  EXPECT_EQ(parsed.options->default_config, "");
}

TEST(Options, WhatCannotWorkIsExitCode2AndNamesTheFlag) {
  const struct {
    const char* variable;
    const char* value;
    const char* text;
  } kRows[] = {
      {"NODE_NAME", "",
       "--node-name is required and must not be empty [$NODE_NAME]"},
      {"NODE_LABEL", "",
       "--node-label is required and must not be empty [$NODE_LABEL]"},
      {"CONFIG_FILE_SRCDIR", "",
       "--config-file-srcdir is required and must not be empty "
       "[$CONFIG_FILE_SRCDIR]"},
      {"CONFIG_FILE_DST", "",
       "--config-file-dst is required and must not be empty "
       "[$CONFIG_FILE_DST]"},
      {"ONESHOT", "yes", "--oneshot 'yes' is neither true nor false"},
      {"SIGNAL", "HUP", "--signal 'HUP' is no number of a signal"},
      {"SIGNAL", "0", "--signal '0' is no number of a signal"},
  };
  for (const auto& row : kRows) {
    Environment environment = kLeast;
    environment[row.variable] = row.value;
    testing::internal::CaptureStderr();
    const auto parsed = Parse({}, environment);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(row.text));
    EXPECT_FALSE(parsed.options);
    EXPECT_EQ(parsed.exit_code, kExitUsage);
  }
}

}  // namespace
}  // namespace rondo::configmanager
