// SPDX-License-Identifier: Apache-2.0
//
// Which slots of a run folder somebody may still come to: those in the
// environment of a process, which it has from the `rondo run` that started it
// or an ancestor. One that was started without it, or cleared it, runs without
// librondo.so as well. Programs that show a title of their own write it over
// the environment that the kernel shows; of those, what counts is the file of
// librondo.so that they have mapped, as each slot has its own. By /proc, so of
// processes of other users only as root.

#ifndef RONDO_RUN_INHERITED_H_
#define RONDO_RUN_INHERITED_H_

#include <set>
#include <string>

#include "absl/strings/string_view.h"

namespace rondo::run {

// The slot that the environment of a process (proc_pid_environ(5)) names in
// that folder; empty: none.
std::string SlotIn(absl::string_view environment, absl::string_view run_dir);

// Whether it is as a program was started with: NAME=value, one after another.
bool IsWhole(absl::string_view environment);

// The slot of that folder whose librondo.so is among a process's mappings
// (proc_pid_maps(5)); empty: none.
std::string SlotInMaps(absl::string_view maps, absl::string_view run_dir);

struct Inherited {
  std::set<std::string> slots;
  // A process showed no environment, as it does for a moment within execve(2),
  // or for good where it has none.
  bool uncertain = false;
};

// Of all processes but this one. Reads each process's environment, some 10 us
// each, and of those that wrote over it the mappings.
Inherited InheritedSlots(const std::string& run_dir);

}  // namespace rondo::run

#endif  // RONDO_RUN_INHERITED_H_
