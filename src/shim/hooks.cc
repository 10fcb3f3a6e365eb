// SPDX-License-Identifier: Apache-2.0
//
// The exported functions. Until the process uses the driver each is one compare
// and a jump to the next definition.

#include "rm/abi.h"
#include "shim/calls.h"
#include "shim/thread.h"

namespace rondo::shim {
namespace {

constinit Shim g_shim;

bool Armed() { return g_shim.armed.load(std::memory_order_acquire); }

}  // namespace
}  // namespace rondo::shim

#define RONDO_HOOK(name, result, parameters, arguments) \
  extern "C" __attribute__((visibility("default")))     \
  result name parameters noexcept;
#include "shim/hooks.inc"
#undef RONDO_HOOK

using rondo::shim::Armed;
using rondo::shim::g_shim;
using rondo::shim::Next;

int ioctl(int fd, unsigned long request, void* arg) noexcept {
  const auto number = static_cast<uint32_t>(request);
  if (rondo::rm::RequestType(number) == rondo::rm::kIoctlType) {
    const int result = rondo::shim::OnDriverIoctl(&g_shim, fd, request, arg);
    if (g_shim.thread_due.load(std::memory_order_acquire)) {
      rondo::shim::StartThreadIfWanted(&g_shim);
    }
    return result;
  }
  if (!Armed() || (fd != g_shim.uvm_fd.load(std::memory_order_acquire) &&
                   number != rondo::rm::kUvmInitialize)) {
    return Next::ioctl(fd, request, arg);
  }
  return rondo::shim::OnUvmIoctl(&g_shim, fd, request, arg);
}

void* mmap(void* addr, size_t length, int prot, int flags, int fd,
           long offset) noexcept {
  if (!Armed()) return Next::mmap(addr, length, prot, flags, fd, offset);
  return rondo::shim::OnMmap(&g_shim, &Next::mmap, addr, length, prot, flags,
                             fd, offset);
}

void* mmap64(void* addr, size_t length, int prot, int flags, int fd,
             long offset) noexcept {
  if (!Armed()) return Next::mmap64(addr, length, prot, flags, fd, offset);
  return rondo::shim::OnMmap(&g_shim, &Next::mmap64, addr, length, prot, flags,
                             fd, offset);
}

int munmap(void* addr, size_t length) noexcept {
  if (!Armed()) return Next::munmap(addr, length);
  return rondo::shim::OnMunmap(&g_shim, addr, length);
}
