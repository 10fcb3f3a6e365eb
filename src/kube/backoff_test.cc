// SPDX-License-Identifier: Apache-2.0
#include "kube/backoff.h"

#include "gtest/gtest.h"

namespace rondo::kube {
namespace {

using std::chrono::milliseconds;

TEST(BackoffTest, DoublesForFailuresThatComeAtOnce) {
  struct Attempt {
    const char* what;
    bool good;
    int lasted_ms, pause_ms;
  };
  constexpr Attempt kAttempts[] = {
      {"no server", false, 0, 100},
      {"again", false, 5, 200},
      {"again", false, 0, 400},
      {"no more than the longest", false, 0, 500},
      {"ends at each pause's length: no better", false, 500, 500},
      {"a watch of a minute, then a reset", false, 60'000, 100},
      {"and no server", false, 0, 200},
      {"a watch that the server ended", true, 300'000, 0},
      {"one that it ended at once", true, 1, 100},
      {"and once more", true, 1, 100},
      {"after that, a failure", false, 0, 100},
      {"and the next", false, 0, 200},
  };
  Backoff backoff(milliseconds(100), milliseconds(500));
  for (const Attempt& a : kAttempts)
    EXPECT_EQ(backoff.After(a.good, milliseconds(a.lasted_ms)),
              milliseconds(a.pause_ms))
        << a.what;
}

}  // namespace
}  // namespace rondo::kube
