// SPDX-License-Identifier: Apache-2.0

#include "config/yaml.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace rondo::config::yaml {
namespace {

// The first document as JSON, or "line:column message".
std::string Read(absl::string_view text) {
  const Parsed parsed = Parse(text);
  if (parsed.error) {
    return absl::StrCat(parsed.error->mark.line, ":", parsed.error->mark.column,
                        " ", parsed.error->message);
  }
  return ToJson(*parsed.documents.at(0));
}

TEST(YamlTest, ScalarsAreThoseOfYaml11) {
  const struct {
    const char* text;
    const char* json;
  } kRows[] = {
      {"yes", "true"},
      {"Off", "false"},
      {"y", "true"},
      {"~", "null"},
      {"", "null"},
      {"null", "null"},
      {"'yes'", "\"yes\""},
      {"yEs", "\"yEs\""},
      {"010", "8"},
      {"08", "8"},
      {"0x10", "16"},
      {"0b11", "3"},
      {"0o17", "15"},
      {"1_000", "1000"},
      {"1e2", "100"},
      {"4.0", "4"},
      {"4.5", "4.5"},
      {"-3", "-3"},
      {"+4", "4"},
      {".5", "0.5"},
      {"1e21", "1e+21"},
      {"0:1", "\"0:1\""},
      {"12:30:45", "\"12:30:45\""},
      {"2001-01-01", "\"2001-01-01\""},
      {"9223372036854775807", "9223372036854775807"},
      {"18446744073709551615", "18446744073709551615"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"99999999999999999999", "100000000000000000000"},
      {"!!str 4", "\"4\""},
      {"!!int \"4\"", "4"},
      {"!x 4", "\"4\""},
      {"!!binary aGk=", "\"hi\""},
      {"\"a\\u0041\"", "\"aA\""},
      {"a<b", "\"a\\u003cb\""},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(Read(absl::StrCat("k: ", row.text)),
              absl::StrCat("{\"k\":", row.json, "}"))
        << row.text;
  }
}

TEST(YamlTest, KeysBecomeStrings) {
  EXPECT_EQ(Read("{y: 1, 0x10: 2, 1.5: 3, a b: 4}"),
            R"({"1.5":3,"16":2,"a b":4,"true":1})");
  EXPECT_EQ(Read("{~: 1}"), "1:2 unsupported map key: null");
  EXPECT_EQ(
      Read("{[a]: 1}"),
      "1:2 invalid map key: a list or a map, or a bracket that is not closed");
}

TEST(YamlTest, AnchorsAndMergesAreWrittenOut) {
  EXPECT_EQ(Read("a: &x [1]\nb: *x"), R"({"a":[1],"b":[1]})");
  EXPECT_EQ(Read("{<<: {a: 1, b: 1}, a: 2}"), R"({"a":2,"b":1})");
  // A merge overrides what stands above it.
  EXPECT_EQ(Read("{a: 2, <<: {a: 1}}"), R"({"a":1})");
  EXPECT_EQ(Read("{<<: [{a: 1}, {a: 2, b: 2}]}"), R"({"a":1,"b":2})");
  EXPECT_EQ(Read("<<: 3"),
            "1:5 map merge requires map or sequence of maps as the value");
  EXPECT_EQ(Read("a: &x [*x]"), "1:8 anchor value contains itself");
}

TEST(YamlTest, TheLastOfEqualKeysCounts) {
  const Parsed parsed = Parse("a: 1\nb: 2\na: 3");
  EXPECT_EQ(ToJson(*parsed.documents[0]), R"({"a":3,"b":2})");
  ASSERT_EQ(parsed.documents[0]->overruled.size(), 1u);
  EXPECT_EQ(parsed.documents[0]->overruled[0].mark.line, 1);
}

TEST(YamlTest, OverrulingAMergeIsNoRepeatedKey) {
  const auto overruled = [](absl::string_view text) {
    return Parse(text).documents.at(0)->overruled.size();
  };
  EXPECT_EQ(overruled("{<<: {a: 1}, a: 2}"), 0u);
  EXPECT_EQ(overruled("{<<: [{a: 1}, {a: 2}]}"), 0u);
  EXPECT_EQ(overruled("{<<: {a: 1}, a: 2, a: 3}"), 1u);
  EXPECT_EQ(overruled("{a: 2, <<: {a: 1}}"), 1u);
}

TEST(YamlTest, OnlyTheFirstDocumentCounts) {
  const Parsed two = Parse("a: 1\n---\n\tbroken: [");
  EXPECT_EQ(ToJson(*two.documents.at(0)), R"({"a":1})");
  ASSERT_TRUE(two.ignored);
  EXPECT_EQ(two.ignored->line, 2);
  EXPECT_FALSE(Parse("---\na: 1\n...\n").ignored);
  EXPECT_EQ(Read("# nothing\n"), "null");
  // The whole stream for manifests.
  EXPECT_EQ(ParseAll("a: 1\n---\nb: 2\n").documents.size(), 2u);
  EXPECT_EQ(ParseAll("a: 1\n---\nb: [\n").error->mark.line, 4);
}

TEST(YamlTest, ALineFurtherLeftEndsTheDocument) {
  // Easily written, and then all but `version` is dropped.
  const Parsed parsed = Parse(" version: v1\nsharing: {}\n");
  EXPECT_EQ(ToJson(*parsed.documents.at(0)), R"({"version":"v1"})");
  ASSERT_TRUE(parsed.ignored);
  EXPECT_EQ(parsed.ignored->line, 2);
  EXPECT_EQ(Read("- a\nb: c\n"),
            "2:1 did not find expected key or '-' indicator");
}

TEST(YamlTest, BrokenTextIsOneErrorWithItsPlace) {
  const struct {
    const char* text;
    const char* start;
  } kRows[] = {
      {"version: v1\n\tsharing: 1\n", "2:1 found a tab character"},
      {"a:\n\tb: 1\n", "2:2 found a tab character"},
      {"a: \"x\n", "1:4 found unexpected end of stream"},
      {"version: v1\nfoo\n", "2:1 could not find expected ':'"},
      {"a: [1,,2]", "1:7 did not find expected node content"},
      {"a: [1, 2", "1:1 did not find expected ',' or ']'"},
      {"a: b: c", "1:5 mapping values are not allowed"},
      {"a: *x", "1:4 "},
      {"a: \x01", "1:4 control characters are not allowed"},
      {"a: \xff", "1:4 control characters are not allowed"},
      {"%YAML 1.2\n---\na: 1\n", "1:1 found incompatible YAML document"},
      {"a: .inf", "1:4 unsupported value"},
      {"a: !!int x", "1:4 cannot decode"},
  };
  for (const auto& row : kRows) {
    EXPECT_TRUE(absl::StartsWith(Read(row.text), row.start))
        << row.text << " gave " << Read(row.text);
  }
}

TEST(YamlTest, TabsWhereYamlAllowsThemAreFine) {
  EXPECT_EQ(Read("a:\tb\n"), R"({"a":"b"})");
  EXPECT_EQ(Read("a: {\tb: 1\t}\n"), R"({"a":{"b":1}})");
  EXPECT_EQ(Read("a: |\n  x\n  \ty\n"), R"({"a":"x\n\ty\n"})");
}

TEST(YamlTest, HostileSizesAreRefused) {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    absl::StrAppend(&bomb, "a", i, ": &a", i, " [");
    for (int j = 0; j < 10; ++j) absl::StrAppend(&bomb, "*a", i - 1, ",");
    absl::StrAppend(&bomb, "]\n");
  }
  for (const std::string& text :
       {bomb, std::string(5000, '[') + std::string(5000, ']'),
        std::string(5 << 20, 'a')}) {
    const Parsed parsed = Parse(text);
    ASSERT_TRUE(parsed.error) << text.substr(0, 20);
    EXPECT_TRUE(parsed.error->limit) << parsed.error->message;
    EXPECT_LT(parsed.error->message.size(), 100u);
  }
}

TEST(YamlTest, MarksPointAtKeysAndValues) {
  const Parsed parsed = Parse("a: 1\nb:\n  c: [x, y]\n");
  const Entry* b = parsed.documents[0]->Find("b");
  const Entry* c = b->value->Find("c");
  EXPECT_EQ(b->mark.line, 2);
  EXPECT_EQ(c->mark.line, 3);
  EXPECT_EQ(c->mark.column, 3);
  EXPECT_EQ(c->value->items[1]->mark.column, 10);
}

}  // namespace
}  // namespace rondo::config::yaml
