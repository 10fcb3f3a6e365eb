// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <fstream>
#include <sstream>

#include "base/status.h"
#include "gtest/gtest.h"

namespace rondo::cli {
namespace {

std::string* last_call = nullptr;

int Record(int argc, char** argv) {
  *last_call = argv[0];
  for (int i = 1; i < argc; ++i) *last_call += std::string(" ") + argv[i];
  return 7;
}

struct Outcome {
  int code;
  std::string call, out, err;
};

Outcome RunWords(std::vector<std::string> words) {
  const CommandTable table = {
      .commands = {{"agent", "run the node agent", "a kubelet", Record},
                   {"check", "check a config", "nothing", Record},
                   {"checker", nullptr, "check", Record}},
      .aliases = {{"nvidia-device-plugin", Record}}};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  std::string call;
  last_call = &call;
  std::ostringstream out, err;
  const int code =
      Dispatch(table, static_cast<int>(argv.size()), argv.data(), out, err);
  return {code, call, out.str(), err.str()};
}

TEST(Dispatch, RunsTheNamedCommand) {
  const Outcome o = RunWords({"/usr/bin/rondo", "check", "-", "--strict"});
  EXPECT_EQ(o.code, 7);
  EXPECT_EQ(o.call, "check - --strict");
}

// As on a full disk.
TEST(Dispatch, OutputThatIsLostIsAFailure) {
  std::ofstream out("/dev/full");
  std::ostringstream err;
  std::string rondo = "rondo", help = "help";
  char* argv[] = {rondo.data(), help.data(), nullptr};
  EXPECT_EQ(Dispatch({}, 2, argv, out, err), kExitFailure);
  EXPECT_EQ(err.str(), "rondo: cannot write the output\n");
}

TEST(Dispatch, AnswersToTheNamesOfNvidiasImage) {
  const Outcome o =
      RunWords({"/usr/bin/nvidia-device-plugin", "--mig-strategy=x"});
  EXPECT_EQ(o.code, 7);
  EXPECT_EQ(o.call, "/usr/bin/nvidia-device-plugin --mig-strategy=x");
}

TEST(Dispatch, ListsCommandsWithWhatTheyNeed) {
  for (const auto& words : {std::vector<std::string>{"rondo"},
                            std::vector<std::string>{"rondo", "--help"}}) {
    const Outcome o = RunWords(words);
    EXPECT_EQ(o.code, kExitOk);
    EXPECT_NE(o.out.find("  check  check a config (needs nothing)\n"),
              std::string::npos);
    EXPECT_EQ(o.out.find("checker"), std::string::npos);
  }
  EXPECT_EQ(RunWords({"rondo", "checker"}).call, "checker");
}

TEST(Dispatch, HelpOfACommandIsItsOwn) {
  EXPECT_EQ(RunWords({"rondo", "help", "check"}).call, "check --help");
  EXPECT_EQ(RunWords({"rondo", "help", "zzz"}).code, kExitUsage);
}

TEST(Dispatch, SuggestsTheNearestCommand) {
  const Outcome o = RunWords({"rondo", "chekc"});
  EXPECT_EQ(o.code, kExitUsage);
  EXPECT_EQ(o.err,
            "rondo: no command 'chekc'; did you mean 'check'? (`rondo help` "
            "lists them)\n");
  EXPECT_EQ(RunWords({"rondo", "zzz"}).err.find("did you mean"),
            std::string::npos);
}

}  // namespace
}  // namespace rondo::cli
