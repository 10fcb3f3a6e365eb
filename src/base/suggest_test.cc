// SPDX-License-Identifier: Apache-2.0
#include "base/suggest.h"

#include "gtest/gtest.h"

namespace rondo {
namespace {

TEST(NearestWord, FindsSlipsAndNothingElse) {
  const std::vector<std::string> words = {"sharing", "timeSlicing", "flags",
                                          "devices"};
  EXPECT_EQ(NearestWord("sharng", words), "sharing");
  EXPECT_EQ(NearestWord("timeSlicng", words), "timeSlicing");
  EXPECT_EQ(NearestWord("timeslicing", words), "timeSlicing");
  EXPECT_EQ(NearestWord("devcies", words), "devices");
  EXPECT_EQ(NearestWord("bogus", words), "");
  EXPECT_EQ(NearestWord("", words), "");
  EXPECT_EQ(NearestWord(std::string(100000, 'x'), words), "");
}

}  // namespace
}  // namespace rondo
