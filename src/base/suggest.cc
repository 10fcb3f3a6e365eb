// SPDX-License-Identifier: Apache-2.0
#include "base/suggest.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"

namespace rondo {
namespace {

// Optimal string alignment distance, letter case aside.
size_t Distance(absl::string_view raw_a, absl::string_view raw_b) {
  const std::string a = absl::AsciiStrToLower(raw_a);
  const std::string b = absl::AsciiStrToLower(raw_b);
  std::vector<std::vector<size_t>> d(a.size() + 1,
                                     std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string NearestWord(absl::string_view word,
                        const std::vector<std::string>& candidates) {
  // Words from outside may be of any length; a slip of a known word is not.
  constexpr size_t kLongest = 64;
  if (word.empty() || word.size() > kLongest) return "";
  size_t best = std::max<size_t>(1, word.size() / 3) + 1;
  std::string nearest;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    if (const size_t d = Distance(word, candidate); d < best) {
      best = d;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace rondo
