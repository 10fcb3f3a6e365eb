// SPDX-License-Identifier: Apache-2.0
//
// What each hooked function does once the process uses the driver. Any thread;
// errno, results and the program's memory are what the next definition makes
// them, but for what docs/shim.md lists. Calls of unknown shape go through
// untouched.

#ifndef RONDO_SHIM_CALLS_H_
#define RONDO_SHIM_CALLS_H_

#include "shim/driver_call.h"
#include "shim/next.h"
#include "shim/shim.h"

namespace rondo::shim {

// One ioctl under way: what came in, and what it means.
struct Site {
  int fd;
  unsigned long request;
  void* arg;     // to pass on
  void* inner;   // what was decoded: arg, or what it wraps
  void* params;  // readable, call.params_bytes of them; else null
  Call call;

  int Forward() const { return Next::ioctl(fd, request, arg); }
  // Passed on, and the driver did it.
  bool Done(int result) const {
    return result == 0 && ReadOutcome(call, inner, params).ok;
  }
  void SetStatus(uint32_t status) const {
    __builtin_memcpy(static_cast<char*>(inner) + call.status_at, &status,
                     sizeof status);
  }
};

// 'F' ioctls.
int OnDriverIoctl(Shim* shim, int fd, unsigned long request, void* arg);

// memory_calls.cc: each passes the call on (or refuses) and accounts for it.
int OnMemory(Shim* shim, const Site& site);
int OnFree(Shim* shim, const Site& site);
int OnDup(Shim* shim, const Site& site);
int OnShare(Shim* shim, const Site& site);
int OnExport(Shim* shim, const Site& site);
int OnImport(Shim* shim, const Site& site);

// Notes an object; one of the same name is gone.
void Note(Shim* shim, const Object& object);

// object_calls.cc
int OnVersion(Shim* shim, const Site& site);
int OnObject(Shim* shim, const Site& site);
int OnSetSlice(Shim* shim, const Site& site);
int OnDisableChannels(Shim* shim, const Site& site);
int OnView(Shim* shim, const Site& site);
// Asks for memory of a GPU's slots; memory_calls.cc. kDenied: by all of them.
Taken TakeOnAny(Shim* shim, uint32_t slots, wire::Kind kind, uint64_t bytes,
                uint32_t* block);

// uvm_calls.cc
int OnUvmIoctl(Shim* shim, int fd, unsigned long request, void* arg);
using Mapper = void* (*)(void*, size_t, int, int, int, long);
void* OnMmap(Shim* shim, Mapper next, void* addr, size_t length, int prot,
             int flags, int fd, long offset);
int OnMunmap(Shim* shim, void* addr, size_t length);

}  // namespace rondo::shim

#endif  // RONDO_SHIM_CALLS_H_
