// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/aligned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace rondo::deviceplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The measure itself, by trying every split: slow and plainly right. Returns
// the best total and, of all splits with that total, the greatest score of a
// full set with all required.
struct Optimum {
  int total = -1;
  std::vector<std::vector<std::vector<int>>> splits;
};

void EverySplit(const std::vector<int>& rest, int size, int leftover,
                std::vector<std::vector<int>>& split,
                const std::function<void()>& visit) {
  if (rest.empty()) return visit();
  const auto with = [&](int count, int left) {
    std::vector<int> chosen = {rest[0]};
    std::function<void(size_t)> grow = [&](size_t from) {
      if (static_cast<int>(chosen.size()) == count) {
        std::vector<int> others;
        for (const int i : rest) {
          if (std::find(chosen.begin(), chosen.end(), i) == chosen.end())
            others.push_back(i);
        }
        split.push_back(chosen);
        EverySplit(others, size, left, split, visit);
        split.pop_back();
        return;
      }
      for (size_t i = from; i < rest.size(); ++i) {
        chosen.push_back(rest[i]);
        grow(i + 1);
        chosen.pop_back();
      }
    };
    grow(1);
  };
  if (static_cast<int>(rest.size()) >= size) with(size, leftover);
  if (leftover > 0) with(leftover, 0);
}

Optimum Exhaustive(const ScoreMatrix& scores, const std::vector<int>& required,
                   int size) {
  const int n = static_cast<int>(scores.size());
  std::vector<int> all(n);
  for (int i = 0; i < n; ++i) all[i] = i;
  Optimum best;
  std::vector<std::vector<int>> split;
  EverySplit(all, size, n % size, split, [&] {
    int total = 0;
    bool allowed = false;
    for (const auto& set : split) {
      total += SetScore(scores, set);
      allowed |= static_cast<int>(set.size()) == size &&
                 std::includes(set.begin(), set.end(), required.begin(),
                               required.end());
    }
    if (!allowed || total < best.total) return;
    if (total > best.total) best = {total, {}};
    best.splits.push_back(split);
  });
  return best;
}

// Is `answer` what the policy would take from one of the best splits?
bool IsBest(const ScoreMatrix& scores, const std::vector<int>& required,
            int size, const std::vector<int>& answer) {
  for (const auto& split : Exhaustive(scores, required, size).splits) {
    int best = -1;
    bool has_answer = false;
    for (const auto& set : split) {
      if (static_cast<int>(set.size()) != size ||
          !std::includes(set.begin(), set.end(), required.begin(),
                         required.end()))
        continue;
      best = std::max(best, SetScore(scores, set));
      has_answer |= set == answer;
    }
    if (has_answer && SetScore(scores, answer) == best) return true;
  }
  return false;
}

ScoreMatrix RandomScores(std::mt19937& random, int n) {
  // The scores that real links have, so that ties are common.
  static constexpr int kValues[] = {10, 20, 50, 60, 110, 210, 620};
  ScoreMatrix scores(n, std::vector<int>(n, 0));
  for (int i = 0; i < n; ++i) {
    for (int j = i + 1; j < n; ++j)
      scores[i][j] = scores[j][i] = kValues[random() % std::size(kValues)];
  }
  return scores;
}

TEST(Aligned, SameOptimumAsTryingEverySplit) {
  std::mt19937 random(20260101);
  for (int round = 0; round < 400; ++round) {
    const int n = 1 + static_cast<int>(random() % 8);
    const int size = 1 + static_cast<int>(random() % n);
    const ScoreMatrix scores = RandomScores(random, n);
    std::vector<int> required;
    for (int i = 0; i < n && static_cast<int>(required.size()) < size; ++i) {
      if (random() % 4 == 0) required.push_back(i);
    }
    const std::vector<int> answer = BestAlignedSet(scores, required, size);
    EXPECT_TRUE(IsBest(scores, required, size, answer))
        << "round " << round << ", " << size << " of " << n;
    EXPECT_EQ(answer, BestAlignedSet(scores, required, size));
  }
}

// An eight-GPU host: NVLink pairs 0-1, 2-3... inside two CPU sockets.
ScoreMatrix TwoSockets() {
  ScoreMatrix scores(8, std::vector<int>(8, 0));
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) {
      if (i == j) continue;
      scores[i][j] = i / 4 == j / 4 ? 20 : 10;
      if (i / 2 == j / 2) scores[i][j] += 200;
    }
  }
  return scores;
}

TEST(Aligned, StaysInsideASocketAndOnTheLinks) {
  const ScoreMatrix scores = TwoSockets();
  EXPECT_THAT(BestAlignedSet(scores, {}, 2), ElementsAre(0, 1));
  EXPECT_THAT(BestAlignedSet(scores, {}, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(BestAlignedSet(scores, {5}, 2), ElementsAre(4, 5));
  EXPECT_THAT(BestAlignedSet(scores, {1, 6}, 4).size(), 4u);
}

TEST(Aligned, EdgeCases) {
  const ScoreMatrix scores = TwoSockets();
  EXPECT_THAT(BestAlignedSet(scores, {}, 0), IsEmpty());
  EXPECT_THAT(BestAlignedSet(scores, {}, 9), IsEmpty());
  EXPECT_THAT(BestAlignedSet(scores, {0, 1}, 1), IsEmpty());
  EXPECT_THAT(BestAlignedSet(scores, {3}, 1), ElementsAre(3));
  EXPECT_THAT(BestAlignedSet(scores, {}, 8),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(BestAlignedSet({}, {}, 1), IsEmpty());
}

TEST(Aligned, MoreGpusThanTheExactSearchTakes) {
  std::mt19937 random(7);
  const ScoreMatrix scores = RandomScores(random, 20);
  const std::vector<int> set = BestAlignedSet(scores, {17}, 4);
  EXPECT_EQ(set.size(), 4u);
  EXPECT_TRUE(std::find(set.begin(), set.end(), 17) != set.end());
}

}  // namespace
}  // namespace rondo::deviceplugin
