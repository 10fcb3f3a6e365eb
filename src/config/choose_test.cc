// SPDX-License-Identifier: Apache-2.0

#include "config/choose.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::config {
namespace {

using testing::HasSubstr;

// "rule:key", or the message of the error.
std::string Choose(const ChoiceInput& input) {
  constexpr const char* kRules[] = {"file",  "label",  "default", "model",
                                    "named", "single", "empty"};
  const absl::StatusOr<Choice> choice = ChooseConfig(input);
  if (!choice.ok()) return std::string(choice.status().message());
  EXPECT_FALSE(choice->why.empty());
  return absl::StrCat(kRules[static_cast<int>(choice->rule)], ":", choice->key);
}

ChoiceInput Keys(std::vector<std::string> keys) {
  ChoiceInput input;
  input.keys = std::move(keys);
  input.fallbacks = {"named", "single"};
  return input;
}

TEST(ChooseTest, ExplicitFileThenLabelThenDefault) {
  ChoiceInput input = Keys({"a", "b", "default"});
  EXPECT_EQ(Choose(input), "named:default");
  input.default_key = "b";
  EXPECT_EQ(Choose(input), "default:b");
  input.label = "a";
  EXPECT_EQ(Choose(input), "label:a");
  input.explicit_file = "/config/config.yaml";
  EXPECT_EQ(Choose(input), "file:/config/config.yaml");
}

TEST(ChooseTest, ANameThatDoesNotExistIsAnErrorWithTheNamesThatDo) {
  ChoiceInput input = Keys({"a100", "t4"});
  input.label = "a10";
  EXPECT_THAT(Choose(input),
              HasSubstr("specified config a10 does not exist (named by the "
                        "node's label nvidia.com/device-plugin.config; did you "
                        "mean a100? configs: a100, t4)"));
  input.label = "";
  input.default_key = "any";
  EXPECT_THAT(Choose(input), HasSubstr("specified config any does not exist"));
}

TEST(ChooseTest, FallbacksInTheirOrder) {
  EXPECT_EQ(Choose(Keys({"only"})), "single:only");
  EXPECT_EQ(Choose(Keys({"default"})), "named:default");
  ChoiceInput input = Keys({"default"});
  input.fallbacks = {"single", "named"};
  EXPECT_EQ(Choose(input), "single:default");
  input.fallbacks = {"empty"};
  EXPECT_EQ(Choose(input), "empty:");
  input.fallbacks = {"nmaed"};
  EXPECT_THAT(Choose(input), HasSubstr("unknown fallback strategy nmaed"));
}

TEST(ChooseTest, AllFailedSaysWhatThereIs) {
  EXPECT_EQ(Choose(Keys({"a", "b"})),
            "no config was set, no default was provided, and all fallbacks "
            "failed (configs: a, b)");
  EXPECT_THAT(Choose(Keys({})), HasSubstr("there are no configs"));
}

TEST(ChooseTest, BookkeepingOfAMountedConfigMapIsNoConfig) {
  EXPECT_EQ(Choose(Keys({"..data", "..2026_01_01", "any"})), "single:any");
}

TEST(ChooseTest, TheKeyThatNamesTheGpuModel) {
  ChoiceInput input = Keys({"NVIDIA-A100-SXM4-80GB", "NVIDIA-Tesla-T4"});
  input.gpu_models = {"NVIDIA A100-SXM4-80GB"};
  EXPECT_EQ(Choose(input), "model:NVIDIA-A100-SXM4-80GB");
  input.gpu_models = {"Tesla T4"};
  EXPECT_EQ(Choose(input), "model:NVIDIA-Tesla-T4");
  // The operator's only fallback comes after the model.
  input.fallbacks = {"empty"};
  EXPECT_EQ(Choose(input), "model:NVIDIA-Tesla-T4");
  input.gpu_models = {"NVIDIA H100 80GB HBM3"};
  EXPECT_EQ(Choose(input), "empty:");
  input.gpu_models = {"Tesla T4", "NVIDIA A100-SXM4-80GB"};
  EXPECT_THAT(Choose(input), HasSubstr("several configs name GPU models"));
  // A label or a default is stronger.
  input.default_key = "NVIDIA-Tesla-T4";
  EXPECT_EQ(Choose(input), "default:NVIDIA-Tesla-T4");
}

TEST(ChooseTest, SpellingsOfAModel) {
  const struct {
    const char* key;
    const char* model;
    bool same;
  } kRows[] = {
      {"NVIDIA-A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", true},
      {"NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-SXM4-80GB-SHARED", true},
      {"A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", true},
      {"tesla-t4", "Tesla T4", true},
      {"NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED",
       true},
      {"NVIDIA-A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB", false},
      {"a100", "NVIDIA A100-SXM4-80GB", false},
      {"", "", false},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(KeyNamesModel(row.key, row.model), row.same)
        << row.key << " " << row.model;
  }
  EXPECT_EQ(ProductName("NVIDIA  RTX A6000 (rev. B)"),
            "NVIDIA-RTX-A6000-rev.-B");
}

}  // namespace
}  // namespace rondo::config
