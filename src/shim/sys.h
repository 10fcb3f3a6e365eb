// SPDX-License-Identifier: Apache-2.0
//
// System calls without libc: they touch no errno, take no lock, are no
// cancellation point and cannot be interposed. Results are the kernel's: -errno
// on failure. Any thread, signal handlers included.

#ifndef RONDO_SHIM_SYS_H_
#define RONDO_SHIM_SYS_H_

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include <cstddef>
#include <cstdint>

namespace rondo::shim::sys {

template <typename T>
long Word(T value) {
  if constexpr (__is_enum(T) || sizeof(T) < sizeof(long)) {
    return static_cast<long>(value);
  } else {
    return (long)value;  // pointers and longs alike
  }
}

inline long Raw(long n, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long ret;
  asm volatile("syscall"
               : "=a"(ret)
               : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return ret;
#elif defined(__aarch64__)
  register long x8 asm("x8") = n;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc #0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
#else
#error "port: one system call instruction"
#endif
}

template <typename... A>
long Call(long number, A... args) {
  static_assert(sizeof...(A) <= 6);
  long a[6] = {Word(args)...};
  return Raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

inline int Pid() { return static_cast<int>(Call(SYS_getpid)); }
inline void Close(int fd) { Call(SYS_close, fd); }

inline uint64_t NowNs() {
  timespec t{};
  Call(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u +
         static_cast<uint64_t>(t.tv_nsec);
}

// Anonymous memory, zeroed; null when there is none.
inline void* Map(size_t bytes) {
  const long p = Call(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p < 0 && p > -4096 ? nullptr : reinterpret_cast<void*>(p);
}
inline void Unmap(void* p, size_t bytes) { Call(SYS_munmap, p, bytes); }

// Which file a descriptor is, so that one which the program closed and opened
// as something else is not taken for ours.
struct FileId {
  uint64_t dev = 0, ino = 0, rdev = 0;
  uint32_t mode = 0;
  bool operator==(const FileId&) const = default;
};
inline bool GetFileId(int fd, FileId* out) {
  struct stat st;
  if (Call(SYS_fstat, fd, &st) != 0) return false;
  *out = {st.st_dev, st.st_ino, st.st_rdev, st.st_mode};
  return true;
}

// Waits until a descriptor has `events` or the deadline passes; false then.
inline bool WaitFor(int fd, short events, uint64_t deadline_ns) {
  for (;;) {
    const uint64_t now = NowNs();
    const uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
    timespec t{static_cast<time_t>(left / 1000000000u),
               static_cast<long>(left % 1000000000u)};
    pollfd p{fd, events, 0};
    const long n = Call(SYS_ppoll, &p, 1, &t, nullptr, 0);
    if (n > 0) return true;
    if (n == 0 || n != -EINTR) return false;
  }
}

// Can the process read [p, p + n)? The kernel says so without a fault: it reads
// a signal set there before it refuses the nonsensical `how`.
inline bool Readable(const void* p, size_t n) {
  if (p == nullptr) return false;
  const uintptr_t first = reinterpret_cast<uintptr_t>(p);
  if (n == 0 || first + n < first) return false;
  for (uintptr_t at = first & ~uintptr_t{4095}; at < first + n; at += 4096) {
    const uintptr_t probe = (at < first ? first : at) & ~uintptr_t{7};
    if (Call(SYS_rt_sigprocmask, -1, probe, nullptr, 8) == -EFAULT) {
      return false;
    }
  }
  return true;
}

}  // namespace rondo::shim::sys

#endif  // RONDO_SHIM_SYS_H_
