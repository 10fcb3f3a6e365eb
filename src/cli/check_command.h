// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_CLI_CHECK_COMMAND_H_
#define RONDO_CLI_CHECK_COMMAND_H_

#include <iosfwd>

namespace rondo::cli {

// `rondo check FILE…`: judges configs before a roll-out. Exit code 0, or 2 when
// a config is refused or the usage is wrong.
int CheckCommand(int argc, char** argv);

// The same on streams of the caller.
int RunCheckCommand(int argc, char** argv, std::istream& in, std::ostream& out,
                    std::ostream& err);

}  // namespace rondo::cli

#endif  // RONDO_CLI_CHECK_COMMAND_H_
