// SPDX-License-Identifier: Apache-2.0
//
// The shim's one lock. While a Guard lives, all signals of the thread are
// blocked: a handler that calls into the driver, or leaves by longjmp, can
// neither deadlock nor strand the lock. No libc, no allocation. A child of
// fork() finds it as the parent's threads left it; Reset() is for that.

#ifndef RONDO_SHIM_LOCK_H_
#define RONDO_SHIM_LOCK_H_

#include <atomic>
#include <cstdint>

#include "shim/sys.h"

namespace rondo::shim {

class Lock {
 public:
  void Acquire() {
    uint32_t seen = 0;
    if (word_.compare_exchange_strong(seen, 1, std::memory_order_acquire)) {
      return;
    }
    while (word_.exchange(2, std::memory_order_acquire) != 0) {
      sys::Call(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, 2, nullptr);
    }
  }
  void Release() {
    if (word_.exchange(0, std::memory_order_release) == 2) {
      sys::Call(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1);
    }
  }
  void Reset() { word_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<uint32_t> word_{0};  // 0 free, 1 held, 2 held and waited for
};

// Blocks every signal of the calling thread, libc's own included.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    const uint64_t all = ~uint64_t{0};
    sys::Call(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, &before_, 8);
  }
  ~SignalsBlocked() {
    sys::Call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &before_, nullptr, 8);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  uint64_t before_ = 0;
};

}  // namespace rondo::shim

#endif  // RONDO_SHIM_LOCK_H_
