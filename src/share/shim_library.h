// SPDX-License-Identifier: Apache-2.0
//
// librondo.so, which every `rondo` carries inside. Any thread.

#ifndef RONDO_SHARE_SHIM_LIBRARY_H_
#define RONDO_SHARE_SHIM_LIBRARY_H_

#include <string>

#include "absl/status/status.h"

namespace rondo::share {

inline constexpr char kShimName[] = "librondo.so";

// Writes it to <dir>/librondo.so, readable by all, unless exactly that is there
// already. The old file is replaced, never written into: programs that have it
// mapped keep what they have.
absl::Status InstallShim(const std::string& dir);

}  // namespace rondo::share

#endif  // RONDO_SHARE_SHIM_LIBRARY_H_
