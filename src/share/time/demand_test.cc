// SPDX-License-Identifier: Apache-2.0
#include "share/time/demand.h"

#include <gtest/gtest.h>

#include <string>

namespace rondo::share {
namespace {

constexpr DemandRules kRules;
constexpr int64_t kReportUs = 10'000;
constexpr double kSliceUs = 8'000;

// A tenant on slices of 8 ms beside another one, with a report each 10 ms.
class Log {
 public:
  Demand demand;
  int64_t now_us = 5'000'000;
  Demand::Round round{.slice_us = kSliceUs,
                      .interval_us = kReportUs,
                      .others_us = 8'000,
                      .contended = true,
                      .tells = true};

  void Add(const Use& use) {
    now_us += kReportUs;
    demand.Add(now_us, use, round, kRules);
  }
  void Nothing(int64_t for_us = kReportUs) {
    for (; for_us > 0; for_us -= kReportUs) Add({});
  }
  void Stays(int64_t length_us, int count = 1, int64_t idle_us = 0) {
    for (int i = 0; i < count; ++i)
      Add({.busy_us = length_us,
           .stays = 1,
           .longest_us = length_us,
           .idle_us = idle_us,
           .ended = 1,
           .ended_us = length_us});
  }
  // The first report on a slice tells nothing: part of it was on another.
  void Fill() { Stays(8'000, 5); }
  void Visit() { Stays(2'000, 5); }
};

// --- asleep ------------------------------------------------------------------

struct AsleepRow {
  const char* name;
  double others_us;
  int64_t kept_off_us;
  int64_t silent_us;
  bool asleep;
};

TEST(DemandAsleep, AfterAWhileThatTheOthersDoNotExplain) {
  for (const AsleepRow& row : std::initializer_list<AsleepRow>{
           {"just ran", 8'000, 0, 0, false},
           // Within the first silent report it may have run: it does not count.
           {"not yet", 8'000, 0, 70'000, false},
           {"long enough", 8'000, 0, 80'000, true},
           {"within two rounds", 50'000, 0, 110'000, false},
           {"longer than two rounds", 50'000, 0, 120'000, true},
           {"suspended", 8'000, 3'000'000, 0, false},
           {"just resumed", 8'000, 3'000'000, 70'000, false},
           {"long resumed", 8'000, 3'000'000, 80'000, true},
       }) {
    SCOPED_TRACE(row.name);
    Log log;
    EXPECT_TRUE(log.demand.asleep()) << "until it runs";
    log.round.others_us = row.others_us;
    log.Stays(2'000);
    log.round.kept_off = true;
    log.Nothing(row.kept_off_us);
    log.round.kept_off = false;
    log.Nothing(row.silent_us);
    EXPECT_EQ(log.demand.asleep(), row.asleep);
    log.Stays(2'000);
    EXPECT_FALSE(log.demand.asleep());
  }
}

TEST(DemandAsleep, OneThatAlwaysHadWorkIsNewAfterwards) {
  Log log;
  log.Fill();
  ASSERT_TRUE(log.demand.fills());
  log.Nothing(80'000);
  EXPECT_FALSE(log.demand.fills());
}

TEST(DemandAsleep, ASuspensionDoesNotWakeIt) {
  Log log;
  log.round.kept_off = true;
  log.Nothing(1'000'000);
  EXPECT_TRUE(log.demand.asleep());
}

// --- came --------------------------------------------------------------------

struct CameRow {
  const char* name;
  double others_us;
  int64_t idle_us;  // at the end of its last report
  int64_t silent_us;
  bool kept_off;
  bool came;
};

TEST(DemandCame, BackFromAnAbsenceOfItsOwn) {
  for (const CameRow& row : std::initializer_list<CameRow>{
           {"never away", 8'000, 0, 0, false, false},
           {"a short pause", 8'000, 0, 20'000, false, false},
           {"a short pause that began early", 8'000, 1'000, 20'000, false,
            true},
           {"a long one", 8'000, 0, 30'000, false, true},
           {"explained by the others", 20'000, 0, 30'000, false, false},
           {"not explained by the others", 20'000, 0, 40'000, false, true},
           {"suspended", 8'000, 0, 500'000, true, false},
           {"asleep in between", 8'000, 0, 500'000, false, true},
       }) {
    SCOPED_TRACE(row.name);
    Log log;
    log.round.others_us = row.others_us;
    log.Stays(2'000, 1, row.idle_us);
    EXPECT_FALSE(log.demand.came()) << "the first time is no return";
    log.round.kept_off = row.kept_off;
    log.Nothing(row.silent_us);
    EXPECT_FALSE(log.demand.came());
    log.round.kept_off = false;
    log.Stays(2'000);
    EXPECT_EQ(log.demand.came(), row.came);
    log.Stays(2'000);
    EXPECT_FALSE(log.demand.came()) << "of the last report only";
  }
}

TEST(DemandCame, OneThatRunsWhileItIsKeptOffDidNotComeByItself) {
  Log log;
  log.Stays(2'000);
  log.Nothing(50'000);
  log.round.kept_off = true;
  log.Stays(2'000);
  EXPECT_FALSE(log.demand.came());
}

// --- fills -------------------------------------------------------------------

struct FillsRow {
  const char* name;
  Demand::Round round;
  int64_t stay_us;
  int64_t pause_us;  // between two reports with a stay
  int stays;
  bool fills;
  bool told;
};

TEST(DemandFills, OnlyOnASliceThatTellsAndWhereTheOthersExplainItsAbsence) {
  const auto round = [](double slice_us, double others_us, bool tells) {
    return Demand::Round{.slice_us = slice_us,
                         .interval_us = kReportUs,
                         .others_us = others_us,
                         .contended = true,
                         .tells = tells};
  };
  Demand::Round alone = round(8'000, 8'000, true);
  alone.contended = false;
  Demand::Round kept_off = round(8'000, 8'000, true);
  kept_off.kept_off = true;
  for (const FillsRow& row : std::initializer_list<FillsRow>{
           {"all of it", round(8'000, 8'000, true), 8'000, 0, 5, true, true},
           {"enough of it", round(8'000, 8'000, true), 5'600, 0, 5, true, true},
           {"not enough", round(8'000, 8'000, true), 5'500, 0, 5, false, true},
           {"a request fills a short slice", round(2'048, 2'048, false), 2'048,
            0, 20, false, false},
           {"a short slice that tells", round(2'048, 4'096, true), 2'048, 0, 5,
            true, true},
           {"away with the others there", round(8'000, 8'000, true), 8'000,
            kReportUs, 5, true, true},
           {"away on its own", round(8'000, 2'000, true), 8'000, kReportUs, 5,
            false, true},
           {"too few stays to tell", round(8'000, 8'000, true), 8'000, 0, 4,
            false, false},
           {"nobody else wants the GPU", alone, 8'000, 0, 20, false, false},
           {"suspended", kept_off, 8'000, 0, 20, false, false},
       }) {
    SCOPED_TRACE(row.name);
    Log log;
    log.round = row.round;
    for (int i = 0; i < row.stays; ++i) {
      if (i > 0) log.Nothing(row.pause_us);
      log.Stays(row.stay_us);
    }
    EXPECT_EQ(log.demand.fills(), row.fills);
    EXPECT_EQ(log.demand.Told(log.now_us, kRules), row.told);
  }
}

TEST(DemandFills, AStayThatGoesOnIsNoStayYet) {
  Log log;
  for (int i = 0; i < 20; ++i)
    log.Add({.busy_us = kReportUs, .longest_us = (i + 1) * kReportUs});
  EXPECT_FALSE(log.demand.Told(log.now_us, kRules));
}

TEST(DemandFills, WhatItToldIsBelievedForAWhile) {
  Log log;
  log.Fill();
  EXPECT_TRUE(log.demand.Told(log.now_us + kRules.told_us, kRules));
  EXPECT_FALSE(log.demand.Told(log.now_us + kRules.told_us + 1, kRules));
}

struct HysteresisRow {
  const char* name;
  bool fills_before;
  int64_t stay_us;
  bool tells;
  bool fills;
};

TEST(DemandFills, BetweenTheTwoBoundsItIsWhatItWas) {
  for (const HysteresisRow& row : std::initializer_list<HysteresisRow>{
           {"fills, all", true, 8'000, true, true},
           {"fills, in between", true, 4'800, true, true},
           {"fills, at the lower bound", true, 4'000, true, true},
           {"fills, below", true, 3'920, true, false},
           {"fills, below on one that does not tell", true, 3'920, false,
            false},
           {"fills, all of one that does not tell", true, 8'000, false, true},
           {"visits, all", false, 8'000, true, true},
           {"visits, all of one that does not tell", false, 8'000, false,
            false},
           {"visits, in between", false, 4'800, true, false},
           {"visits, below", false, 3'920, true, false},
       }) {
    SCOPED_TRACE(row.name);
    Log log;
    if (row.fills_before)
      log.Fill();
    else
      log.Visit();
    ASSERT_EQ(log.demand.fills(), row.fills_before);
    log.round.tells = row.tells;
    log.Stays(row.stay_us, 4);
    EXPECT_EQ(log.demand.fills(), row.fills);
    EXPECT_NEAR(log.demand.use(), static_cast<double>(row.stay_us) / kSliceUs,
                1e-9);
  }
}

TEST(DemandFills, PausesOfItsOwnEndIt) {
  Log log;
  log.Fill();
  log.round.others_us = 2'000;
  for (int i = 0; i < 4; ++i) {
    log.Nothing();
    log.Stays(8'000);
  }
  EXPECT_FALSE(log.demand.fills());
}

TEST(DemandFills, LongerThanItsSliceIsNoMoreThanAllOfIt) {
  Log log;
  log.Stays(9'500, 5);
  EXPECT_EQ(log.demand.use(), 1);
}

// --- a suspension keeps ------------------------------------------------------

TEST(DemandKeptOff, ItStaysWhatItWas) {
  for (const bool fills : {true, false}) {
    SCOPED_TRACE(fills);
    Log log;
    if (fills)
      log.Fill();
    else
      log.Visit();
    const double use = log.demand.use();
    const double visit_us = log.demand.visit_us();
    log.round.kept_off = true;
    log.Nothing(10'000'000);
    EXPECT_EQ(log.demand.fills(), fills);
    EXPECT_FALSE(log.demand.asleep());
    EXPECT_EQ(log.demand.use(), use);
    EXPECT_EQ(log.demand.visit_us(), visit_us);
    EXPECT_EQ(log.demand.Proven(log.now_us, kRules), !fills);
  }
}

// --- proven ------------------------------------------------------------------

TEST(DemandProven, AfterItHasBeenJudgedToComeAndGoForAWhile) {
  Log log;
  log.Visit();
  const int64_t judged_us = log.now_us;
  EXPECT_FALSE(log.demand.Proven(judged_us, kRules));
  EXPECT_FALSE(log.demand.Proven(judged_us + 149'999, kRules));
  EXPECT_TRUE(log.demand.Proven(judged_us + 150'000, kRules));
  log.Stays(2'000, 15);
  EXPECT_TRUE(log.demand.Proven(log.now_us, kRules)) << "since the first time";
}

TEST(DemandProven, BeforeItIsJudgedNothingIsProven) {
  Log log;
  log.Stays(2'000, 4);
  EXPECT_FALSE(log.demand.Proven(log.now_us + 10'000'000, kRules));
}

struct ForgottenRow {
  int64_t silent_us;
  bool proven;
};

TEST(DemandProven, ForgottenAfterALongSleep) {
  for (const ForgottenRow& row :
       {ForgottenRow{500'000, true}, ForgottenRow{1'010'000, true},
        ForgottenRow{1'020'000, false}}) {
    SCOPED_TRACE(row.silent_us);
    Log log;
    log.Visit();
    log.Stays(2'000, 15);
    log.Nothing(row.silent_us);
    log.Stays(2'000);
    EXPECT_EQ(log.demand.Proven(log.now_us, kRules), row.proven);
  }
}

TEST(DemandProven, OneThatFillsBeginsAnew) {
  Log log;
  log.Visit();
  log.Stays(2'000, 15);
  log.Stays(8'000, 8);
  ASSERT_TRUE(log.demand.fills());
  EXPECT_FALSE(log.demand.Proven(log.now_us, kRules));
  log.Stays(2'000, 8);
  ASSERT_FALSE(log.demand.fills());
  EXPECT_FALSE(log.demand.Proven(log.now_us, kRules));
  log.Stays(2'000, 15);
  EXPECT_TRUE(log.demand.Proven(log.now_us, kRules));
}

// --- steady, long stays
// ------------------------------------------------------------

struct SteadyRow {
  const char* name;
  int64_t pause_us;  // after half a second of work
  int64_t then_us;   // of work, after that
  bool steady;
};

TEST(DemandSteady, AfterItHasAlwaysHadWorkForAWhile) {
  for (const SteadyRow& row : std::initializer_list<SteadyRow>{
           {"not yet", 0, 490'000, false},
           {"long enough", 0, 500'000, true},
           {"a pause begins it anew", 30'000, 900'000, false},
           {"as long after a pause", 30'000, 1'010'000, true},
           {"asleep in between", 200'000, 900'000, false},
       }) {
    SCOPED_TRACE(row.name);
    Log log;
    log.Fill();
    log.Stays(8'000, 50);
    log.Nothing(row.pause_us);
    log.Stays(8'000, static_cast<int>(row.then_us / kReportUs));
    ASSERT_TRUE(log.demand.fills());
    EXPECT_EQ(log.demand.Steady(log.now_us, kRules), row.steady);
  }
}

TEST(DemandSteady, OneThatComesAndGoesNeverIs) {
  Log log;
  log.Stays(2'000, 500);
  EXPECT_FALSE(log.demand.Steady(log.now_us, kRules));
}

// It had work, or was an idle context that nobody drove off.
TEST(DemandLongStay, ShowsNoMoreThanASlice) {
  for (const int64_t length_us : {8'000, 12'000, 50'000}) {
    SCOPED_TRACE(length_us);
    Log always;
    always.Stays(8'000);
    always.Stays(length_us, 4);
    EXPECT_TRUE(always.demand.fills()) << "each of its stays was long";
    EXPECT_TRUE(always.demand.filled());
    Log requests;
    requests.Stays(2'000, 3);
    requests.Stays(length_us);
    requests.Stays(2'000, 8);
    EXPECT_FALSE(requests.demand.fills()) << "the others were short";
    EXPECT_FALSE(requests.demand.filled());
  }
}

// --- what it is judged by ----------------------------------------------------

struct SliceRow {
  const char* name;
  double slice_us;  // after three stays on 8 ms
  int more;         // stays until it is judged
};

TEST(DemandJudged, AnotherSliceJudgesAnew) {
  for (const SliceRow& row : std::initializer_list<SliceRow>{
           {"the same", 8'000, 1},
           {"as good as the same", 8'150, 1},
           {"longer", 8'200, 5},
           {"shorter", 6'000, 5},
       }) {
    SCOPED_TRACE(row.name);
    Log log;
    log.Stays(8'000, 4);
    log.round.slice_us = row.slice_us;
    for (int i = 1; i <= row.more; ++i) {
      EXPECT_FALSE(log.demand.Told(log.now_us, kRules));
      log.Stays(8'000);
    }
    EXPECT_TRUE(log.demand.Told(log.now_us, kRules));
  }
}

// Rare requests are judged as well: a pause between them changes nothing.
TEST(DemandJudged, APauseIsNoReasonToJudgeAnew) {
  Log log;
  for (int i = 0; i < 3; ++i) {
    log.Stays(2'000);
    log.Nothing(100'000);
  }
  EXPECT_FALSE(log.demand.Told(log.now_us, kRules));
  log.Stays(2'000, 2);
  EXPECT_TRUE(log.demand.Told(log.now_us, kRules));
  EXPECT_FALSE(log.demand.fills());
}

// --- the length of its requests ----------------------------------------------

struct VisitRow {
  const char* name;
  int64_t first_us, then_us;
  double visit_us;
};

TEST(DemandVisit, TheLongestOfLateThatTheSliceDidNotCut) {
  for (const VisitRow& row : std::initializer_list<VisitRow>{
           {"of one length", 3'000, 3'000, 3'000},
           {"longer ones count at once", 1'000, 3'000, 3'000},
           {"shorter ones slowly", 3'000, 1'000, 3'000 * 0.99},
           {"just not cut", 0, 5'500, 5'500},
           {"perhaps cut", 0, 5'600, 0},
           {"cut", 0, 8'000, 0},
       }) {
    SCOPED_TRACE(row.name);
    Log log;
    log.Nothing();
    if (row.first_us > 0) log.Stays(row.first_us);
    log.Stays(row.then_us);
    EXPECT_NEAR(log.demand.visit_us(), row.visit_us, 1e-6);
  }
}

TEST(DemandVisit, FadesWhileTheGpuIsSharedAndOnlyThen) {
  Log log;
  log.Nothing();
  log.Stays(3'000);
  log.round.contended = false;
  log.Nothing(2'000'000);
  EXPECT_EQ(log.demand.visit_us(), 3'000);
  log.round.contended = true;
  log.Nothing(1'000'000);
  EXPECT_NEAR(log.demand.visit_us(), 3'000 * 0.366, 5);
}

}  // namespace
}  // namespace rondo::share
