// SPDX-License-Identifier: Apache-2.0
//
// librondo-sim-driver.so: preloaded after the shim, it stands where the kernel
// would. It gives open of NVIDIA's device files a socket to the simulated
// driver, and carries ioctl and mmap of such a descriptor there. Everything
// else goes to the next definition.
//
// It keeps no state but the path of the sockets, so it is right after fork, in
// any thread and for descriptors that came from elsewhere: what a descriptor is
// the kernel says (the name of the socket's other end).
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "sim/driver/interpose/carry.h"
#include "sim/driver/protocol.h"

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace rondo::sim::driver {
namespace {

template <typename F>
F* Next(F*& slot, const char* name) {
  // Benign race: all threads find the same.
  F* found = __atomic_load_n(&slot, __ATOMIC_RELAXED);
  if (found == nullptr) {
    found = reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
    __atomic_store_n(&slot, found, __ATOMIC_RELAXED);
  }
  return found;
}

using OpenFn = int(const char*, int, ...);
using OpenAtFn = int(int, const char*, int, ...);
using IoctlFn = int(int, unsigned long, ...);
using MmapFn = void*(void*, size_t, int, int, int, off_t);

// "nvidiactl", "nvidia-uvm" or "nvidia<minor>" where path is one of NVIDIA's
// device files, in /dev or in the /dev of a staged driver root; else null.
const char* DeviceOf(const char* path) {
  if (path == nullptr) return nullptr;
  const char* const slash = strrchr(path, '/');
  if (slash == nullptr || slash - path < 4 || memcmp(slash - 4, "/dev", 4) != 0)
    return nullptr;
  const char* const name = slash + 1;
  if (strcmp(name, kControlDevice) == 0 || strcmp(name, kUvmDevice) == 0)
    return name;
  if (strncmp(name, "nvidia", 6) != 0 || name[6] == '\0') return nullptr;
  return name[6 + strspn(name + 6, "0123456789")] == '\0' ? name : nullptr;
}

// True where path was one of ours; *fd is then what open gives, with errno set.
bool OpenDevice(const char* path, int flags, int* fd) {
  const char* const device = DeviceOf(path);
  if (device == nullptr) return false;
  const int got = Connect(device, (flags & O_CLOEXEC) != 0);
  if (got == kNoDriver) return false;
  *fd = got;
  return true;
}

mode_t ModeOf(int flags, va_list list) {
  return (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
}

}  // namespace
}  // namespace rondo::sim::driver

using namespace rondo::sim::driver;  // NOLINT: its exported face

#define SIM_OPEN(name)                                        \
  SIM_EXPORT int name(const char* path, int flags, ...) {     \
    va_list list;                                             \
    va_start(list, flags);                                    \
    const mode_t mode = ModeOf(flags, list);                  \
    va_end(list);                                             \
    if (int fd = -1; OpenDevice(path, flags, &fd)) return fd; \
    static OpenFn* next;                                      \
    return Next(next, #name)(path, flags, mode);              \
  }
SIM_OPEN(open)
SIM_OPEN(open64)
#undef SIM_OPEN

// Fortified programs call these.
#define SIM_OPEN_2(name)                                      \
  SIM_EXPORT int name(const char* path, int flags) {          \
    if (int fd = -1; OpenDevice(path, flags, &fd)) return fd; \
    static int (*next)(const char*, int);                     \
    return Next(next, #name)(path, flags);                    \
  }
SIM_OPEN_2(__open_2)
SIM_OPEN_2(__open64_2)
#undef SIM_OPEN_2

#define SIM_OPENAT(name)                                           \
  SIM_EXPORT int name(int dir, const char* path, int flags, ...) { \
    va_list list;                                                  \
    va_start(list, flags);                                         \
    const mode_t mode = ModeOf(flags, list);                       \
    va_end(list);                                                  \
    if (int fd = -1; OpenDevice(path, flags, &fd)) return fd;      \
    static OpenAtFn* next;                                         \
    return Next(next, #name)(dir, path, flags, mode);              \
  }
SIM_OPENAT(openat)
SIM_OPENAT(openat64)
#undef SIM_OPENAT

SIM_EXPORT int ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* const arg = va_arg(list, void*);
  va_end(list);
  if (MayBeDriverRequest(request)) {
    switch (KindOf(fd)) {
      case Kind::kRm:
        return CarryIoctl(fd, static_cast<uint32_t>(request), arg);
      case Kind::kUvm:
        return AnswerUvm(static_cast<uint32_t>(request), arg);
      case Kind::kOther:
        break;
    }
  }
  static IoctlFn* next;
  return Next(next, "ioctl")(fd, request, arg);
}

#define SIM_MMAP(name)                                                        \
  SIM_EXPORT void* name(void* at, size_t size, int protection, int flags,     \
                        int fd, off_t offset) {                               \
    static MmapFn* next;                                                      \
    MmapFn* const map = Next(next, #name);                                    \
    const Kind kind =                                                         \
        fd < 0 || (flags & MAP_ANONYMOUS) != 0 ? Kind::kOther : KindOf(fd);   \
    if (kind == Kind::kOther)                                                 \
      return map(at, size, protection, flags, fd, offset);                    \
    /* Managed memory: pages of this process, at the address it chose. */     \
    if (kind == Kind::kUvm)                                                   \
      return map(at, size, protection, flags | MAP_ANONYMOUS | MAP_NORESERVE, \
                 -1, 0);                                                      \
    const int shown = FetchMapping(fd);                                       \
    if (shown < 0) return MAP_FAILED;                                         \
    void* const mapped = map(at, size, protection, flags, shown, 0);          \
    const int error = errno;                                                  \
    close(shown);                                                             \
    errno = error;                                                            \
    return mapped;                                                            \
  }
SIM_MMAP(mmap)
SIM_MMAP(mmap64)
#undef SIM_MMAP
