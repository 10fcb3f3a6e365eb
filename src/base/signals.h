// SPDX-License-Identifier: Apache-2.0
//
// Signals as input of an event loop.

#ifndef RONDO_BASE_SIGNALS_H_
#define RONDO_BASE_SIGNALS_H_

#include <initializer_list>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace rondo {

// A signalfd of these signals, non-blocking. Blocks them in this thread and in
// those that it starts later: call it before any thread, which would take them.
absl::StatusOr<UniqueFd> WatchedSignals(std::initializer_list<int> signals);

}  // namespace rondo

#endif  // RONDO_BASE_SIGNALS_H_
