// SPDX-License-Identifier: Apache-2.0
#include "share/time/duty_limit.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rondo::share {
namespace {

constexpr int64_t kDutyUs = 200'000;
constexpr double kHourUs = 3600e6;

// Reports come often where somebody is limited: the rest of the time Judge
// says.
constexpr int64_t kReportUs = 2'000;

// Uses all that it may get. Returns how long until it is throttled, or no
// longer so.
int64_t UntilItTurns(DutyLimit& limit, int64_t from_us) {
  const bool was_throttled = limit.throttled();
  int64_t now_us = from_us;
  while (now_us - from_us < 100'000'000) {
    const double wake_us = limit.Judge(true);
    if (limit.throttled() != was_throttled) break;
    const int64_t step_us = std::min(kReportUs, static_cast<int64_t>(wake_us));
    now_us += step_us;
    limit.Pass(now_us, false);
    if (!was_throttled) limit.Spend(step_us);
  }
  return now_us - from_us;
}

struct Row {
  double limit;
  int64_t burst_us;      // of one that has long been idle
  int64_t throttled_us;  // after one
};

TEST(DutyLimit, LetsABurstPassAndThenWaitsUntilHalfFull) {
  for (const Row& row : std::initializer_list<Row>{
           // budget / (1 - limit), and half of the budget / limit
           {0.05, 10'526, 100'000},
           {0.25, 66'666, 100'000},
           {0.5, 200'000, 100'000},
           {0.9, 1'800'000, 100'000},
       }) {
    SCOPED_TRACE(row.limit);
    DutyLimit limit;
    limit.Set(0, row.limit, kDutyUs);
    limit.Pass(10'000'000, false);
    EXPECT_DOUBLE_EQ(limit.budget_us(), row.limit * kDutyUs);
    const int64_t burst_us = UntilItTurns(limit, 10'000'000);
    ASSERT_TRUE(limit.throttled());
    // The first report's part of a full budget is lost.
    EXPECT_NEAR(burst_us, row.burst_us,
                kReportUs * (1 + row.limit / (1 - row.limit)));
    const int64_t throttled_us = UntilItTurns(limit, 10'000'000 + burst_us);
    EXPECT_FALSE(limit.throttled());
    // What it used beyond its budget is paid back as well.
    EXPECT_GE(throttled_us, row.throttled_us - kReportUs);
    EXPECT_LE(throttled_us,
              row.throttled_us + kReportUs / row.limit + kReportUs);
  }
}

TEST(DutyLimit, InTheLongRunItHasItsLimit) {
  for (const double part : {0.01, 0.05, 0.3, 0.5, 0.77, 0.99}) {
    SCOPED_TRACE(part);
    DutyLimit limit;
    limit.Set(0, part, kDutyUs);
    int64_t now_us = 0, used_us = 0;
    while (now_us < 100'000'000) {
      const int64_t wake_us =
          std::min(kReportUs, static_cast<int64_t>(limit.Judge(true)));
      now_us += wake_us;
      limit.Pass(now_us, false);
      if (limit.throttled()) continue;
      limit.Spend(wake_us);
      used_us += wake_us;
    }
    EXPECT_NEAR(static_cast<double>(used_us) / static_cast<double>(now_us),
                part, 0.005);
  }
}

struct PayBackRow {
  int64_t used_us;
  bool throttled;
  double wake_us;
};

TEST(DutyLimit, WhatIsOverrunIsPaidBack) {
  // A quarter: it begins with 25 ms, and is half full at 25 ms.
  for (const PayBackRow& row : std::initializer_list<PayBackRow>{
           {0, false, 33'333.3},
           {10'000, false, 20'000},
           {24'990, false, 1'000},  // 10 us left: asked soon, not at once
           {25'000, true, 100'000},
           {35'000, true, 140'000},
           {1'025'000, true, 4'100'000},
       }) {
    SCOPED_TRACE(row.used_us);
    DutyLimit limit;
    limit.Set(0, 0.25, kDutyUs);
    limit.Spend(row.used_us);
    EXPECT_NEAR(limit.Judge(true), row.wake_us, 0.1);
    EXPECT_EQ(limit.throttled(), row.throttled);
    if (!row.throttled) continue;
    limit.Pass(static_cast<int64_t>(row.wake_us) - 100, false);
    limit.Judge(true);
    EXPECT_TRUE(limit.throttled());
    limit.Pass(static_cast<int64_t>(row.wake_us) + 1, false);
    limit.Judge(true);
    EXPECT_FALSE(limit.throttled());
  }
}

TEST(DutyLimit, ALimitNearNothingOrAllStillWakes) {
  for (const double part : {1e-300, 1e-9, 1e-5, 0.999999, 1 - 1e-12}) {
    SCOPED_TRACE(part);
    DutyLimit limit;
    limit.Set(0, part, kDutyUs);
    for (int64_t now_us = 1'000; now_us < 20'000; now_us += 1'000) {
      const double wake_us = limit.Judge(true);
      EXPECT_GE(wake_us, 1'000);
      EXPECT_LE(wake_us, kHourUs);
      limit.Pass(now_us, false);
      if (!limit.throttled()) limit.Spend(1'000);
    }
    EXPECT_EQ(limit.throttled(), part < 0.5);
  }
}

TEST(DutyLimit, WithoutALimitOrChannelsNobodyIsThrottled) {
  DutyLimit none;
  none.Set(0, 1, kDutyUs);
  none.Spend(10'000'000);
  EXPECT_FALSE(none.limited());
  EXPECT_EQ(none.Judge(true), DutyLimit::kNoWakeUs);
  EXPECT_FALSE(none.throttled());

  DutyLimit absent;
  absent.Set(0, 0.25, kDutyUs);
  absent.Spend(30'000);
  absent.Judge(true);
  ASSERT_TRUE(absent.throttled());
  EXPECT_EQ(absent.Judge(false), DutyLimit::kNoWakeUs);
  EXPECT_FALSE(absent.throttled());
  absent.Judge(true);
  EXPECT_TRUE(absent.throttled()) << "its debt outlives its channels";
}

TEST(DutyLimit, TimeThatNobodySawCountsAsUsed) {
  DutyLimit limit;
  limit.Set(0, 0.25, kDutyUs);
  limit.Pass(20'000, true);
  EXPECT_DOUBLE_EQ(limit.budget_us(), 25'000 + 5'000 - 20'000);
}

struct ChangeRow {
  const char* name;
  double before;
  int64_t used_us;  // before the change
  double after;
  double budget_us;
  int64_t since_us;
};

TEST(DutyLimit, AChangedLimitCountsFromThen) {
  for (const ChangeRow& row : std::initializer_list<ChangeRow>{
           {"a new one begins half full", 1, 900'000, 0.5, 50'000, 1'000'000},
           {"a lower one holds less", 0.5, 0, 0.1, 20'000, 0},
           {"a higher one is filled by time", 0.1, 0, 0.5, 20'000, 0},
           {"debts remain", 0.5, 150'000, 0.1, -50'000, 0},
       }) {
    SCOPED_TRACE(row.name);
    DutyLimit limit;
    limit.Set(0, row.before, kDutyUs);
    limit.Pass(1'000'000, false);
    limit.Spend(row.used_us);
    limit.Set(1'000'000, row.after, kDutyUs);
    EXPECT_DOUBLE_EQ(limit.budget_us(), row.budget_us);
    EXPECT_EQ(limit.since_us(), row.since_us);
  }
}

}  // namespace
}  // namespace rondo::share
