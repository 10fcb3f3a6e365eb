// SPDX-License-Identifier: Apache-2.0
//
// Runs `rondo check` in test/golden/check/in and compares what it prints and
// its exit code with test/golden/check/NAME.txt or .json. To write the files
// anew: RONDO_UPDATE_GOLDEN=1 ctest -R cli_check_test

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "cli/check_command.h"
#include "cli/check_node.h"
#include "gtest/gtest.h"

namespace rondo::cli {
namespace {

struct Outcome {
  int exit_code;
  std::string out;
  std::string err;
};

Outcome Check(const std::string& arguments, const std::string& input = "") {
  std::vector<std::string> words = {"check"};
  for (absl::string_view word :
       absl::StrSplit(arguments, ' ', absl::SkipEmpty())) {
    words.emplace_back(word);
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream err;
  const int code =
      RunCheckCommand(static_cast<int>(argv.size()), argv.data(), in, out, err);
  return {code, out.str(), err.str()};
}

struct Golden {
  const char* file;  // below test/golden/check
  const char* arguments;
};

class GoldenTest : public testing::TestWithParam<Golden> {};

TEST_P(GoldenTest, PrintsWhatIsRecorded) {
  const Outcome outcome = Check(GetParam().arguments);
  EXPECT_EQ(outcome.err, "");
  const std::string text =
      absl::StrCat("$ rondo check ", GetParam().arguments, "\n", outcome.out,
                   "exit code ", outcome.exit_code, "\n");
  const std::string path = absl::StrCat("../", GetParam().file);
  if (std::getenv("RONDO_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream recorded(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(recorded), {}), text);
}

std::string GoldenName(const testing::TestParamInfo<Golden>& info) {
  std::string name;
  for (char c : std::string(info.param.file)) {
    name.push_back(std::isalnum(static_cast<unsigned char>(c)) ? c : '_');
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    , GoldenTest,
    testing::Values(
        Golden{"bare.txt", "bare.yaml"},
        Golden{"bare.json", "bare.yaml --output=json"},
        Golden{"bare_on_node.txt", "bare.yaml --node node-a100.json"},
        Golden{"typos.txt", "typos.yaml"},
        Golden{"typos_strict.txt", "typos.yaml --strict"},
        Golden{"refused.txt", "refused.yaml"},
        Golden{"refused.json", "refused.yaml --output=json"},
        Golden{"mps.txt", "mps.yaml"},
        Golden{"mps.json", "mps.yaml --output json"},
        Golden{"tab.txt", "tab.yaml"}, Golden{"huge.txt", "huge.yaml"},
        Golden{"rondo.txt", "rondo.yaml"},
        Golden{"rondo_on_node.txt", "rondo.yaml --node node-a100.json"},
        Golden{"rondo_too_big.txt", "rondo.yaml --node node-t4.json"},
        Golden{"rondo_gone.txt", "rondo_gone.yaml --against rondo.yaml"},
        Golden{"rondo_gone_strict.txt", "rondo_gone.yaml --strict"},
        Golden{"mixed.txt", "mixed.yaml"},
        Golden{"mixed_on_node.txt", "mixed.yaml --node node-plain.json"},
        Golden{"configmap.txt", "configmap.yaml"},
        Golden{"configmap_model.txt", "configmap.yaml --node node-a100.json"},
        Golden{"configmap_label.txt", "configmap.yaml --node node-t4.json"},
        Golden{"configmap_label.json",
               "configmap.yaml --node node-t4.json --output json"},
        Golden{"configmap_default.txt",
               "configmap.yaml --default-config a100 --node node-plain.json"},
        Golden{"clusterpolicy.txt", "clusterpolicy.yaml configmap.yaml"},
        Golden{"clusterpolicy_alone.txt", "clusterpolicy.yaml"},
        Golden{"helm_operator.txt", "helm-operator.yaml"},
        Golden{"helm_plugin.txt", "helm-plugin.yaml"},
        Golden{"helm_wrong_default.txt", "helm-wrong-default.yaml"},
        Golden{"folder.txt", "folder --node node-plain.json"},
        Golden{"against.txt", "rondo.yaml --against bare.yaml"},
        Golden{"against.json", "bare.yaml --against mixed.yaml --output json"},
        Golden{"against_loss.txt", "agent_loss.yaml --against rondo.yaml"},
        Golden{"against_same.txt", "bare.yaml --against bare.yaml"}),
    GoldenName);

TEST(CheckCommandTest, ReadsStandardInput) {
  const Outcome outcome = Check("- --output=json", "version: v2\n");
  EXPECT_EQ(outcome.exit_code, 2);
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json[0]["file"], "-");
  EXPECT_EQ(json[0]["verdict"], "refused");
  EXPECT_EQ(json[0]["nvidia"]["verdict"], "refused");
}

TEST(CheckCommandTest, StandardInputHasANameInAllOfTheText) {
  const Outcome outcome = Check("- --node node-plain.json", "version: v1\n");
  EXPECT_NE(outcome.out.find("(stdin): config: ok"), std::string::npos);
  EXPECT_NE(outcome.out.find("uses       (stdin)\n"), std::string::npos)
      << outcome.out;
}

TEST(CheckCommandTest, TheJsonHasTheKeysOfTheContract) {
  const auto json =
      nlohmann::json::parse(Check("typos.yaml --output=json").out);
  ASSERT_EQ(json.size(), 1u);
  std::vector<std::string> keys;
  for (const auto& [key, value] : json[0].items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"advertise", "effective", "error",
                                            "file", "key", "kind", "nvidia",
                                            "problems", "verdict"}));
  for (const auto& problem : json[0]["problems"]) {
    EXPECT_EQ(problem.size(), 6u);
    EXPECT_TRUE(problem["line"].is_number());
  }
}

TEST(CheckCommandTest, BadUsageIsExitCode2WithAReason) {
  const struct {
    const char* arguments;
    const char* error;
  } kRows[] = {
      {"", "FILE is required"},
      {"no-such-file.yaml", "no-such-file.yaml"},
      {"bare.yaml --output=xml", "xml"},
      {"bare.yaml --strct", "--strct"},
      {"bare.yaml --node bare.yaml", "not JSON of a node"},
      {"bare.yaml --against no-such-file.yaml", "no-such-file.yaml"},
  };
  for (const auto& row : kRows) {
    const Outcome outcome = Check(row.arguments);
    EXPECT_EQ(outcome.exit_code, 2) << row.arguments;
    EXPECT_NE(outcome.err.find(row.error), std::string::npos)
        << row.arguments << " gave " << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(Check("--help").exit_code, 0);
}

TEST(CheckNodeTest, RefusesWhatIsNoGpuNode) {
  EXPECT_FALSE(ReadNode("{}").ok());
  EXPECT_FALSE(ReadNode("[]").ok());
  EXPECT_FALSE(ReadNode(R"({"kind":"Pod"})").ok());
  EXPECT_FALSE(ReadNode(R"({"kind":"Node","metadata":3,"status":[]})").ok());
  EXPECT_FALSE(ReadNode(R"({"kind":"Node","metadata":{"name":"x"}})").ok());
  EXPECT_FALSE(ReadNode(R"({"kind":"List","items":[{},{}]})").ok());
}

TEST(CheckNodeTest, GpusInMigModeAreNotOfferedWhole) {
  const auto facts = ReadNode(R"({"kind": "Node", "metadata": {"labels": {
      "nvidia.com/gpu.count": "2", "nvidia.com/gpu.replicas": "0",
      "nvidia.com/mig-1g.10gb.count": "14"}}})");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->groups.size(), 1u);
  EXPECT_EQ(facts->groups.at("nvidia.com/mig-1g.10gb").count, 14);
}

TEST(CheckCommandTest, TheChosenConfigMayBeARefusedOne) {
  const TempDir dir = *TempDir::Create("rondo-check");
  ASSERT_TRUE(WriteFileAtomically(
                  dir.path() + "/map.yaml",
                  "kind: ConfigMap\ndata: {good: '', bad: 'version: v2'}\n")
                  .ok());
  ASSERT_TRUE(WriteFileAtomically(dir.path() + "/node.json", R"({"kind": "Node",
      "metadata": {"labels": {"nvidia.com/gpu.count": "1",
                              "nvidia.com/device-plugin.config": "bad"}}})")
                  .ok());
  const Outcome outcome = Check(
      absl::StrCat(dir.path(), "/map.yaml --node ", dir.path(), "/node.json"));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.out.find("uses       bad, which is refused\n"),
            std::string::npos)
      << outcome.out;
}

TEST(CheckCommandTest, AFolderMayHoldThingsThatCannotBeRead) {
  const TempDir dir = *TempDir::Create("rondo-check");
  ASSERT_TRUE(WriteFileAtomically(dir.path() + "/a", "version: v1\n").ok());
  ASSERT_EQ(mkfifo((dir.path() + "/fifo").c_str(), 0600), 0);
  const Outcome outcome = Check(dir.path());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST(CheckNodeTest, ReadsMigLabels) {
  const auto facts =
      ReadNode(R"({"kind":"Node","metadata":{"name":"m","labels":{
      "nvidia.com/gpu.count":"1","nvidia.com/gpu.memory":"81920",
      "nvidia.com/mig-1g.10gb.count":"7","nvidia.com/mig-1g.10gb.memory":"9856",
      "nvidia.com/other.count":"3"}}})");
  ASSERT_TRUE(facts.ok());
  ASSERT_EQ(facts->groups.size(), 2u);
  EXPECT_EQ(facts->groups.at("nvidia.com/mig-1g.10gb").count, 7);
  EXPECT_EQ(facts->groups.at("nvidia.com/mig-1g.10gb").memory_bytes,
            uint64_t{9856} << 20);
}

}  // namespace
}  // namespace rondo::cli
