// SPDX-License-Identifier: Apache-2.0

#include "config/document.h"

#include "absl/strings/str_cat.h"
#include "config/compile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::config {
namespace {

using testing::HasSubstr;

// "configmap name/key" for each config, then "problem: …" lines.
std::string Summary(const Documents& documents) {
  std::string out;
  for (const Document& document : documents.configs) {
    absl::StrAppend(&out, KindName(document.kind), " ", document.name, "/",
                    document.key, "\n");
  }
  for (const Problem& problem : documents.problems) {
    absl::StrAppend(&out, "problem: ", Describe(problem), "\n");
  }
  return out;
}

TEST(DocumentTest, KnowsWhatItSees) {
  const struct {
    const char* text;
    const char* summary;
  } kRows[] = {
      {"", "config /\n"},
      {"version: v1\n", "config /\n"},
      {"version: v1\n---\nversion: v1\n", "config /\n"},
      {"a: [\n", "config /\n"},
      {"kind: ConfigMap\nmetadata: {name: c}\ndata: {a: 'x', b: 'y'}\n",
       "configmap c/a\nconfigmap c/b\n"},
      {"data: {any: 'version: v1'}\n", "configmap /any\n"},
      {"kind: Namespace\n---\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: "
       "x}\n---\nkind: ConfigMap\nmetadata: {name: d}\ndata: {a: x}\n",
       "configmap c/a\nconfigmap d/a\n"},
      {"kind: List\nitems: [{kind: ConfigMap, metadata: {name: c}, data: {a: "
       "x}}]\n",
       "configmap c/a\n"},
      {"config: {map: {default: 'version: v1'}}\n", "helm /default\n"},
      {"devicePlugin: {config: {create: true, name: c, data: {any: x}}}\n",
       "helm c/any\n"},
      {"kind: ClusterPolicy\nspec: {devicePlugin: {config: {name: c, default: "
       "any}}}\n",
       ""},
      {"{\"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"c\"}, \"data\": "
       "{\"a\": \"version: v1\\n\"}}",
       "configmap c/a\n"},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(Summary(ReadDocuments(row.text)), row.summary) << row.text;
  }
}

TEST(DocumentTest, SaysWhatIsWrongWithAManifest) {
  const struct {
    const char* text;
    const char* problem;
  } kRows[] = {
      {"kind: Pod\n", "no config in this manifest"},
      {"kind: ConfigMap\ndata: {a: {version: v1}}\n",
       "the config `a` must be text, not YAML of its own"},
      {"kind: ConfigMap\ndata: {a: x}\n---\nkind: [\n",
       "line 5, column 1: not valid YAML"},
      {"devicePlugin: {config: {create: true, name: c}}\n",
       "create without `data`"},
      {"devicePlugin: {config: {create: true, data: {a: x}}}\n",
       "create without `name`"},
      {"devicePlugin: {config: {name: c, data: {a: x}}}\n",
       "`data` has no effect without `create: true`"},
      {"config: {name: c, map: {default: x}}\n",
       "config.map and config.name exclude each other"},
      {"config: {map: {a: x, b: y}}\n", "NVIDIA's chart refuses these values"},
      {"kind: ClusterPolicy\nspec: {devicePlugin: {config: {name: c, create: "
       "true, default: x}}}\n",
       "`create` is no field of a ClusterPolicy"},
      // gpu-operator #412
      {"kind: ClusterPolicy\nspec: {devicePlugin: {}}\n",
       "spec.devicePlugin.config.name is empty"},
      {"kind: ClusterPolicy\nspec: {devicePlugin: {config: {name: c}}}\n",
       "no default"},
  };
  for (const auto& row : kRows) {
    EXPECT_THAT(Summary(ReadDocuments(row.text)), HasSubstr(row.problem))
        << row.text;
  }
}

TEST(DocumentTest, ProblemsPointIntoTheFile) {
  const struct {
    const char* text;
    int line;
    int column;
  } kRows[] = {
      {"version: v2\n", 1, 10},
      {"kind: ConfigMap\ndata:\n  a: |-\n    # note\n    version: v2\n", 5, 14},
      {"kind: ConfigMap\ndata:\n  a: |\n\n      version: v2\n", 5, 16},
      {"kind: ConfigMap\ndata:\n  a: 'version: v2'\n", 3, 6},
      {"---\nkind: ConfigMap\ndata:\n  a: >\n    version: v2\n", 4, 6},
  };
  for (const auto& row : kRows) {
    const Documents documents = ReadDocuments(row.text);
    ASSERT_EQ(documents.configs.size(), 1u);
    std::vector<Problem> problems = Compile(documents.configs[0].text).problems;
    ASSERT_EQ(problems.size(), 1u);
    MoveToFile(documents.configs[0], problems);
    EXPECT_EQ(problems[0].line, row.line) << row.text;
    EXPECT_EQ(problems[0].column, row.column) << row.text;
  }
}

TEST(DocumentTest, ValuesThatBecomeVariablesOfThePlugin) {
  const Documents chart = ReadDocuments(
      "migStrategy: mixed\ncompatWithCPUManager: true\nconfig: {default: a, "
      "fallbackStrategies: [empty], map: {a: x}}\n");
  ASSERT_TRUE(chart.selection);
  EXPECT_EQ(chart.selection->default_key, "a");
  EXPECT_EQ(chart.selection->fallbacks, std::vector<std::string>{"empty"});
  EXPECT_EQ(chart.selection->environment.at("MIG_STRATEGY"), "mixed");
  EXPECT_EQ(chart.selection->environment.at("PASS_DEVICE_SPECS"), "true");
  const Documents policy = ReadDocuments(
      "kind: ClusterPolicy\nspec:\n  mig: {strategy: single}\n  cdi: {enabled: "
      "false}\n  devicePlugin:\n    config: {name: c, default: any}\n    env:\n"
      "    - {name: FAIL_ON_INIT_ERROR, value: \"false\"}\n");
  ASSERT_TRUE(policy.selection);
  EXPECT_EQ(policy.selection->config_map, "c");
  const auto& environment = policy.selection->environment;
  EXPECT_EQ(environment.at("MIG_STRATEGY"), "single");
  EXPECT_EQ(environment.at("DEVICE_LIST_STRATEGY"), "envvar");
  EXPECT_EQ(environment.at("FAIL_ON_INIT_ERROR"), "false");
}

}  // namespace
}  // namespace rondo::config
