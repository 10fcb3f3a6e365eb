// SPDX-License-Identifier: Apache-2.0
//
// What is not for the property test: where Controls tells two things apart.
#include "share/time/controls.h"

#include <gtest/gtest.h>

namespace rondo::share {
namespace {

constexpr ProcessId kProcess = 1;

class ControlsTest : public testing::Test {
 protected:
  ControlsTest() {
    controls_.Attach(kProcess);
    controls_.SetGroups(0, kProcess, 1);
  }
  std::vector<Action> At(int64_t now_us) {
    std::vector<Action> actions;
    controls_.Reconcile(now_us, INT64_MAX, &actions);
    return actions;
  }

  Controls controls_{ControlOptions{}};
};

TEST_F(ControlsTest, AnEscapeIsSeenLongAfterTheSuspensionAndNotJustAfter) {
  controls_.Want(kProcess, /*runnable=*/false, 0);
  const std::vector<Action> actions = At(1'000'000);
  ASSERT_EQ(actions.size(), 1u);
  controls_.OnSwitched(1'001'000, std::get<Switch>(actions[0]).op, kProcess,
                       true);
  // Two clocks and two threads lie between the card's time and ours.
  EXPECT_FALSE(controls_.OnRan(1'015'000, kProcess));
  EXPECT_EQ(controls_.run(kProcess), Controls::Run::kSuspended);
  EXPECT_TRUE(At(1'016'000).empty());
  EXPECT_TRUE(controls_.OnRan(1'050'000, kProcess));
  EXPECT_EQ(controls_.run(kProcess), Controls::Run::kUnknown);
  EXPECT_EQ(At(2'000'000).size(), 1u) << "suspended again";
}

TEST_F(ControlsTest, ACallThatCameTooLateLeavesAllAsItWas) {
  controls_.Want(kProcess, /*runnable=*/false, 0);
  const std::vector<Action> actions = At(1'000'000);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(controls_.run(kProcess), Controls::Run::kUnknown);
  controls_.OnLate(std::get<Switch>(actions[0]).op, kProcess);
  EXPECT_EQ(controls_.run(kProcess), Controls::Run::kRunning);
  EXPECT_LT(controls_.run_since_us(kProcess), 0) << "all the time";
  controls_.Want(kProcess, /*runnable=*/true, 0);
  EXPECT_TRUE(At(1'001'000).empty()) << "nothing to undo";
  controls_.Want(kProcess, /*runnable=*/false, 0);
  EXPECT_EQ(At(1'002'000).size(), 1u) << "and no failure to wait for";
}

TEST_F(ControlsTest, ALateCallAfterAnUnansweredOneIsAsUnknownAsThat) {
  controls_.Want(kProcess, /*runnable=*/false, 0);
  ASSERT_EQ(At(1'000'000).size(), 1u);
  const std::vector<Action> again = At(2'000'000);
  ASSERT_EQ(again.size(), 1u);
  controls_.OnLate(std::get<Switch>(again[0]).op, kProcess);
  EXPECT_EQ(controls_.run(kProcess), Controls::Run::kUnknown);
}

TEST_F(ControlsTest, SlicesWaitUntilProgramsHaveStartedButNotForEver) {
  controls_.Want(kProcess, /*runnable=*/true, 20'000);
  int64_t now_us = 0;
  for (ProcessId other = 2; At(now_us).empty(); ++other, now_us += 100'000) {
    ASSERT_LT(now_us, 5'000'000) << "for ever";
    controls_.Attach(other);
    controls_.SetGroups(now_us, other, 1);
  }
  EXPECT_GE(now_us, ControlOptions{}.longest_settle_us);
}

}  // namespace
}  // namespace rondo::share
