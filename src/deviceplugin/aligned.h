// SPDX-License-Identifier: Apache-2.0
//
// Which whole GPUs lie best together. Pure; any thread.
//
// The measure is that of NVIDIA's best-effort policy: split all available GPUs
// into sets of the wanted size so that the sum of all pair scores inside the
// sets is greatest, then take the best set of that split. NVIDIA's plugin tries
// every split (3 s for 2 of 16); here a table over subsets gives the same
// optimum in milliseconds. Ties go to the lowest positions.

#ifndef RONDO_DEVICEPLUGIN_ALIGNED_H_
#define RONDO_DEVICEPLUGIN_ALIGNED_H_

#include <vector>

namespace rondo::deviceplugin {

// score[i][j]: symmetric, of positions 0..n-1.
using ScoreMatrix = std::vector<std::vector<int>>;

// Sum of the pair scores inside a set.
int SetScore(const ScoreMatrix& scores, const std::vector<int>& set);

// Above this many GPUs the exact search gives way to growing one set greedily.
inline constexpr int kMaxExactGpus = 16;

// Positions of the best set of `size`, ascending, with all of `required`
// (ascending, without repeats) in it. Empty when there is none: size < 1, more
// than n, or less than required.
std::vector<int> BestAlignedSet(const ScoreMatrix& scores,
                                const std::vector<int>& required, int size);

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_ALIGNED_H_
