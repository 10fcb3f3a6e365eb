// SPDX-License-Identifier: Apache-2.0
#include "share/time/holder_slice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace rondo::share {
namespace {

constexpr HolderSliceRules kRules;
constexpr double kTinyUs = kRules.tiny_us;
constexpr double kMostUs = 2'048;
// The GPU may go there and back once in so long: a switch loses 160 us of work.
constexpr double kRightAtLatencyPriceUs = 2 * 160 / kRules.latency_price;
constexpr double kRightUs = 2 * 160 / kRules.price;

struct FirstRow {
  const char* name;
  int64_t period_us;  // from one hand-over to the next
  double price;
  double most_us;
  double us;
};

TEST(HolderSlice, FromTinyItGrowsByWhatThePriceLacks) {
  for (const FirstRow& row : std::initializer_list<FirstRow>{
           {"rare", 50'000, 0.24, kMostUs, kTinyUs},
           {"rare enough for the price", 1'334, 0.24, kMostUs, kTinyUs},
           {"too little for another slice", 1'110, 0.24, kMostUs, kTinyUs},
           {"the shortest that is not tiny", 1'100, 0.24, kMostUs, 253.33},
           {"often", 500, 0.24, kMostUs, 853.33},
           {"often, at the lower price", 1'000, 0.125, kMostUs, 1'580},
           {"not above the driver's own", 200, 0.125, kMostUs, kMostUs},
           {"not above another driver's own", 200, 0.24, 1'000, 1'000},
       }) {
    SCOPED_TRACE(row.name);
    HolderSlice slice;
    slice.Add(row.period_us * 1'000, 1'000, row.price, row.most_us, kRules);
    EXPECT_NEAR(slice.us(), row.us, 0.01);
  }
}

TEST(HolderSlice, BeginsTinyAndStaysSoWhereNothingHappens) {
  HolderSlice slice;
  slice.Begin(kRules);
  EXPECT_EQ(slice.us(), kTinyUs);
  slice.Add(1'000'000, 0, kRules.price, kMostUs, kRules);
  EXPECT_EQ(slice.us(), kTinyUs);
  slice.Begin(kRules);
  EXPECT_EQ(slice.us(), kTinyUs);
}

TEST(HolderSlice, ABeginningLeavesAGrownOneAlone) {
  HolderSlice slice;
  slice.Add(500'000, 1'000, kRules.latency_price, kMostUs, kRules);
  const double us = slice.us();
  ASSERT_GT(us, kTinyUs);
  slice.Begin(kRules);
  EXPECT_EQ(slice.us(), us);
}

TEST(HolderSlice, IsJudgedByReportsOfATenthOfASecondTogether) {
  HolderSlice slice;
  for (int i = 0; i < 9; ++i)
    slice.Add(11'000, 22, kRules.latency_price, kMostUs, kRules);
  EXPECT_EQ(slice.us(), kTinyUs);
  slice.Add(11'000, 22, kRules.latency_price, kMostUs, kRules);
  EXPECT_NEAR(slice.us(), kTinyUs + kRightAtLatencyPriceUs - 500, 1);
}

// Each time the holder has its slice, and then somebody else is on the GPU and
// away for cycle_us. Returns the slices after each judgement.
std::vector<double> Loop(HolderSlice& slice, int count, double cycle_us,
                         double price) {
  std::vector<double> slices;
  double rest = 0;
  for (int i = 0; i < count; ++i) {
    const double stays =
        static_cast<double>(kRules.judged_us) / (slice.us() + cycle_us) + rest;
    rest = stays - static_cast<double>(static_cast<int64_t>(stays));
    slice.Add(kRules.judged_us, static_cast<int64_t>(stays), price, kMostUs,
              kRules);
    slices.push_back(slice.us());
  }
  return slices;
}

bool Valid(double us) {
  return us == kTinyUs || (us >= kRules.shortest_us && us <= kMostUs);
}

TEST(HolderSlice, SettlesWhereItsPeriodAnswersIt) {
  for (const double right_us : {kRightAtLatencyPriceUs, kRightUs}) {
    const double price = 2 * 160 / right_us;
    for (double cycle_us = 50; cycle_us <= 20'000; cycle_us *= 1.07) {
      SCOPED_TRACE(testing::Message()
                   << "price " << price << ", cycle " << cycle_us);
      HolderSlice slice;
      slice.Begin(kRules);
      const std::vector<double> slices = Loop(slice, 50, cycle_us, price);
      EXPECT_TRUE(std::all_of(slices.begin(), slices.end(), Valid));
      for (size_t i = 10; i < slices.size(); ++i)
        ASSERT_EQ(slices[i], slices[9]) << "hunts";
      const double lacks_us = right_us - cycle_us;
      if (lacks_us < 0.9 * kRules.shortest_us) {
        EXPECT_EQ(slice.us(), kTinyUs);
      } else if (lacks_us > 1.1 * kRules.shortest_us) {
        EXPECT_NEAR(slice.us(), std::min(lacks_us, kMostUs), 0.2 * lacks_us);
      }
    }
  }
}

// Once requests become rarer, or dearer, there is room for a shorter slice. It
// is found, and held.
TEST(HolderSlice, SettlesAgainAfterAChange) {
  constexpr double kCyclesUs[] = {60,    200,   450,   900,
                                  1'300, 2'000, 3'500, 9'000};
  for (const double price : {kRules.latency_price, kRules.price}) {
    for (const double before_us : kCyclesUs) {
      for (const double cycle_us : kCyclesUs) {
        SCOPED_TRACE(testing::Message() << "price " << price << ", "
                                        << before_us << " to " << cycle_us);
        HolderSlice slice;
        slice.Begin(kRules);
        Loop(slice, 20, before_us, kRules.price);
        const std::vector<double> slices = Loop(slice, 40, cycle_us, price);
        EXPECT_TRUE(std::all_of(slices.begin(), slices.end(), Valid));
        for (size_t i = 15; i < slices.size(); ++i)
          ASSERT_EQ(slices[i], slices[14]) << "hunts";
        // Not much shorter hand-overs than the price allows, nor much longer.
        const double period_us = slice.us() + cycle_us;
        const double right_us = 2 * 160 / price;
        if (slice.us() < kMostUs) {
          EXPECT_GT(period_us, right_us - kRules.shortest_us - 0.2 * right_us);
        }
        if (slice.us() > kTinyUs) {
          EXPECT_LT(period_us, 1.65 * right_us);
        }
      }
    }
  }
}

// Requests that come by a clock of their own do not answer the slice.
TEST(HolderSlice, WhereLongerSlicesDoNotHelpItEndsAtTheDriversOwn) {
  HolderSlice slice;
  for (int i = 0; i < 20; ++i)
    slice.Add(100'000, 200, kRules.latency_price, kMostUs, kRules);
  EXPECT_EQ(slice.us(), kMostUs);
  for (int i = 0; i < 20; ++i)
    slice.Add(100'000, 10, kRules.latency_price, kMostUs, kRules);
  EXPECT_EQ(slice.us(), kTinyUs) << "and comes back once they are rare";
}

}  // namespace
}  // namespace rondo::share
