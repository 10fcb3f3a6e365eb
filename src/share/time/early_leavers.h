// SPDX-License-Identifier: Apache-2.0
//
// A program that waits for each of its kernels leaves the GPU when one ends,
// and the rest of its slice is gone: the hardware goes on to the next group. Of
// slices by weight it then gets too little. This tells by how much the slices
// of those that use all of theirs have to be shorter, so that the times on the
// GPU come out by weight. Pure.

#ifndef RONDO_SHARE_TIME_EARLY_LEAVERS_H_
#define RONDO_SHARE_TIME_EARLY_LEAVERS_H_

#include <vector>

namespace rondo::share {

// One tenant within a window in which slices did not change. Times in us.
struct Stays {
  double due_us = 0;    // a group's slice by weight
  double slice_us = 0;  // a group's slice that was in force
  double used_us = 0;   // on the GPU, all groups
  double count = 0;     // times that a group came onto it
  int groups = 1;       // that ran
  // Out: it leaves so early that the others' slices are measured by it.
  bool leaves = false;
};

// In (0, 1]; 1 where nobody leaves early and is back for the next rotation.
// Who leaves early and stays away did not want more.
double SliceFactor(std::vector<Stays>* tenants, double window_us);

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_EARLY_LEAVERS_H_
