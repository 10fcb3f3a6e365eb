// SPDX-License-Identifier: Apache-2.0
//
// What every command's --help tells: for each option that takes a value, what
// kind of value and what holds without it; and the exit statuses.

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/test_shell.h"
#include "gtest/gtest.h"

namespace rondo::cli {
namespace {

Outcome Rondo(const std::string& words) {
  return Shell(absl::StrCat("env -i ", RONDO, " ", words));
}

// Each option's lines: its own, and those that go on in the next column.
std::vector<std::string> OptionsIn(const std::string& help) {
  std::vector<std::string> options;
  bool within = false;
  for (const absl::string_view line : absl::StrSplit(help, '\n')) {
    if (absl::StartsWith(line, "  -")) {
      options.emplace_back(line);
      within = true;
    } else if (within && absl::StartsWith(line, "      ")) {
      absl::StrAppend(&options.back(), line);
    } else {
      within = false;
    }
  }
  return options;
}

class HelpTest : public testing::TestWithParam<const char*> {};

TEST_P(HelpTest, TellsKindAndDefaultOfEachOptionAndTheExitStatus) {
  const Outcome help = Rondo(absl::StrCat(GetParam(), " --help"));
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.text.find("Exit status:"), std::string::npos) << help.text;
  const std::vector<std::string> options = OptionsIn(help.text);
  EXPECT_GE(options.size(), 1u) << help.text;
  for (const std::string& option : options) {
    const std::vector<std::string> words =
        absl::StrSplit(option, ' ', absl::SkipEmpty());
    ASSERT_GE(words.size(), 3u) << "no help: " << option;
    EXPECT_EQ(option.find(" TEXT"), std::string::npos) << option;
    // "--name TYPE help" or "--name help".
    const std::string type = words[1].substr(0, words[1].find('='));
    const bool takes_value =
        type.size() > 2 &&
        type.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == type.npos &&
        type != "NVML" && type != "IMEX";
    if (!takes_value && !absl::StrContains(option, "[=BOOL]")) continue;
    EXPECT_TRUE((takes_value && words[1].find('=') != std::string::npos) ||
                absl::StrContains(option, "default: ") ||
                absl::StrContains(option, "empty = ") ||
                absl::StrContains(option, "REQUIRED"))
        << "what holds without it? " << option;
  }
}

INSTANTIATE_TEST_SUITE_P(, HelpTest,
                         testing::Values("agent", "check", "config-manager",
                                         "demo", "run", "sim", "sim list",
                                         "sim driver", "sim fault",
                                         "sim process", "version"));

TEST(Words, ThatCannotBeUsedAreAnsweredInOneLineWithStatus2) {
  const struct {
    const char* words;
    const char* told;
  } kRows[] = {
      {"agnet", "rondo: no command 'agnet'; did you mean 'agent'?"},
      {"version x", "rondo version: 'x' is not expected"},
      {"demo x", "rondo demo: 'x' is not expected"},
      {"demo --profle X",
       "there is no option --profle; did you mean "
       "--profile?"},
      {"agent x", "rondo agent: 'x' is not expected"},
      {"check", "rondo check: FILE is required"},
      {"check --output yaml /dev/null", "--output: yaml not in {text,json}"},
      {"check --node", "rondo check: --node needs a value"},
      {"config-manager",
       "config-manager: --node-name is required and must "
       "not be empty [$NODE_NAME]"},
      {"run", "rondo run: CMD is required"},
      {"sim", "rondo sim: give --profile, such as 8xH100"},
      {"sim --profle H200 -- true", "did you mean --profile?"},
      {"sim list x", "rondo sim: 'x' is not expected"},
      {"sim process --gpu 0 --pid 0",
       "--pid: Value 0 not in range 1 to "
       "4194304"},
      {"sim fault --gpu 0 xod", "fault: xod not in {xid,lost,ecc,clear}"},
  };
  for (const auto& row : kRows) {
    const Outcome outcome = Rondo(row.words);
    EXPECT_EQ(outcome.code, 2) << row.words;
    EXPECT_NE(outcome.text.find(row.told), std::string::npos) << outcome.text;
    EXPECT_EQ(outcome.text.find('\n'), outcome.text.size() - 1) << outcome.text;
  }
}

}  // namespace
}  // namespace rondo::cli
