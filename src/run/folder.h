// SPDX-License-Identifier: Apache-2.0
//
// The folder where the runs of a user meet: their arbiter's sockets and log,
// and the librondo.so of each slot. Any thread; blocks.

#ifndef RONDO_RUN_FOLDER_H_
#define RONDO_RUN_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"

namespace rondo::run {

// Makes it where need be; an absolute path without symbolic links. given: empty
// for the user's own, which is the same for every run of that user.
//
// PermissionDenied where somebody else could write to it, InvalidArgument where
// programs could not be preloaded or could not be listened for there, else what
// the system says.
absl::StatusOr<std::string> RunFolder(const std::string& given);

}  // namespace rondo::run

#endif  // RONDO_RUN_FOLDER_H_
