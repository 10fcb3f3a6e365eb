// SPDX-License-Identifier: Apache-2.0
//
// Shows a slot as if it were the GPU: rewrites what the driver answered about
// sizes. Pure. Every figure is the smaller of the driver's and the slot's, so a
// card that is fuller than the slot says so.

#ifndef RONDO_SHIM_VIEW_H_
#define RONDO_SHIM_VIEW_H_

#include <cstddef>
#include <cstdint>

#include "rm/control.h"

namespace rondo::shim {

struct Share {
  uint64_t limit = 0, used = 0;  // bytes; the slot's, all of its processes
  uint64_t free() const { return used < limit ? limit - used : 0; }
};

// FB_GET_INFO, either form: total, heap, usable, free, largest free; KiB.
void ShowFbInfo(const Share& share, rm::FbInfo* list, size_t count);
// How many entries of an FB_GET_INFO_V2 the driver looked at: bounded by the
// struct's own size, which grew from 436 to 1028 bytes over the releases.
size_t FbInfoCount(const void* params, size_t params_size);
// Escape 0x4A function 5: bytes. `arg` is a VidHeapArg.
void ShowHeapInfo(const Share& share, void* arg);
// Escape 0x27 of class 0x40: the heap's last byte. `arg` is an AllocMemoryArg.
void ShowHeapSize(const Share& share, void* arg);

}  // namespace rondo::shim

#endif  // RONDO_SHIM_VIEW_H_
