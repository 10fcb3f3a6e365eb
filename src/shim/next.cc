// SPDX-License-Identifier: Apache-2.0

#include "shim/next.h"

#include <atomic>

#include "shim/sys.h"

// Weak and without a version: resolved against whatever libc the process has.
extern "C" {
__attribute__((weak, visibility("default"))) void* dlsym(void*, const char*);
__attribute__((weak, visibility("default"))) void* dlopen(const char*, int);
__attribute__((weak, visibility("default"))) int* __errno_location();
}

namespace rondo::shim {
namespace {

// <dlfcn.h> declares the functions above as nonnull.
inline void* const kRtldNext = reinterpret_cast<void*>(-1l);
inline void* const kRtldDefault = nullptr;
constexpr int kRtldLazy = 1, kRtldNoload = 4;

void SetErrno(int value) {
  if (__errno_location != nullptr) *__errno_location() = value;
}

long Checked(long result) {
  if (result < 0 && result > -4096) {
    SetErrno(static_cast<int>(-result));
    return -1;
  }
  return result;
}

int SystemCall_ioctl(int fd, unsigned long request, void* arg) {
  return static_cast<int>(Checked(sys::Call(SYS_ioctl, fd, request, arg)));
}
void* SystemCall_mmap(void* addr, size_t length, int prot, int flags, int fd,
                      long offset) {
  return reinterpret_cast<void*>(
      Checked(sys::Call(SYS_mmap, addr, length, prot, flags, fd, offset)));
}
void* SystemCall_mmap64(void* addr, size_t length, int prot, int flags, int fd,
                        long offset) {
  return SystemCall_mmap(addr, length, prot, flags, fd, offset);
}
int SystemCall_munmap(void* addr, size_t length) {
  return static_cast<int>(Checked(sys::Call(SYS_munmap, addr, length)));
}

template <typename F>
F* Resolve(std::atomic<F*>* slot, const char* name, F* fallback) {
  F* found = slot->load(std::memory_order_acquire);
  if (found != nullptr) return found;
  if (dlsym != nullptr) {
    found = reinterpret_cast<F*>(dlsym(kRtldNext, name));
  }
  if (found == nullptr) found = fallback;
  slot->store(found, std::memory_order_release);  // racers store the same
  return found;
}

}  // namespace

#define RONDO_HOOK(name, result, parameters, arguments)             \
  result Next::name parameters {                                    \
    using F = result parameters;                                    \
    static constinit std::atomic<F*> found{nullptr};                \
    return Resolve<F>(&found, #name, &SystemCall_##name) arguments; \
  }
#include "shim/hooks.inc"
#undef RONDO_HOOK

void* FindSymbol(const char* name) {
  if (dlsym == nullptr) return nullptr;
  void* found = dlsym(kRtldDefault, name);
  // Before glibc 2.34 threads were a library of their own, which a program may
  // have loaded later and privately.
  if (found == nullptr && dlopen != nullptr) {
    void* threads = dlopen("libpthread.so.0", kRtldLazy | kRtldNoload);
    if (threads != nullptr) found = dlsym(threads, name);
  }
  return found;
}

ErrnoKept::ErrnoKept()
    : value_(__errno_location != nullptr ? *__errno_location() : 0) {}
ErrnoKept::~ErrnoKept() { SetErrno(value_); }

}  // namespace rondo::shim
