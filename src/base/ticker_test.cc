// SPDX-License-Identifier: Apache-2.0
#include "base/ticker.h"

#include <atomic>
#include <chrono>
#include <future>

#include "gtest/gtest.h"

namespace rondo {
namespace {

constexpr std::chrono::hours kNever{1000};
constexpr std::chrono::seconds kPatience{20};

TEST(TickerTest, TicksAtOnceAndWhenAsked) {
  std::promise<void> first, second;
  std::atomic<int> ticks{0};
  Ticker ticker(kNever, [&] {
    const int n = ++ticks;
    if (n == 1) first.set_value();
    if (n == 2) second.set_value();
  });
  ASSERT_EQ(first.get_future().wait_for(kPatience), std::future_status::ready);
  ticker.Soon();
  EXPECT_EQ(second.get_future().wait_for(kPatience), std::future_status::ready);
}

TEST(TickerTest, OneAskedForWhileOneIsInFlightFollowsIt) {
  std::promise<void> began, go, second;
  std::shared_future<void> may = go.get_future().share();
  std::atomic<int> ticks{0};
  Ticker ticker(kNever, [&] {
    const int n = ++ticks;
    if (n == 1) {
      began.set_value();
      may.wait();
    }
    if (n == 2) second.set_value();
  });
  ASSERT_EQ(began.get_future().wait_for(kPatience), std::future_status::ready);
  ticker.Soon();
  go.set_value();
  EXPECT_EQ(second.get_future().wait_for(kPatience), std::future_status::ready);
}

}  // namespace
}  // namespace rondo
