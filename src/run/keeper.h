// SPDX-License-Identifier: Apache-2.0
//
// The keeper: a process between `rondo run` and CMD that holds CMD's slot until
// the last process that came of CMD has ended, also those that it left behind.
// A daemon may come to the GPU long after its `rondo run` ended, and must find
// its limit there; and no descriptor tells of it, for daemons close what they
// inherit. So the keeper is the child subreaper of all of them (prctl(2)):
// whoever loses its parent becomes its child, whatever it closed, in whatever
// session, without any privilege.
//
// `rondo run` itself stays in front, as the parent of the keeper, for it must
// end with CMD, and processes cannot be handed over. The keeper is in a process
// group of its own: signals of the terminal or to the group reach CMD by
// themselves, and must not reach it twice. When CMD has ended it lets go of
// everything that it inherited: whoever reads CMD's output shall see its end.

#ifndef RONDO_RUN_KEEPER_H_
#define RONDO_RUN_KEEPER_H_

#include <signal.h>
#include <sys/types.h>

#include <functional>

#include "absl/status/statusor.h"
#include "run/program.h"

namespace rondo::run {

// What is kept, as a descriptor that becomes readable when it is lost. All of
// it is used in the keeper only, by one thread.
struct Kept {
  std::function<int()> fd;  // -1: nothing (any more)
  // Called when it is lost: gets it back, or makes fd() -1.
  std::function<void()> renew;
  std::function<void()> give_back;
  // Who gave it, 0 if not known. It outlives us; where an inner run started it,
  // it is our child, and not one to wait for.
  std::function<pid_t()> giver;
};

// Runs the program to its end under a keeper, and passes on the signals sent to
// this process. program_mask: what BlockSignals returned. Returns its exit code
// (127: no such program; it is told on standard error), or 128 + the signal
// that ended it, or the keeper. The caller must have one thread only.
absl::StatusOr<int> RunKept(const Program& program,
                            const sigset_t& program_mask, const Kept& kept);

}  // namespace rondo::run

#endif  // RONDO_RUN_KEEPER_H_
