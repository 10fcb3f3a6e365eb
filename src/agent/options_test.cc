// SPDX-License-Identifier: Apache-2.0
#include "agent/options.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "gtest/gtest.h"

namespace rondo::agent {
namespace {

using Environment = std::map<std::string, std::string>;

ParsedOptions Parse(std::vector<std::string> words,
                    const Environment& environment = {}) {
  words.insert(words.begin(), "agent");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return ParseOptions(
      static_cast<int>(argv.size()), argv.data(),
      [&](absl::string_view name) -> std::optional<std::string> {
        const auto it = environment.find(std::string(name));
        if (it == environment.end()) return std::nullopt;
        return it->second;
      });
}

TEST(ParseOptions, TakesNvidiasFlagsByAllTheirNames) {
  using Given = std::map<std::string, std::string>;
  struct Row {
    std::vector<std::string> words;
    Given given;
  };
  const Row rows[] = {
      {{}, {}},
      {{"--mig-strategy=mixed"}, {{"migStrategy", "mixed"}}},
      {{"--mig-strategy", "mixed"}, {{"migStrategy", "mixed"}}},
      {{"--mig-strategy="}, {{"migStrategy", ""}}},
      {{"--pass-device-specs"}, {{"plugin.passDeviceSpecs", "true"}}},
      {{"--pass-device-specs=false"}, {{"plugin.passDeviceSpecs", "false"}}},
      {{"--driver-root=/x"}, {{"nvidiaDriverRoot", "/x"}}},
      {{"--nvidia-driver-root=/x"}, {{"nvidiaDriverRoot", "/x"}}},
      {{"--device-list-strategy=envvar,cdi-cri"},
       {{"plugin.deviceListStrategy", "envvar,cdi-cri"}}},
      {{"--device-list-strategy=envvar", "--device-list-strategy=cdi-cri"},
       {{"plugin.deviceListStrategy", "envvar,cdi-cri"}}},
      {{"--device-id-strategy=uuid", "--device-id-strategy=index"},
       {{"plugin.deviceIDStrategy", "index"}}},
  };
  for (const Row& row : rows) {
    const ParsedOptions parsed = Parse(row.words);
    ASSERT_TRUE(parsed.options) << testing::PrintToString(row.words);
    EXPECT_EQ(parsed.options->overrides.command_line, row.given)
        << testing::PrintToString(row.words);
  }
}

TEST(ParseOptions, CommandLineWinsOverEnvironment) {
  const Environment environment = {{"CONFIG_FILE", "/env"},
                                   {"RONDO_LISTEN", ""},
                                   {"FALLBACK_STRATEGIES", "empty"}};
  EXPECT_EQ(Parse({}, environment).options->config_file, "/env");
  EXPECT_EQ(Parse({}, environment).options->listen, "") << "set but empty";
  EXPECT_EQ(Parse({}, environment).options->fallback_strategies,
            std::vector<std::string>{"empty"});
  EXPECT_EQ(Parse({"--config-file=/cli", "--listen=:1"}, environment)
                .options->config_file,
            "/cli");
  EXPECT_EQ(Parse({"--listen=:1"}, environment).options->listen, ":1");
}

TEST(ParseOptions, FallbacksAreListsThatMayBeGivenSeveralTimes) {
  using Words = std::vector<std::string>;
  const auto fallbacks = [](const Words& words,
                            const Environment& environment = {}) {
    return Parse(words, environment).options->fallback_strategies;
  };
  EXPECT_EQ(fallbacks({}), (Words{"named", "single"}));
  EXPECT_EQ(fallbacks({}, {{"FALLBACK_STRATEGIES", "single, empty"}}),
            (Words{"single", "empty"}));
  EXPECT_EQ(fallbacks({"--fallback-strategies=single", "--fallback-strategies",
                       "named,empty"}),
            (Words{"single", "named", "empty"}));
  EXPECT_EQ(fallbacks({"--fallback-strategies="}), Words{});
}

TEST(ParseOptions, BadUsageIsExitCode2AndHelpIs0) {
  const struct {
    const char* option;
    const char* told;
  } kRows[] = {{"--no-such-flag",
                "there is no option --no-such-flag (`rondo agent "
                "--help` tells the options)"},
               {"--recovery-quite=5s",
                "there is no option --recovery-quite; did you "
                "mean --recovery-quiet? (`rondo agent --help` "
                "tells the options)"},
               {"--log-level=loud",
                "--log-level: \"loud\" is none of debug, info, "
                "warning, error, off"},
               {"--recovery-quiet=soon",
                "--recovery-quiet: \"soon\" is not a duration "
                "of at most 24h: write for example 5s"},
               {"--recovery-quiet=5",
                "--recovery-quiet: \"5\" is not a duration of at "
                "most 24h: write for example 5s"},
               {"--recovery-quiet=",
                "--recovery-quiet: \"\" is not a duration of at "
                "most 24h: write for example 5s"},
               {"--recovery-quiet=inf",
                "--recovery-quiet: \"inf\" is not a duration of "
                "at most 24h: write for example 5s"}};
  for (const auto& row : kRows) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(Parse({row.option}).exit_code, kExitUsage) << row.option;
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              absl::StrCat("rondo agent: ", row.told, "\n"));
  }
  EXPECT_EQ(Parse({"--recovery-quiet=250ms"}).options->recovery_quiet.count(),
            250);
  EXPECT_EQ(Parse({"stray"}).exit_code, kExitUsage);
  EXPECT_EQ(Parse({"--help"}).exit_code, kExitOk);
  EXPECT_FALSE(Parse({"--help"}).options);
}

}  // namespace
}  // namespace rondo::agent
