// SPDX-License-Identifier: Apache-2.0
#include "agent/annotations.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/pod.h"

namespace rondo::agent {
namespace {

using share::TenantClass;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint64_t kGiB = 1 << 30;

TEST(ParseAnnotations, TakesTheFourKeys) {
  const ParsedAnnotations parsed =
      ParseAnnotations({{"rondo/memory", "1.5Gi"},
                        {"rondo/weight", "3"},
                        {"rondo/class", "latency"},
                        {"rondo/limit", "0.25"},
                        {"example.com/rondo/weight", "no"},
                        {"rondo", "no"}});
  EXPECT_THAT(parsed.problems, IsEmpty());
  EXPECT_EQ(parsed.settings.memory_bytes, kGiB * 3 / 2);
  EXPECT_EQ(parsed.settings.weight, 3);
  EXPECT_EQ(parsed.settings.cls, TenantClass::kLatency);
  EXPECT_EQ(parsed.settings.limit, 0.25);
  EXPECT_EQ(ParseAnnotations({{"rondo/class", "batch"}}).settings.cls,
            TenantClass::kBatch);
  EXPECT_EQ(ParseAnnotations({{"rondo/class", "standard"}}).settings.cls,
            TenantClass::kStandard);
  EXPECT_EQ(ParseAnnotations({{"rondo/limit", "1"}}).settings.limit, 1);
}

struct BadCase {
  const char* key;
  std::string value;
  const char* remedy;
};

class BadAnnotation : public testing::TestWithParam<BadCase> {};

TEST_P(BadAnnotation, IsAProblemWithARemedyAndNoSetting) {
  const BadCase& bad = GetParam();
  const ParsedAnnotations parsed = ParseAnnotations({{bad.key, bad.value}});
  ASSERT_THAT(parsed.problems, SizeIs(1));
  EXPECT_EQ(parsed.problems[0].key, bad.key);
  EXPECT_EQ(parsed.problems[0].value, kube::CutText(bad.value, 64));
  EXPECT_THAT(parsed.problems[0].message, HasSubstr(bad.key));
  EXPECT_THAT(parsed.problems[0].message, HasSubstr(bad.value.substr(0, 64)));
  EXPECT_THAT(parsed.problems[0].message, HasSubstr(bad.remedy));
  EXPECT_LT(parsed.problems[0].message.size(), 500u);
  EXPECT_FALSE(parsed.settings.memory_bytes);
  EXPECT_FALSE(parsed.settings.weight);
  EXPECT_FALSE(parsed.settings.cls);
  EXPECT_FALSE(parsed.settings.limit);
}

INSTANTIATE_TEST_SUITE_P(
    , BadAnnotation,
    testing::ValuesIn(std::vector<BadCase>{
        {"rondo/memory", "", "is empty: write a quantity such as 8Gi"},
        {"rondo/memory", "8",
         "has no unit, so it means bytes: write a quantity such as 8Gi"},
        {"rondo/memory", "10Mi",
         "is under 64Mi, too small for any CUDA program: write a quantity such "
         "as 8Gi, at least 64Mi"},
        {"rondo/memory", "8GB", "write a quantity such as 8Gi"},
        {"rondo/memory", "50%",
         "is a percentage: write a quantity such as 8Gi, at least 64Mi"},
        {"rondo/memory", "8 Gi",
         "has a space in it: write a quantity such as 8Gi"},
        {"rondo/memory", "-8Gi", "is negative: write a quantity such as 8Gi"},
        {"rondo/memory", "99999999999Ei", "such as 8Gi"},
        {"rondo/memory", std::string(200'000, '9'), "such as 8Gi"},
        {"rondo/weight", "", "from 0.001 to 1000"},
        {"rondo/weight", "three", "from 0.001 to 1000"},
        {"rondo/weight", "0", "from 0.001 to 1000"},
        {"rondo/weight", "-1", "from 0.001 to 1000"},
        {"rondo/weight", "1e-300", "from 0.001 to 1000"},
        {"rondo/weight", "1001", "from 0.001 to 1000"},
        {"rondo/weight", "inf", "from 0.001 to 1000"},
        {"rondo/weight", "nan", "from 0.001 to 1000"},
        {"rondo/weight", "1e999", "from 0.001 to 1000"},
        {"rondo/limit", "0", "above 0, at most 1"},
        {"rondo/limit", "1.01", "above 0, at most 1"},
        {"rondo/limit", "50%", "is a percentage: write 0.5."},
        {"rondo/limit", "50", "is above 1: write 0.5."},
        {"rondo/limit", "", "above 0, at most 1"},
        {"rondo/weight", "1,5", "has a comma in it: write 1.5."},
        {"rondo/limit", "nan", "above 0, at most 1"},
        {"rondo/class", "Latency",
         "is not a class: write latency (classes are latency, standard and "
         "batch)"},
        {"rondo/class", "fast", "latency, standard or batch"},
        {"rondo/class", "", "latency, standard or batch"},
        {"rondo/wieght", "3", "perhaps rondo/weight is meant"},
        {"rondo/main.weight", "3", "perhaps rondo/weight is meant"},
        {"rondo/zzzzzzzzzzzz", "3", "rondo/memory, rondo/class"},
        {"rondo/", "3", "rondo/memory"}}));

// Of a value that was cut nothing is read, though its beginning is one.
TEST(ParseAnnotations, ACutValueIsNone) {
  for (const std::string rest : {" ", "0", "\n"}) {
    kube::Pod pod;
    std::string padding;
    while (padding.size() < kube::kLongestText) padding += rest;
    kube::KeepAnnotation("rondo/weight", "3" + padding, "rondo/", pod);
    kube::KeepAnnotation("rondo/limit", "0.5" + padding, "rondo/", pod);
    kube::KeepAnnotation("rondo/memory", "8Gi" + padding, "rondo/", pod);
    kube::KeepAnnotation("rondo/class", "batch" + padding, "rondo/", pod);
    const ParsedAnnotations parsed = ParseAnnotations(pod.annotations);
    EXPECT_THAT(parsed.problems, SizeIs(4));
    EXPECT_FALSE(parsed.settings.weight);
    EXPECT_FALSE(parsed.settings.limit);
    EXPECT_FALSE(parsed.settings.memory_bytes);
    EXPECT_FALSE(parsed.settings.cls);
  }
}

TEST(ParseAnnotations, OneBadValueLeavesTheOthersInForce) {
  const ParsedAnnotations parsed =
      ParseAnnotations({{"rondo/memory", "lots"}, {"rondo/weight", "2"}});
  EXPECT_EQ(parsed.settings.weight, 2);
  EXPECT_FALSE(parsed.settings.memory_bytes);
  EXPECT_THAT(parsed.problems, SizeIs(1));
}

}  // namespace
}  // namespace rondo::agent
