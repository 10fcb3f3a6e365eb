// SPDX-License-Identifier: Apache-2.0
//
// Runs a program to its end as if it had been started directly: signals are
// passed on, the exit status comes back. Single-threaded callers only (it
// forks).

#ifndef RONDO_SIM_RUN_PROGRAM_H_
#define RONDO_SIM_RUN_PROGRAM_H_

namespace rondo::sim {

// argv ends with a null. The program's exit code, 128 + the signal that ended
// it, 127 where it is not there, 126 where it cannot be run.
int RunProgram(char** argv);

}  // namespace rondo::sim

#endif  // RONDO_SIM_RUN_PROGRAM_H_
