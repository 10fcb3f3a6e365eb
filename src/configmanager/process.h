// SPDX-License-Identifier: Apache-2.0
//
// Processes of this PID namespace, as /proc tells them: which one has a name,
// and whether a signal would end it. Any thread.

#ifndef RONDO_CONFIGMANAGER_PROCESS_H_
#define RONDO_CONFIGMANAGER_PROCESS_H_

#include <sys/types.h>

#include <optional>

#include "absl/strings/string_view.h"

namespace rondo::configmanager {

// The lowest number of a process whose argv[0] is exactly name, this one
// excepted. Empty where there is none: a process that is not there has nothing
// to be told.
std::optional<pid_t> FindProcess(absl::string_view name);

// True where the process catches, blocks or ignores the signal: it does what
// its program wants. False where the kernel's own action would come, as in a
// program that has just started; false for a process that is gone.
bool HandlesSignal(pid_t pid, int signal);

}  // namespace rondo::configmanager

#endif  // RONDO_CONFIGMANAGER_PROCESS_H_
