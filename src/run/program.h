// SPDX-License-Identifier: Apache-2.0
//
// The program that `rondo run` runs: started with librondo.so preloaded,
// signals passed on, waited for.

#ifndef RONDO_RUN_PROGRAM_H_
#define RONDO_RUN_PROGRAM_H_

#include <signal.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rondo::run {

struct Program {
  std::vector<std::string> words;
  // NAME=value, replacing what is there.
  std::vector<std::string> environment;
};

// LD_PRELOAD with library in front of what the environment has; order matters:
// the shim must see calls first. That of an outer run, which may be another
// file, makes room: two would count everything twice.
std::string Preload(const std::string& library, const char* present);

// An environment without what a run adds to its programs', for a process that
// is none of them.
std::vector<std::string> WithoutSlot(char** environment);

// Blocks the signals that RunProgram handles, in this thread and those that it
// starts later; returns the mask before, for the program. Before any
// thread: one that a library starts would take such a signal otherwise, and it
// would be lost.
sigset_t BlockSignals();

// Runs it to its end. program_mask: what BlockSignals returned. fd: watched
// while it runs; on_fd is called when it is readable and returns the descriptor
// to watch from then on (-1: none; it is called again every second). Signals
// sent to this process go on to the program; those of the terminal reach it by
// themselves. While the program is a stopped job, this process is one too.
// NotFound where the program does not exist, PermissionDenied where it cannot
// be executed; else its exit code, or 128 + signal.
absl::StatusOr<int> RunProgram(const Program& program,
                               const sigset_t& program_mask, int fd,
                               const std::function<int()>& on_fd);

}  // namespace rondo::run

#endif  // RONDO_RUN_PROGRAM_H_
