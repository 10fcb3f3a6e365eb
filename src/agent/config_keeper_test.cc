// SPDX-License-Identifier: Apache-2.0
#include "agent/config_keeper.h"

#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::agent {
namespace {

using testing::HasSubstr;

constexpr char kFour[] =
    "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}";
constexpr char kSix[] =
    "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 6}]}}";
constexpr char kBad[] =
    "sharing: {timeSlicing: {resources: [{name: gpu, replicas: six}]}}";

class ConfigKeeperTest : public testing::Test {
 protected:
  absl::Status Apply(const config::Plan& plan) {
    if (!apply_error_.ok()) return apply_error_;
    applied_ =
        plan.sharing.resources.empty() ? 1 : plan.sharing.resources[0].replicas;
    ++applications_;
    return absl::OkStatus();
  }
  ConfigKeeper MakeKeeper() {
    return ConfigKeeper(
        {}, {}, dir_.path(),
        [this](const config::Plan& p, const std::string& origin) {
          origin_ = origin;
          return Apply(p);
        });
  }
  static ConfigText Text(const std::string& text) {
    return {.text = text, .origin = "/c/any", .why = "because"};
  }

  TempDir dir_ = *TempDir::Create();
  absl::Status apply_error_;
  int applied_ = 0;
  std::string origin_;
  int applications_ = 0;
};

TEST_F(ConfigKeeperTest, AnUnchangedTextIsNotAppliedAgainUnlessAsked) {
  ConfigKeeper keeper = MakeKeeper();
  EXPECT_TRUE(keeper.Offer(Text(kFour), false).ok());
  EXPECT_TRUE(keeper.Offer(Text(kFour), false).ok());
  EXPECT_EQ(applications_, 1);
  EXPECT_EQ(origin_, "/c/any");
  EXPECT_EQ(keeper.view().generation, 1u);
  EXPECT_TRUE(keeper.Offer(Text(kFour), true).ok());
  EXPECT_EQ(applications_, 2);
}

// NVIDIA's plugin stops its servers first and exits then: the node drops to 0.
TEST_F(ConfigKeeperTest, ABadConfigLeavesTheLastGoodOneInForce) {
  ConfigKeeper keeper = MakeKeeper();
  ASSERT_TRUE(keeper.Offer(Text(kFour), false).ok());
  const std::string hash = keeper.view().hash;

  EXPECT_TRUE(absl::IsInvalidArgument(keeper.Offer(Text(kBad), false)));
  ASSERT_TRUE(keeper.view().refused);
  EXPECT_EQ(keeper.view().refused->origin, "/c/any");
  EXPECT_THAT(keeper.view().refused->error, HasSubstr("replicas"));
  EXPECT_EQ(keeper.view().hash, hash);
  EXPECT_EQ(applied_, 4);

  apply_error_ = absl::InvalidArgumentError("no such device");
  EXPECT_EQ(keeper.Offer(Text(kSix), false), apply_error_);
  EXPECT_EQ(keeper.view().refused->error, "no such device");
  EXPECT_FALSE(keeper.Offer(absl::NotFoundError("no key 'x'"), false).ok());
  EXPECT_EQ(keeper.view().refused->error, "no key 'x'");
  EXPECT_EQ(keeper.view().hash, hash);
  EXPECT_EQ(keeper.view().refusals, 3u);

  EXPECT_TRUE(keeper.Offer(Text(kFour), false).ok()) << "the edit taken back";
  EXPECT_FALSE(keeper.view().refused);
}

TEST_F(ConfigKeeperTest, RemembersTheLastGoodConfigAcrossRestarts) {
  {
    ConfigKeeper before = MakeKeeper();
    ASSERT_TRUE(before.Offer(Text(kSix), false).ok());
    ASSERT_FALSE(before.Offer(Text(kBad), false).ok());
  }
  ConfigKeeper after = MakeKeeper();
  ASSERT_FALSE(after.Offer(Text(kBad), true).ok());
  ASSERT_TRUE(after.OfferRemembered().ok());
  EXPECT_EQ(applied_, 6);
  ASSERT_TRUE(after.view().refused) << "the user must still see it";
  EXPECT_EQ(after.view().refused->origin, "/c/any");
  EXPECT_EQ(after.view().origin, dir_.path() + "/last-good.yaml");
}

TEST_F(ConfigKeeperTest, NothingRememberedIsNotFound) {
  ConfigKeeper keeper = MakeKeeper();
  EXPECT_TRUE(absl::IsNotFound(keeper.OfferRemembered()));
  ConfigKeeper without({}, {}, "", [](const config::Plan&, const std::string&) {
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsNotFound(without.OfferRemembered()));
}

}  // namespace
}  // namespace rondo::agent
