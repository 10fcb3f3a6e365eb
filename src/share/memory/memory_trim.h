// SPDX-License-Identifier: Apache-2.0
//
// Gives memory back to the system soon after much of it was freed: the
// allocator keeps what lies between things that stay. Threads: the loop's.

#ifndef RONDO_SHARE_MEMORY_MEMORY_TRIM_H_
#define RONDO_SHARE_MEMORY_MEMORY_TRIM_H_

#include <malloc.h>

#include <chrono>
#include <cstddef>

#include "base/clock.h"
#include "base/event_loop.h"

namespace rondo::share {

class MemoryTrim {
 public:
  explicit MemoryTrim(EventLoop& loop) : loop_(loop) {}
  ~MemoryTrim() {
    if (timer_ != 0) loop_.CancelTimer(timer_);
  }
  MemoryTrim(const MemoryTrim&) = delete;
  MemoryTrim& operator=(const MemoryTrim&) = delete;

  // So many reservations and channels.
  void NoteFreed(size_t things) {
    freed_ += things;
    if (freed_ < kMuch || timer_ != 0) return;
    timer_ = loop_.RunAfter(kPause, [this] {
      timer_ = 0;
      freed_ = 0;
      malloc_trim(0);
    });
  }

 private:
  static constexpr size_t kMuch = 1 << 14;  // some MB
  static constexpr MonotonicTime kPause = std::chrono::seconds(1);

  EventLoop& loop_;
  EventLoop::TimerId timer_ = 0;
  size_t freed_ = 0;  // since the last time
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_MEMORY_MEMORY_TRIM_H_
