// SPDX-License-Identifier: Apache-2.0
//
// Where managed memory is mapped (mmaps of /dev/nvidia-uvm), which block each
// range is charged as, and the ranges that look alike but are not managed
// (semaphore pools, peer-to-peer). Under the shim's lock, but for MayTouch().
//
// Managed memory is freed only by munmap or by mapping over it, whole or in
// part (uvm_va_range.c); a hole in the middle leaves two ranges of one block.

#ifndef RONDO_SHIM_RANGES_H_
#define RONDO_SHIM_RANGES_H_

#include <atomic>
#include <cstdint>

#include "shim/account.h"
#include "shim/mapped_array.h"

namespace rondo::shim {

class Ranges {
 public:
  // `block` is Account::kNoBlock for a range that is not managed. False where
  // there is no memory to note it.
  bool Add(uint64_t start, uint64_t length, uint32_t block);
  bool IsUnmanaged(uint64_t start, uint64_t length) const;

  // A snapshot before a mapping call; Cut() leaves what came after it alone.
  uint64_t last_serial() const { return serial_; }

  // [start, start + length) is gone. lost(block, bytes, last) for each managed
  // range that lost `bytes`; last: no range of that block is left.
  template <typename F>
  void Cut(uint64_t start, uint64_t length, uint64_t serial, F lost) {
    const uint64_t end = start + length;
    for (size_t i = ranges_.size(); i-- > 0;) {
      const Range r = ranges_[i];
      if (r.serial > serial || r.end <= start || end <= r.start) continue;
      ranges_.RemoveAt(i);
      uint64_t left = 0;
      if (r.start < start) left += Keep(r, r.start, start);
      if (r.end > end) left += Keep(r, end, r.end);
      if (r.block != Account::kNoBlock) {
        lost(r.block, r.end - r.start - left, !Holds(r.block));
      }
    }
  }

  // Without the lock: can the range touch any of ours? A process without
  // managed memory pays this compare a munmap.
  bool MayTouch(uint64_t start, uint64_t length) const {
    return start < high_.load(std::memory_order_acquire) &&
           start + length > low_.load(std::memory_order_acquire);
  }

  void Forget();  // after fork: the child has no such mapping (VM_DONTCOPY)

 private:
  struct Range {
    uint64_t start, end, serial;
    uint32_t block;
  };
  uint64_t Keep(Range range, uint64_t start, uint64_t end);
  bool Holds(uint32_t block) const;

  MappedArray<Range> ranges_;
  uint64_t serial_ = 0;
  std::atomic<uint64_t> low_{~uint64_t{0}}, high_{0};
};

}  // namespace rondo::shim

#endif  // RONDO_SHIM_RANGES_H_
