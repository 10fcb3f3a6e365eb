// SPDX-License-Identifier: Apache-2.0
//
// What the arbiter of a run folder knows of its programs, as `rondo run
// --status` prints it: asked over the control socket like a slot, answered with
// one JSON object. Any thread; pure but for AskStatus, which blocks.

#ifndef RONDO_RUN_STATUS_H_
#define RONDO_RUN_STATUS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "share/stats.h"

namespace rondo::run {

// Many programs make a long answer; it is one packet all the same.
inline constexpr size_t kMaxStatus = 128 << 10;

std::string StatusRequest();
bool IsStatusRequest(absl::string_view packet);

// Unknown values are null, never 0.
std::string RenderStatus(const share::ShareStats& stats, int arbiter_pid);

// NotFound or Unavailable where no arbiter serves the folder.
absl::StatusOr<std::string> AskStatus(const std::string& run_dir);

}  // namespace rondo::run

#endif  // RONDO_RUN_STATUS_H_
