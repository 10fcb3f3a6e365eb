// SPDX-License-Identifier: Apache-2.0
//
// `rondo sim`: stage a simulated node, run programs on it, break it.

#ifndef RONDO_SIM_SIM_COMMAND_H_
#define RONDO_SIM_SIM_COMMAND_H_

namespace rondo::sim {

// argv[0] is "sim". The exit code of the program that it ran, else
// base/status.h's.
int SimCommand(int argc, char** argv);

}  // namespace rondo::sim

#endif  // RONDO_SIM_SIM_COMMAND_H_
