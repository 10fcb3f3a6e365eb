// SPDX-License-Identifier: Apache-2.0
//
// Managed memory: mmaps of /dev/nvidia-uvm. It may live in host memory, so it
// is charged apart (Kind::kManaged), at full size, on the first slot.

#include <string.h>
#include <sys/mman.h>

#include "rm/abi.h"
#include "shim/calls.h"

namespace rondo::shim {
namespace {

struct UvmInit {
  uint64_t flags;
  uint32_t status, pad;
};
struct UvmRange {
  uint64_t base, length;
};

uint64_t Pages(size_t length) { return (length + 4095) & ~uint64_t{4095}; }

void Cut(Shim* shim, uint64_t start, size_t length, uint64_t serial) {
  shim->ranges.Cut(start, Pages(length), serial,
                   [&](uint32_t block, uint64_t bytes, bool last) {
                     if (last) {
                       shim->account.DropName(block);
                     } else {
                       shim->account.Resize(block,
                                            shim->account.bytes(block) - bytes);
                     }
                   });
}

uint64_t Serial(Shim* shim) {
  Guard guard(shim);
  return shim->ranges.last_serial();
}

int OnInitialize(Shim* shim, int fd, unsigned long request, void* arg) {
  if (!sys::Readable(arg, sizeof(UvmInit))) {
    return Next::ioctl(fd, request, arg);
  }
  UvmInit init;
  memcpy(&init, arg, sizeof init);
  {
    Guard guard(shim);
    // With HMM, malloc'ed memory moves to the GPU without any call to count.
    for (uint32_t i = 0; i < shim->slots.count; ++i) {
      shim->EnsureConnected(i);
      const Link& link = shim->links[i];
      if (link.known() && link.policy().memory == wire::Memory::kEnforce) {
        init.flags |= rm::kUvmInitDisableHmm;
      }
    }
    shim->hmm_left_on = (init.flags & rm::kUvmInitDisableHmm) == 0;
  }
  const int result = Next::ioctl(fd, request, &init);
  if (result != 0) return result;
  memcpy(static_cast<char*>(arg) + offsetof(UvmInit, status), &init.status,
         sizeof init.status);
  Guard guard(shim);
  if (init.status == rm::kOk && sys::GetFileId(fd, &shim->uvm_file)) {
    shim->uvm_fd.store(fd, std::memory_order_release);
  }
  return result;
}

bool IsUvm(Shim* shim, int fd) {
  sys::FileId now;
  return fd == shim->uvm_fd.load(std::memory_order_acquire) &&
         sys::GetFileId(fd, &now) && now == shim->uvm_file;
}

}  // namespace

int OnUvmIoctl(Shim* shim, int fd, unsigned long request, void* arg) {
  if (request == rm::kUvmInitialize) {
    return OnInitialize(shim, fd, request, arg);
  }
  const int result = Next::ioctl(fd, request, arg);
  const bool range = request == rm::kUvmAllocSemaphorePool ||
                     request == rm::kUvmAllocDeviceP2p;
  if (!range || result != 0 || !sys::Readable(arg, sizeof(UvmRange))) {
    return result;
  }
  UvmRange made;
  memcpy(&made, arg, sizeof made);
  Guard guard(shim);
  if (IsUvm(shim, fd)) {
    shim->ranges.Add(made.base, made.length, Account::kNoBlock);
  }
  return result;
}

void* OnMmap(Shim* shim, Mapper next, void* addr, size_t length, int prot,
             int flags, int fd, long offset) {
  const uint64_t start = reinterpret_cast<uint64_t>(addr);
  const bool shared = (flags & MAP_TYPE) == MAP_SHARED;
  uint32_t block = Account::kNoBlock;
  uint64_t serial = 0;
  if (fd >= 0 && shared && fd == shim->uvm_fd.load(std::memory_order_acquire)) {
    ErrnoKept kept;
    Guard guard(shim);
    serial = shim->ranges.last_serial();
    if (IsUvm(shim, fd) && !shim->ranges.IsUnmanaged(start, Pages(length)) &&
        shim->slots.count > 0 &&
        TakeOnAny(shim, 1, wire::Kind::kManaged, Pages(length), &block) ==
            Taken::kDenied) {
      kept.Set(ENOMEM);
      return MAP_FAILED;
    }
  } else if ((flags & MAP_FIXED) != 0 && shim->ranges.MayTouch(start, length)) {
    serial = Serial(shim);
  } else {
    return next(addr, length, prot, flags, fd, offset);
  }
  void* mapped = next(addr, length, prot, flags, fd, offset);
  Guard guard(shim);
  if (mapped == MAP_FAILED) {
    if (block != Account::kNoBlock) shim->account.DropName(block);
    return mapped;
  }
  const uint64_t at = reinterpret_cast<uint64_t>(mapped);
  // A range that UVM knows as something else is not cut by its own mapping.
  if (block == Account::kNoBlock && shared &&
      shim->ranges.IsUnmanaged(at, Pages(length))) {
    return mapped;
  }
  Cut(shim, at, length, serial);
  if (block != Account::kNoBlock &&
      !shim->ranges.Add(at, Pages(length), block)) {
    shim->health.Set(wire::Reason::kTableFull);
  }
  return mapped;
}

int OnMunmap(Shim* shim, void* addr, size_t length) {
  const uint64_t start = reinterpret_cast<uint64_t>(addr);
  if (!shim->ranges.MayTouch(start, Pages(length))) {
    return Next::munmap(addr, length);
  }
  const uint64_t serial = Serial(shim);
  const int result = Next::munmap(addr, length);
  if (result != 0) return result;
  Guard guard(shim);
  Cut(shim, start, length, serial);
  return result;
}

}  // namespace rondo::shim
