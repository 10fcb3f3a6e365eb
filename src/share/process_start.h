// SPDX-License-Identifier: Apache-2.0
//
// When a process started: with its pid, what tells it from those that had that
// pid before. Any thread.

#ifndef RONDO_SHARE_PROCESS_START_H_
#define RONDO_SHARE_PROCESS_START_H_

#include <cstdint>

namespace rondo::share {

// In clock ticks since boot; 0 where it cannot be read.
uint64_t ProcessStart(int32_t pid);

}  // namespace rondo::share

#endif  // RONDO_SHARE_PROCESS_START_H_
