// SPDX-License-Identifier: Apache-2.0
//
// The program that `rondo run` runs: how it is started with librondo.so
// preloaded, and which signals it is passed. Who waits for it: keeper.h.

#ifndef RONDO_RUN_PROGRAM_H_
#define RONDO_RUN_PROGRAM_H_

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace rondo::run {

struct Program {
  std::vector<std::string> words;
  // NAME=value, replacing what is there.
  std::vector<std::string> environment;
};

// LD_PRELOAD with library in front of what the environment has; order matters:
// the shim must see calls first.
std::string Preload(const std::string& library, const char* present);

// Blocks the signals that are passed on, in this thread and those that it
// starts later; returns the mask before, for the program. Before any
// thread: one that a library starts would take such a signal otherwise, and it
// would be lost.
sigset_t BlockSignals();

// A signalfd of the blocked signals and SIGCHLD; -1 where there is none.
UniqueFd SignalDescriptor();

// Reads all that it has, and passes it on to a process (0: to none). Signals of
// the terminal reach that by themselves.
void PassOn(int signal_descriptor, pid_t to);

// Starts it, in a process group of this session. program_mask: what
// BlockSignals returned. NotFound where the program does not exist.
absl::StatusOr<pid_t> StartProgram(const Program& program,
                                   const sigset_t& program_mask, pid_t group);

}  // namespace rondo::run

#endif  // RONDO_RUN_PROGRAM_H_
