// SPDX-License-Identifier: Apache-2.0
//
// Work with child processes of its own, of which nothing is left however it
// ends: by itself, by a signal to us, by a crash, or because it took too long.
//
// Called from a program that has one thread yet.

#ifndef RONDO_DEMO_SUPERVISE_H_
#define RONDO_DEMO_SUPERVISE_H_

#include <chrono>
#include <functional>

namespace rondo::demo {

// Runs it in a child and a process group of its own. Its exit code, 128 + n
// after signal n to it or to us, kExitFailure after `patience`.
int Supervise(const std::function<int()>& work, std::chrono::seconds patience);

}  // namespace rondo::demo

#endif  // RONDO_DEMO_SUPERVISE_H_
