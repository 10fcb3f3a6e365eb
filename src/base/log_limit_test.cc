// SPDX-License-Identifier: Apache-2.0
#include "base/log_limit.h"

#include "gtest/gtest.h"

namespace rondo {
namespace {

TEST(LogLimit, OneLineAMinuteThatCountsTheOthers) {
  LogLimit limit;
  const MonotonicTime start(0);
  EXPECT_EQ(limit.Admit(start), "");
  EXPECT_EQ(limit.Admit(start), std::nullopt);
  EXPECT_EQ(limit.Admit(start + std::chrono::seconds(59)), std::nullopt);
  EXPECT_EQ(limit.Admit(start + std::chrono::seconds(60)),
            " (and 2 times since the last line)");
  EXPECT_EQ(limit.Admit(start + std::chrono::seconds(61)), std::nullopt);
  EXPECT_EQ(limit.Admit(start + std::chrono::seconds(200)),
            " (and 1 times since the last line)");
  EXPECT_EQ(limit.Admit(start + std::chrono::seconds(300)), "");
}

}  // namespace
}  // namespace rondo
