// SPDX-License-Identifier: Apache-2.0
//
// What the arbiter asks for: plain values, any thread.

#ifndef RONDO_SHARE_TIME_ACTION_H_
#define RONDO_SHARE_TIME_ACTION_H_

#include <cstdint>
#include <variant>
#include <vector>

#include "share/ids.h"

namespace rondo::share {

// Ask the process's shim for this slice on all its compute groups. Answered by
// a SliceApplied event with the same seq.
struct SetSlice {
  ProcessId process = 0;
  uint32_t slice_us = 0;
  uint32_t seq = 0;
};
// One call to the driver for all of the processes. Calls are carried out in
// the order of emission, one at a time; each process is answered for by a
// Switched event with the same op.
struct Switch {
  uint64_t op = 0;
  bool suspend = false;
  std::vector<ProcessId> processes;
  // Not begun by then: not to be done any more.
  int64_t not_after_us = INT64_MAX;
};
using Action = std::variant<SetSlice, Switch>;

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_ACTION_H_
