// SPDX-License-Identifier: Apache-2.0
#include "share/time/early_leavers.h"

#include <algorithm>

#include "rm/facts.h"

namespace rondo::share {
namespace {

constexpr double kLeastStays = 4;  // fewer tell nothing
// A stay of this part of the slice is all of it: the log's ends are not exact.
constexpr double kWhole = 0.93;
// A rotation that is this much longer than all stays together had a pause.
constexpr double kPause = 1.12;
// Who leaves nearly as early as the earliest counts as one of them.
constexpr double kAlike = 1.05;

double MeanStay(const Stays& t) { return t.used_us / t.count; }

// What it makes of its slice by weight, at most 1.
double Part(const Stays& t) {
  const double mean = MeanStay(t);
  return mean >= kWhole * t.slice_us ? 1 : std::min(1.0, mean / t.due_us);
}

}  // namespace

double SliceFactor(std::vector<Stays>* tenants, double window_us) {
  double rotation_us = 0;
  for (Stays& t : *tenants) {
    t.leaves = false;
    if (t.count < kLeastStays) continue;
    // On beyond its slice only while nobody else wanted the GPU.
    rotation_us +=
        t.groups * (std::min(MeanStay(t), t.slice_us) + rm::kContextSwitchUs);
  }
  double factor = 1;
  const auto waits = [&](const Stays& t) {
    return t.count >= kLeastStays &&
           window_us * t.groups / t.count <= kPause * rotation_us;
  };
  for (const Stays& t : *tenants)
    if (waits(t)) factor = std::min(factor, Part(t));
  for (Stays& t : *tenants)
    t.leaves = factor < 1 && waits(t) && Part(t) <= factor * kAlike;
  return factor;
}

}  // namespace rondo::share
