// SPDX-License-Identifier: Apache-2.0
//
// The next definition of each hooked function: another interposer's, the
// simulated driver's or libc's. Found by RTLD_NEXT once, without a lock; where
// nothing is found (a process without a dynamic libc) the system call itself.
// Any thread. Sets errno as the next definition does.

#ifndef RONDO_SHIM_NEXT_H_
#define RONDO_SHIM_NEXT_H_

#include <cstddef>

namespace rondo::shim {

struct Next {
#define RONDO_HOOK(name, result, parameters, arguments) \
  static result name parameters;
#include "shim/hooks.inc"
#undef RONDO_HOOK
};

// libc's, where there is one: no version is named, so any libc will do, and a
// missing one is null. (A versioned reference would bind to the newest glibc
// that the build machine has; dlsym and pthread_create moved in 2.34.)
void* FindSymbol(const char* name);

// The thread's errno as it was, whatever is called in between.
class ErrnoKept {
 public:
  ErrnoKept();
  ~ErrnoKept();
  ErrnoKept(const ErrnoKept&) = delete;
  ErrnoKept& operator=(const ErrnoKept&) = delete;
  void Set(int value) { value_ = value; }

 private:
  int value_;
};

}  // namespace rondo::shim

#endif  // RONDO_SHIM_NEXT_H_
