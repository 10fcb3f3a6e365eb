// SPDX-License-Identifier: Apache-2.0
#include "share/time/credit.h"

#include <gtest/gtest.h>

#include <string>

namespace rondo::share {
namespace {

constexpr CreditRules kRules;
constexpr double kStepUs = 1'000;

// One that uses so much of the GPU for so long. Returns what it has used.
double Use(Credit& credit, double length_us, double share, double part,
           const CreditTerms& terms) {
  double used_us = 0;
  for (double at_us = 0; at_us < length_us; at_us += kStepUs) {
    used_us += kStepUs * part;
    credit.Settle(kStepUs, share, kStepUs * part, terms, kRules);
  }
  return used_us;
}

void SpendAll(Credit& credit, const CreditTerms& terms) {
  credit.Settle(0, 1, static_cast<double>(terms.most_us), terms, kRules);
}

struct BorrowRow {
  std::string name;
  CreditTerms terms;
  double share;
  double rate;  // at which it fills
};

class Borrows : public testing::TestWithParam<BorrowRow> {};

TEST_P(Borrows, ItFillsAtThatRate) {
  const BorrowRow& row = GetParam();
  Credit credit;
  credit.Settle(0, row.share, 20'000, row.terms, kRules);
  const double before_us = credit.balance_us();
  credit.Settle(10'000, row.share, 0, row.terms, kRules);
  EXPECT_NEAR(credit.balance_us() - before_us, 10'000 * row.rate, 1e-6);
}

TEST_P(Borrows, ItMayUseThatMuchForEverAndNoMore) {
  const BorrowRow& row = GetParam();
  Credit modest;
  Use(modest, 60e6, row.share, row.rate - 0.01, row.terms);
  EXPECT_FALSE(modest.over());
  Credit greedy;
  Use(greedy, 60e6, row.share, row.rate + 0.01, row.terms);
  EXPECT_TRUE(greedy.over());
}

TEST_P(Borrows, OverThereIsNothingToBorrow) {
  const BorrowRow& row = GetParam();
  Credit credit;
  SpendAll(credit, row.terms);
  ASSERT_TRUE(credit.over());
  const double half_us = static_cast<double>(row.terms.most_us) * kRules.again;
  credit.Settle(half_us / row.share * 0.999, row.share, 0, row.terms, kRules);
  EXPECT_TRUE(credit.over());
  EXPECT_NEAR(credit.balance_us(), half_us * 0.999, 1e-6);
  credit.Settle(half_us / row.share * 0.002, row.share, 0, row.terms, kRules);
  EXPECT_FALSE(credit.over());
}

// Served first it may take the whole GPU; over, it goes round by its weight.
TEST_P(Borrows, WithoutAPauseItHasItsShareInTheLongRun) {
  const BorrowRow& row = GetParam();
  Credit credit;
  double used_us = 0;
  constexpr double kLengthUs = 300e6;
  for (double at_us = 0; at_us < kLengthUs; at_us += kStepUs)
    used_us += Use(credit, kStepUs, row.share,
                   credit.over() ? row.share * 0.98 : 1, row.terms);
  EXPECT_NEAR(used_us / kLengthUs, row.share, 0.02);
}

constexpr CreditTerms kStandard = kRules.standard;
constexpr CreditTerms kLatency = kRules.latency;

INSTANTIATE_TEST_SUITE_P(
    Credit, Borrows,
    testing::Values(
        // Small shares are bound by their multiple, large ones by what is left
        // to the others.
        BorrowRow{"standard_2_percent", kStandard, 0.02, 0.06},
        BorrowRow{"standard_10_percent", kStandard, 0.1, 0.19},
        BorrowRow{"standard_half", kStandard, 0.5, 0.55},
        BorrowRow{"standard_most", kStandard, 0.9, 0.91},
        BorrowRow{"latency_2_percent", kLatency, 0.02, 0.03},
        BorrowRow{"latency_quarter", kLatency, 0.25, 0.375},
        BorrowRow{"latency_half", kLatency, 0.5, 0.75},
        BorrowRow{"latency_most", kLatency, 0.8, 0.9}),
    [](const auto& info) { return info.param.name; });

struct OverRow {
  const char* name;
  double balance_us;
  bool over_before;
  bool over;
};

TEST(CreditOver, ItIsOverOnceSpentAndBackAtHalf) {
  for (const OverRow& row : std::initializer_list<OverRow>{
           {"a full budget", 40'000, false, false},
           {"nearly spent", 1, false, false},
           {"spent", 0, false, true},
           {"overspent", -10'000, false, true},
           {"paying back", 1, true, true},
           {"nearly half", 19'999, true, true},
           {"half", 20'000, true, false},
           {"below half again", 15'000, false, false},
       }) {
    SCOPED_TRACE(row.name);
    Credit credit;
    if (row.over_before) SpendAll(credit, kStandard);
    credit.Settle(0, 0.5, 0, kStandard, kRules);
    credit.Settle(0, 0.5, credit.balance_us() - row.balance_us, kStandard,
                  kRules);
    EXPECT_DOUBLE_EQ(credit.balance_us(), row.balance_us);
    EXPECT_EQ(credit.over(), row.over);
  }
}

TEST(CreditBounds, NeitherSavingsNorDebtsGrowWithoutEnd) {
  for (const CreditTerms& terms : {kStandard, kLatency}) {
    const auto most_us = static_cast<double>(terms.most_us);
    Credit credit;
    credit.Settle(0, 0.5, 0, terms, kRules);
    EXPECT_EQ(credit.balance_us(), most_us) << "begins with all";
    credit.Settle(3600e6, 0.5, 0, terms, kRules);
    EXPECT_EQ(credit.balance_us(), most_us);
    credit.Settle(3600e6, 0.5, 3600e6, terms, kRules);
    EXPECT_EQ(credit.balance_us(), -most_us);
    // So the longest wait is known.
    credit.Settle(1.5 * most_us / 0.5, 0.5, 0, terms, kRules);
    EXPECT_FALSE(credit.over());
  }
}

TEST(CreditBounds, OneThatHasTheGpuToItselfIsNeverOver) {
  for (const CreditTerms& terms : {kStandard, kLatency}) {
    Credit credit;
    Use(credit, 10e6, 1, 1, terms);
    EXPECT_FALSE(credit.over());
    EXPECT_EQ(credit.balance_us(), static_cast<double>(terms.most_us));
  }
}

}  // namespace
}  // namespace rondo::share
