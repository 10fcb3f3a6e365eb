// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/aligned.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace rondo::deviceplugin {
namespace {

using Mask = uint32_t;

std::vector<int> Positions(Mask mask) {
  std::vector<int> positions;
  for (; mask != 0; mask &= mask - 1)
    positions.push_back(std::countr_zero(mask));
  return positions;
}

// Best split of subsets, each computed once. The set that holds the lowest
// position of the subset is chosen first, so every split is seen in one order
// only. Where n is no multiple of size, one set of n % size members is left
// over; it may hold no required GPU.
class SplitSearch {
 public:
  SplitSearch(const ScoreMatrix& scores, Mask required, int size)
      : scores_(scores),
        required_(required),
        size_(size),
        leftover_(static_cast<int>(scores.size()) % size),
        memo_(Mask{1} << scores.size(), kUnknown) {}

  // The best score of a split of `rest`; kImpossible if no split is allowed.
  int Best(Mask rest) {
    if (rest == 0) return 0;
    int& known = memo_[rest];
    if (known != kUnknown) return known;
    int best = kImpossible;
    ForEachSet(rest, [&](Mask set, int score) {
      const int others = Best(rest & ~set);
      if (others != kImpossible) best = std::max(best, score + others);
    });
    return memo_[rest] = best;
  }

  // The sets of the first split that reaches Best.
  std::vector<Mask> Split(Mask rest) {
    std::vector<Mask> sets;
    while (rest != 0) {
      const int best = Best(rest);
      Mask chosen = 0;
      ForEachSet(rest, [&](Mask set, int score) {
        if (chosen != 0) return;
        const int others = Best(rest & ~set);
        if (others != kImpossible && score + others == best) chosen = set;
      });
      sets.push_back(chosen);
      rest &= ~chosen;
    }
    return sets;
  }

 private:
  static constexpr int kUnknown = -1;
  static constexpr int kImpossible = -2;

  // Calls visit(set, score) for each set that may hold the lowest of rest, in
  // lexicographic order.
  template <typename Visit>
  void ForEachSet(Mask rest, const Visit& visit) {
    const int lowest = std::countr_zero(rest);
    // The leftover set is still to come while the count is not a multiple.
    const bool leftover = std::popcount(rest) % size_ != 0;
    Grow(rest & (rest - 1), Mask{1} << lowest, 1, 0, leftover, visit);
  }

  template <typename Visit>
  void Grow(Mask candidates, Mask set, int count, int score, bool leftover,
            const Visit& visit) {
    if (count == size_) {
      // All required GPUs are in one set, so a set has all of them or none.
      if ((set & required_) == 0 || (set & required_) == required_)
        visit(set, score);
      return;
    }
    for (Mask left = candidates; left != 0; left &= left - 1) {
      if (std::popcount(left) < size_ - count &&
          !(leftover && leftover_ >= count))
        break;
      const int next = std::countr_zero(left);
      int added = 0;
      for (Mask members = set; members != 0; members &= members - 1)
        added += scores_[std::countr_zero(members)][next];
      Grow(left & (left - 1), set | Mask{1} << next, count + 1, score + added,
           leftover, visit);
    }
    if (leftover && count == leftover_ && (set & required_) == 0)
      visit(set, score);
  }

  const ScoreMatrix& scores_;
  const Mask required_;
  const int size_;
  const int leftover_;
  std::vector<int> memo_;
};

// More GPUs than any known host has: add the GPU that gains most, one by one.
std::vector<int> GrowGreedily(const ScoreMatrix& scores, std::vector<int> set,
                              int size) {
  const int n = static_cast<int>(scores.size());
  while (static_cast<int>(set.size()) < size) {
    int best = -1;
    int best_gain = -1;
    for (int i = 0; i < n; ++i) {
      if (std::find(set.begin(), set.end(), i) != set.end()) continue;
      int gain = 0;
      for (const int member : set) gain += scores[member][i];
      if (gain > best_gain) {
        best = i;
        best_gain = gain;
      }
    }
    set.push_back(best);
  }
  std::sort(set.begin(), set.end());
  return set;
}

}  // namespace

int SetScore(const ScoreMatrix& scores, const std::vector<int>& set) {
  int score = 0;
  for (size_t i = 0; i < set.size(); ++i) {
    for (size_t j = i + 1; j < set.size(); ++j) score += scores[set[i]][set[j]];
  }
  return score;
}

std::vector<int> BestAlignedSet(const ScoreMatrix& scores,
                                const std::vector<int>& required, int size) {
  const int n = static_cast<int>(scores.size());
  if (size < 1 || size > n || static_cast<int>(required.size()) > size)
    return {};
  if (static_cast<int>(required.size()) == size) return required;
  // Alone, no GPU is better than another.
  if (size == 1) return {0};
  if (n > kMaxExactGpus) return GrowGreedily(scores, required, size);

  Mask required_mask = 0;
  for (const int position : required) required_mask |= Mask{1} << position;
  SplitSearch search(scores, required_mask, size);
  std::vector<int> best_set;
  int best = -1;
  for (const Mask set : search.Split((Mask{1} << n) - 1)) {
    if (std::popcount(set) != size || (set & required_mask) != required_mask)
      continue;
    std::vector<int> positions = Positions(set);
    const int score = SetScore(scores, positions);
    if (score > best) {
      best = score;
      best_set = std::move(positions);
    }
  }
  return best_set;
}

}  // namespace rondo::deviceplugin
