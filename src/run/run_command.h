// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_RUN_RUN_COMMAND_H_
#define RONDO_RUN_RUN_COMMAND_H_

namespace rondo::run {

// `rondo run [OPTION...] -- CMD...`: runs CMD with a share of a GPU. Exits as
// CMD does (128 + signal if one ended it).
int RunCommand(int argc, char** argv);

// `rondo run-arbiter DIR`: what the first `rondo run` starts. Leaves the
// caller's session; ends when unused.
int RunArbiterCommand(int argc, char** argv);

}  // namespace rondo::run

#endif  // RONDO_RUN_RUN_COMMAND_H_
