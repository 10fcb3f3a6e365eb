// SPDX-License-Identifier: Apache-2.0
#include "share/time/turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace rondo::share {
namespace {

using Taker = Turns::Taker;
using Takers = std::vector<Taker>;
using Ids = std::vector<TenantId>;

constexpr TurnRules kRules;
constexpr int64_t kTurnUs = kRules.batch_us;
constexpr bool kCannotRun = false;

Taker Batch(TenantId id, double weight = 1, bool can_run = true) {
  return {id, weight, /*asked=*/true, can_run};
}
Taker Standard(TenantId id, double weight = 1) {
  return {id, weight, /*asked=*/false};
}
bool Never(int64_t) { return false; }
bool Always(int64_t) { return true; }

// Turns that begin at 0, without a log unless a gap is passed.
class TurnsTest : public testing::Test {
 protected:
  Turns::Next At(int64_t now_us, const Takers& takers,
                 const Turns::InGap& in_gap = nullptr) {
    return turns_.Update(now_us, takers, in_gap, kRules);
  }
  // Who has the turns, by the times that Update asks for.
  Ids Sequence(const Takers& takers, int count) {
    Ids ids;
    for (int64_t now_us = 0; count > 0; --count) {
      now_us = At(now_us, takers).wake_us;
      ids.push_back(*turns_.holder());
    }
    return ids;
  }
  Turns turns_;
};

// --- lengths and order -------------------------------------------------------

struct LengthRow {
  const char* name;
  Takers takers;
  int64_t length_us;  // of the first one's turn
};

TEST_F(TurnsTest, AreAsLongAsClassAndWeightSay) {
  Takers crowd = {Batch(1, 1000)};
  for (TenantId id = 2; id <= 20; ++id) crowd.push_back(Batch(id));
  for (const LengthRow& row : std::initializer_list<LengthRow>{
           {"batch", {Batch(1), Batch(2)}, 500'000},
           {"standard", {Standard(1), Standard(2)}, 200'000},
           {"mixed", {Batch(1), Standard(2)}, 200'000},
           {"mixed the other way", {Standard(1), Batch(2)}, 200'000},
           {"alone", {Batch(1, 7)}, 500'000},
           {"heavy", {Batch(1, 3), Batch(2)}, 750'000},
           {"light", {Batch(1), Batch(2, 3)}, 250'000},
           {"no shorter than a tenth", {Batch(1), Batch(2, 1000)}, 50'000},
           {"no longer than ten times", crowd, 5'000'000},
       }) {
    SCOPED_TRACE(row.name);
    Turns turns;
    EXPECT_EQ(turns.Update(0, row.takers, nullptr, kRules).wake_us,
              row.length_us);
    EXPECT_EQ(turns.holder(), 1u);
  }
}

TEST_F(TurnsTest, TimesComeOutByWeight) {
  const Takers takers = {Batch(1), Batch(2, 2), Batch(3, 5)};
  std::map<TenantId, int64_t> times;
  for (int64_t now_us = 0, wake_us = 0; now_us < 60'000'000; now_us = wake_us) {
    wake_us = At(now_us, takers).wake_us;
    times[*turns_.holder()] += wake_us - now_us;
  }
  const auto unit = static_cast<double>(times[1]);
  EXPECT_NEAR(static_cast<double>(times[2]) / unit, 2, 0.1);
  EXPECT_NEAR(static_cast<double>(times[3]) / unit, 5, 0.25);
}

TEST_F(TurnsTest, TurnsThatBecomeShorterEndTheOneUnderWay) {
  TurnRules rules;
  const Takers takers = {Batch(1), Batch(2)};
  turns_.Update(0, takers, nullptr, rules);
  rules.batch_us = 100'000;
  EXPECT_EQ(turns_.Update(10'000, takers, nullptr, rules).wake_us, 110'000);
  rules.batch_us = 500'000;
  EXPECT_EQ(turns_.Update(20'000, takers, nullptr, rules).wake_us, 110'000)
      << "longer ones begin with the next";
}

struct OrderRow {
  const char* name;
  Takers takers;
  Ids order;
};

TEST_F(TurnsTest, GoRoundInTheOrderOfIds) {
  for (const OrderRow& row : std::initializer_list<OrderRow>{
           {"all", {Batch(3), Batch(5), Batch(9)}, {3, 5, 9, 3, 5, 9}},
           {"one kept off by its limit",
            {Batch(3), Batch(5, 1, kCannotRun), Batch(9)},
            {3, 9, 3, 9, 3, 9}},
           {"the first kept off",
            {Batch(3, 1, kCannotRun), Batch(5), Batch(9)},
            {5, 9, 5, 9, 5, 9}},
           {"all but one kept off",
            {Batch(3, 1, kCannotRun), Batch(5), Batch(9, 1, kCannotRun)},
            {5, 5, 5, 5, 5, 5}},
           {"all kept off",
            {Batch(3, 1, kCannotRun), Batch(5, 1, kCannotRun)},
            {3, 3, 3, 3, 3, 3}},
           {"one", {Batch(4)}, {4, 4, 4, 4, 4, 4}},
       }) {
    SCOPED_TRACE(row.name);
    turns_ = Turns();
    EXPECT_EQ(Sequence(row.takers, 6), row.order);
  }
}

TEST_F(TurnsTest, OneTakerKeepsItsTurnWithoutAskingForAGap) {
  EXPECT_EQ(At(0, {Batch(1)}, Never).wake_us, kTurnUs);
  EXPECT_EQ(At(kTurnUs, {Batch(1)}, Never).wake_us, 2 * kTurnUs);
  EXPECT_TRUE(turns_.Holds(1));
}

TEST_F(TurnsTest, WithoutTakersNobodyHoldsOne) {
  At(0, {Batch(1)});
  const Turns::Next next = At(1'000, {});
  EXPECT_FALSE(turns_.holder());
  EXPECT_EQ(next.wake_us, INT64_MAX);
}

struct LeavesRow {
  const char* name;
  Takers takers;  // in the middle of 5's turn
  TenantId holder;
};

TEST_F(TurnsTest, OneThatCannotUseItsTurnLosesItAtOnce) {
  for (const LeavesRow& row : std::initializer_list<LeavesRow>{
           {"gone", {Batch(3), Batch(9)}, 9},
           {"gone, the last by id", {Batch(2), Batch(3)}, 2},
           {"limit", {Batch(3), Batch(5, 1, kCannotRun), Batch(9)}, 9},
           {"limit, and the next one's too",
            {Batch(3), Batch(5, 1, kCannotRun), Batch(9, 1, kCannotRun)},
            3},
           {"limit, and nobody else can",
            {Batch(3, 1, kCannotRun), Batch(5, 1, kCannotRun)},
            5},
           {"still there", {Batch(3), Batch(5), Batch(9)}, 5},
       }) {
    SCOPED_TRACE(row.name);
    turns_ = Turns();
    At(0, {Batch(5)});
    At(100'000, row.takers, Never);
    EXPECT_EQ(turns_.holder(), row.holder);
  }
}

// --- gaps --------------------------------------------------------------------

struct GapRow {
  const char* name;
  int64_t late_us;  // after the turn's end
  Turns::InGap in_gap;
  TenantId holder;
  int64_t wait_us;  // until asked again
  int64_t good_us;  // how long the suspension is good; 0: for ever
};

TEST_F(TurnsTest, ADueChangeWaitsForAGap) {
  constexpr int64_t kPatienceUs = kRules.gap_wait_us;
  for (const GapRow& row : std::initializer_list<GapRow>{
           {"not due", -1, Always, 1, 1, 0},
           {"no log", 0, nullptr, 2, kTurnUs, 0},
           {"due, no gap", 0, Never, 1, kPatienceUs, 0},
           {"late, no gap", 60'000, Never, 1, kPatienceUs - 60'000, 0},
           {"due, in a gap", 0, Always, 2, kTurnUs, kRules.call_us},
           {"late, in a gap", 60'000, Always, 2, kTurnUs, kRules.call_us},
           {"out of patience", kPatienceUs, Always, 2, kTurnUs, 0},
           // Whether there is a gap is for others to say, also then.
           {"beyond", 2 * kPatienceUs, Never, 1, 1, 0},
       }) {
    SCOPED_TRACE(row.name);
    turns_ = Turns();
    const Takers takers = {Batch(1), Batch(2)};
    At(0, takers, Never);
    const int64_t now_us = kTurnUs + row.late_us;
    const Turns::Next next = At(now_us, takers, row.in_gap);
    EXPECT_EQ(turns_.holder(), row.holder);
    EXPECT_EQ(next.wake_us, now_us + row.wait_us);
    EXPECT_EQ(next.not_after_us,
              row.good_us == 0 ? INT64_MAX : now_us + row.good_us);
  }
}

TEST_F(TurnsTest, AGapIsAskedForByHowLongTheChangeIsDue) {
  const Takers takers = {Batch(1), Batch(2)};
  At(0, takers);
  int64_t asked_us = -1;
  const auto in_gap = [&](int64_t waited_us) {
    asked_us = waited_us;
    return false;
  };
  At(kTurnUs - 1, takers, in_gap);
  EXPECT_EQ(asked_us, -1);
  At(kTurnUs + 70'000, takers, in_gap);
  EXPECT_EQ(asked_us, 70'000);
}

TEST_F(TurnsTest, ALateCallIsUndoneOnceAndForTheOneItWasMeantFor) {
  const Takers takers = {Batch(1), Batch(2), Batch(3)};
  At(0, takers);
  turns_.Ran();
  turns_.Absent(1'000, 4'000);
  At(kTurnUs + 10'000, takers, Always);
  ASSERT_TRUE(turns_.Holds(2));
  EXPECT_FALSE(turns_.Undo(2));
  EXPECT_FALSE(turns_.Undo(3));
  EXPECT_TRUE(turns_.Undo(1));
  EXPECT_TRUE(turns_.Holds(1));
  EXPECT_FALSE(turns_.Undo(1));
  // All of its turn is as before: what it missed, and when it was due.
  turns_.Absent(3'999, 1'000);
  EXPECT_FALSE(turns_.Paused(10'000, kRules));
  turns_.Absent(1, 1);
  EXPECT_TRUE(turns_.Paused(10'000, kRules));
  EXPECT_EQ(At(kTurnUs + 20'000, takers, Never).wake_us,
            kTurnUs + kRules.gap_wait_us);
  At(kTurnUs + 30'000, takers, Always);
  EXPECT_TRUE(turns_.Holds(2)) << "it is still the next one's turn";
}

struct UndoRow {
  const char* name;
  int64_t late_us;
  Turns::InGap in_gap;
};

TEST_F(TurnsTest, OnlyAChangeWithinAGapIsUndone) {
  for (const UndoRow& row : std::initializer_list<UndoRow>{
           {"no log", 0, nullptr}, {"no patience", 100'000, Always}}) {
    SCOPED_TRACE(row.name);
    turns_ = Turns();
    const Takers takers = {Batch(1), Batch(2)};
    At(0, takers);
    At(kTurnUs + row.late_us, takers, row.in_gap);
    EXPECT_FALSE(turns_.Undo(1));
    EXPECT_TRUE(turns_.Holds(2));
  }
}

// --- pauses ------------------------------------------------------------------

struct PausedRow {
  const char* name;
  bool ran;
  int64_t free_us, interval_us;  // since it ran, or since the turn began
  bool paused;
};

TEST_F(TurnsTest, AHolderThatMakesNothingOfItsTurnPauses) {
  constexpr int64_t kOthersUs = 30'000;
  for (const PausedRow& row : std::initializer_list<PausedRow>{
           {"not begun yet", false, 2'499, 2'499, false},
           {"does not begin", false, 2'500, 2'500, true},
           {"between two kernels", true, 4'999, 4'999, false},
           {"stopped", true, 5'000, 5'000, true},
           {"others there, not begun", false, 0, 29'999, false},
           {"others there, for longer than they may", false, 0, 30'000, true},
           {"others there", true, 1'000, 29'999, false},
           {"others there for too long", true, 1'000, 30'000, true},
       }) {
    SCOPED_TRACE(row.name);
    turns_ = Turns();
    At(0, {Batch(1), Batch(2)});
    turns_.Absent(1'000, 1'000);
    if (row.ran)
      turns_.Ran();
    else
      turns_.Absent(-1'000, -1'000);
    turns_.Absent(row.free_us, row.interval_us);
    EXPECT_EQ(turns_.Paused(kOthersUs, kRules), row.paused);
    EXPECT_TRUE(turns_.Watched(0, 0) || row.ran);
  }
}

TEST_F(TurnsTest, ItIsWatchedInDoubtAndCloseToItsEnd) {
  At(0, {Batch(1), Batch(2)});
  EXPECT_TRUE(turns_.Watched(0, 5'000)) << "has not run yet";
  turns_.Ran();
  EXPECT_FALSE(turns_.Watched(kTurnUs - 5'001, 5'000));
  EXPECT_FALSE(turns_.Due(kTurnUs - 5'001, 5'000));
  EXPECT_TRUE(turns_.Watched(kTurnUs - 5'000, 5'000));
  EXPECT_TRUE(turns_.Due(kTurnUs - 5'000, 5'000));
  turns_.Absent(0, 1);
  EXPECT_TRUE(turns_.Watched(1'000, 5'000)) << "perhaps it pauses";
  turns_.Clear();
  EXPECT_FALSE(turns_.Watched(kTurnUs, 5'000));
  EXPECT_FALSE(turns_.Due(kTurnUs, 5'000));
}

TEST_F(TurnsTest, APausedHolderHasTheRestOnceItHasWorkAgain) {
  const Takers both = {Batch(1), Batch(2)};
  At(0, both);
  turns_.Pause(200'000);
  EXPECT_FALSE(turns_.holder());
  EXPECT_EQ(At(200'000, {Batch(2)}).wake_us, 700'000);
  EXPECT_TRUE(turns_.Holds(2));
  // It may go on at once; 2 has what is left of its own turn after that.
  EXPECT_EQ(At(300'000, both, Never).wake_us, 600'000);
  EXPECT_TRUE(turns_.Holds(1));
  EXPECT_EQ(At(600'000, both).wake_us, 1'000'000);
  EXPECT_TRUE(turns_.Holds(2));
  EXPECT_EQ(At(1'000'000, both).wake_us, 1'500'000) << "and then whole ones";
  EXPECT_TRUE(turns_.Holds(1));
}

TEST_F(TurnsTest, APausedOneWhoseLimitKeepsItOffDoesNotComeBack) {
  At(0, {Batch(1), Batch(2)});
  turns_.Pause(200'000);
  At(200'000, {Batch(2)});
  At(300'000, {Batch(1, 1, kCannotRun), Batch(2)});
  EXPECT_TRUE(turns_.Holds(2));
  At(310'000, {Batch(1), Batch(2)});
  EXPECT_TRUE(turns_.Holds(1));
}

// 1 pauses while its turn is over and waits for a gap: nothing is left of it.
TEST_F(TurnsTest, OnePausedAfterItsEndHasNothingToComeBackFor) {
  const Takers both = {Batch(1), Batch(2)};
  At(0, both);
  At(kTurnUs + 20'000, both, Never);
  turns_.Pause(kTurnUs + 30'000);
  At(kTurnUs + 30'000, {Batch(2)});
  ASSERT_TRUE(turns_.Holds(2));
  EXPECT_EQ(At(kTurnUs + 50'000, both, Never).wake_us, 2 * kTurnUs + 30'000);
  EXPECT_TRUE(turns_.Holds(2)) << "its turn is cut by one that has none left";
  EXPECT_EQ(At(2 * kTurnUs + 30'000, both).wake_us, 3 * kTurnUs + 30'000)
      << "a whole turn";
  EXPECT_TRUE(turns_.Holds(1));
}

// 2 has the rest of a turn before it when the change to it is undone.
TEST_F(TurnsTest, AnUndoneChangeLeavesTheRestOfTheOneToCome) {
  const Takers both = {Batch(1), Batch(2)};
  At(0, both);
  turns_.Pause(200'000);
  At(200'000, {Batch(2)});
  At(300'000, both);  // 1 goes on until 600'000, 2 has 400'000 left
  ASSERT_TRUE(turns_.Holds(1));
  At(600'000, both, Always);
  ASSERT_TRUE(turns_.Holds(2));
  ASSERT_TRUE(turns_.Undo(1));
  EXPECT_EQ(At(610'000, both, Always).wake_us, 610'000 + 400'000);
  EXPECT_TRUE(turns_.Holds(2));
}

}  // namespace
}  // namespace rondo::share
