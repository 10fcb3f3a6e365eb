// SPDX-License-Identifier: Apache-2.0

#include "shim/ranges.h"

namespace rondo::shim {

bool Ranges::Add(uint64_t start, uint64_t length, uint32_t block) {
  if (!ranges_.Push({start, start + length, ++serial_, block})) return false;
  if (start < low_.load(std::memory_order_relaxed)) {
    low_.store(start, std::memory_order_release);
  }
  if (start + length > high_.load(std::memory_order_relaxed)) {
    high_.store(start + length, std::memory_order_release);
  }
  return true;
}

// Never fails: the slot of the range that was cut is free, and a second piece
// that finds no memory counts as gone.
uint64_t Ranges::Keep(Range range, uint64_t start, uint64_t end) {
  range.start = start;
  range.end = end;
  return ranges_.Push(range) ? end - start : 0;
}

bool Ranges::Holds(uint32_t block) const {
  for (size_t i = 0; i < ranges_.size(); ++i) {
    if (ranges_[i].block == block) return true;
  }
  return false;
}

bool Ranges::IsUnmanaged(uint64_t start, uint64_t length) const {
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const Range& r = ranges_[i];
    if (r.block == Account::kNoBlock && r.start < start + length &&
        start < r.end) {
      return true;
    }
  }
  return false;
}

void Ranges::Forget() {
  ranges_.Forget();
  low_.store(~uint64_t{0}, std::memory_order_relaxed);
  high_.store(0, std::memory_order_relaxed);
}

}  // namespace rondo::shim
