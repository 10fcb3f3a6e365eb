// SPDX-License-Identifier: Apache-2.0
//
// What the rooms of the sharing name the same thing by. Plain values.

#ifndef RONDO_SHARE_IDS_H_
#define RONDO_SHARE_IDS_H_

#include <cstdint>

namespace rondo::share {

// One connection of one process. Never reused while the agent lives.
using ProcessId = uint64_t;

}  // namespace rondo::share

#endif  // RONDO_SHARE_IDS_H_
