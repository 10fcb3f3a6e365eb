// SPDX-License-Identifier: Apache-2.0
//
// The slice of the one that runs beside those who come and go. A tiny one lets
// them onto the GPU at once, and costs two switches each time; so it is as
// short as keeps the price of those within a part of the GPU. Pure; of the
// arbiter alone.

#ifndef RONDO_SHARE_TIME_HOLDER_SLICE_H_
#define RONDO_SHARE_TIME_HOLDER_SLICE_H_

#include <cstdint>

#include "share/time/rules.h"

namespace rondo::share {

class HolderSlice {
 public:
  // price: of the GPU's time. most_us: the driver's own is never passed.
  void Add(int64_t interval_us, int64_t stays, double price, double most_us,
           const HolderSliceRules& rules);
  // tiny_us, or from shortest_us on.
  double us() const { return us_; }
  void Begin(const HolderSliceRules& rules) {
    if (us_ == 0) us_ = rules.tiny_us;
  }

 private:
  double us_ = 0;
  int64_t seen_us_ = 0, stays_ = 0;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_HOLDER_SLICE_H_
