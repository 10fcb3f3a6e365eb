// SPDX-License-Identifier: Apache-2.0
//
// Did-you-mean. Pure; any thread.

#ifndef RONDO_BASE_SUGGEST_H_
#define RONDO_BASE_SUGGEST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace rondo {

// The candidate that differs from word, letter case aside, by the fewest edits
// (insert, delete, replace, swap of neighbours), if that is few enough to be a
// slip: at most a third of the word's length, at least one. Empty if none is
// near. Of equally near ones, the first.
std::string NearestWord(absl::string_view word,
                        const std::vector<std::string>& candidates);

}  // namespace rondo

#endif  // RONDO_BASE_SUGGEST_H_
