// SPDX-License-Identifier: Apache-2.0
#include "share/time/earned_slice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rondo::share {
namespace {

constexpr EarnedSliceRules kRules;
constexpr double kBaseUs = 2'048;
constexpr double kNobodyUs = EarnedSlice::kNobodyUs;
constexpr int64_t kSecond = 1'000'000;

// Judges once per round of judgement.
void Pass(EarnedSlice& slice, int64_t from_us, int64_t to_us,
          double shortest_visit_us = kNobodyUs) {
  for (int64_t at_us = from_us; at_us <= to_us; at_us += kRules.judged_us)
    slice.Judge(at_us, 0, shortest_visit_us, kRules);
}

TEST(EarnedSlice, GrowsStepByStepToTheLongest) {
  EarnedSlice slice(kBaseUs);
  slice.Fall(0);
  std::vector<double> grown;
  for (int64_t at_us = 0; at_us < kSecond; at_us += 50'000)
    if (slice.Judge(at_us, 0, kNobodyUs, kRules)) grown.push_back(slice.us());
  EXPECT_EQ(grown, (std::vector<double>{8'192, 20'000, 20'000, 20'000}));
}

struct MostRow {
  const char* name;
  double base_us;
  double shortest_visit_us;
  double us;  // in the long run
};

TEST(EarnedSlice, IsNoLongerThanThoseWhoComeAndGoCanBear) {
  for (const MostRow& row : std::initializer_list<MostRow>{
           {"nobody", 2'048, kNobodyUs, 20'000},
           {"of unknown length", 2'048, 0, 2'048},
           {"short requests", 2'048, 1'000, 2'048},
           {"shorter than two slices", 2'048, 3'686, 2'048},
           {"as long as two slices", 2'048, 3'687, 4'096},
           {"much longer", 2'048, 500'000, 4'096},
           {"base above the longest", 30'000, kNobodyUs, 30'000},
       }) {
    SCOPED_TRACE(row.name);
    EarnedSlice slice(row.base_us);
    Pass(slice, 0, 5 * kSecond, row.shortest_visit_us);
    EXPECT_EQ(slice.us(), row.us);
    // Also from above.
    EarnedSlice grown(row.base_us);
    Pass(grown, 0, 5 * kSecond);
    Pass(grown, 6 * kSecond, 6 * kSecond, row.shortest_visit_us);
    EXPECT_EQ(grown.us(), row.us);
  }
}

struct DueRow {
  double rotation_us;
  int64_t due_us;
};

TEST(EarnedSlice, IsJudgedAfterAWhileAndSomeRotations) {
  for (const DueRow& row : std::initializer_list<DueRow>{{0, 200'000},
                                                         {40'000, 200'000},
                                                         {40'002, 200'010},
                                                         {1e6, 5'000'000}}) {
    SCOPED_TRACE(row.rotation_us);
    EarnedSlice slice(kBaseUs);
    slice.Fall(kSecond);
    EXPECT_FALSE(slice.Judge(kSecond + row.due_us - 1, row.rotation_us,
                             kNobodyUs, kRules));
    EXPECT_EQ(slice.us(), kBaseUs);
    EXPECT_TRUE(
        slice.Judge(kSecond + row.due_us, row.rotation_us, kNobodyUs, kRules));
    EXPECT_GT(slice.us(), kBaseUs);
    EXPECT_FALSE(slice.Judge(kSecond + 2 * row.due_us - 1, row.rotation_us,
                             kNobodyUs, kRules));
  }
}

TEST(EarnedSlice, AVisitEndsALongOneAtOnceAndLeavesAShortOneAlone) {
  struct Row {
    double shortest_visit_us;  // that it has grown with
    double us;                 // just after a visit
  };
  for (const Row& row : {Row{kNobodyUs, 2'048}, Row{4'000, 4'096}}) {
    EarnedSlice slice(kBaseUs);
    Pass(slice, 0, 2 * kSecond, row.shortest_visit_us);
    slice.Visited(2 * kSecond, kRules);
    EXPECT_EQ(slice.us(), row.us);
  }
}

TEST(EarnedSlice, AfterAVisitAWholeRoundIsWaitedFor) {
  EarnedSlice slice(kBaseUs);
  Pass(slice, 0, 2 * kSecond);
  slice.Visited(2 * kSecond + 150'000, kRules);
  EXPECT_FALSE(slice.Judge(2 * kSecond + 349'999, 0, kNobodyUs, kRules));
  EXPECT_TRUE(slice.Judge(2 * kSecond + 350'000, 0, kNobodyUs, kRules));
}

struct VisitsRow {
  const char* name;
  std::vector<int64_t> visits_us;
  int64_t now_us;
  double us;
};

TEST(EarnedSlice, TwoVisitsMakeAThirdExpectedForAWhile) {
  for (const VisitsRow& row : std::initializer_list<VisitsRow>{
           {"one may be the only one", {kSecond}, 4 * kSecond, 20'000},
           {"two", {kSecond, 2 * kSecond}, 4 * kSecond, 4'096},
           {"the first of two just remembered",
            {kSecond, 2 * kSecond},
            11 * kSecond,
            4'096},
           {"the first of two forgotten",
            {kSecond, 2 * kSecond},
            12 * kSecond,
            20'000},
           {"far apart", {kSecond, 20 * kSecond}, 22 * kSecond, 20'000},
           {"the last two count",
            {kSecond, 20 * kSecond, 21 * kSecond},
            23 * kSecond,
            4'096},
       }) {
    SCOPED_TRACE(row.name);
    EarnedSlice slice(kBaseUs);
    for (const int64_t visit_us : row.visits_us)
      slice.Visited(visit_us, kRules);
    Pass(slice, row.visits_us.back(), row.now_us);
    EXPECT_EQ(slice.us(), row.us);
  }
}

TEST(EarnedSlice, WhereWhoIsThereChangesAllBeginAnew) {
  EarnedSlice slice(kBaseUs);
  Pass(slice, 0, 2 * kSecond);
  slice.Fall(3 * kSecond);
  EXPECT_EQ(slice.us(), kBaseUs);
  EXPECT_FALSE(
      slice.Judge(3 * kSecond + kRules.judged_us - 1, 0, kNobodyUs, kRules));
}

}  // namespace
}  // namespace rondo::share
