// SPDX-License-Identifier: Apache-2.0
//
// Whether the folder that slots lie in is one of the node. Containers have
// parts of it mounted by the node's path; where the agent is a pod without that
// mount, they would be given folders that the node does not have, and would not
// start. Pure.

#ifndef RONDO_AGENT_SLOT_FOLDER_H_
#define RONDO_AGENT_SLOT_FOLDER_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rondo::agent {

// in_pod: the agent runs in a pod. mountinfo: /proc/self/mountinfo; empty = not
// known, and then nothing is held against the folder. FailedPrecondition where
// it lies in the container's own file system.
absl::Status CheckSlotFolder(absl::string_view folder, bool in_pod,
                             absl::string_view mountinfo);

}  // namespace rondo::agent

#endif  // RONDO_AGENT_SLOT_FOLDER_H_
