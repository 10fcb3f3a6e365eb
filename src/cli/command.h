// SPDX-License-Identifier: Apache-2.0
//
// The command table: one row a subcommand, dispatched by the first word or by
// the name of the executable. Single-threaded; nothing here fails except by
// exit code (base/status.h).

#ifndef RONDO_CLI_COMMAND_H_
#define RONDO_CLI_COMMAND_H_

#include <iosfwd>
#include <vector>

namespace rondo::cli {

struct Command {
  const char* name;
  // One line, as `rondo` prints it. Null for one that Rondo starts itself: it
  // is not listed.
  const char* help;
  // What must be there for it to work, in words for a person: "nothing", "an
  // NVIDIA driver", "a kubelet".
  const char* needs;
  // argv[0] is the command's name. Returns the exit code.
  int (*run)(int argc, char** argv);
};

// A name of the executable that stands for a command: argv[0]
// "nvidia-device-plugin" runs the agent.
struct Alias {
  const char* executable;
  int (*run)(int argc, char** argv);
};

struct CommandTable {
  std::vector<Command> commands;
  std::vector<Alias> aliases;
};

// Runs the command that argv names. No word or "help" prints the table on out,
// "help" with a command's name that command's options;
// an unknown word prints the nearest command's name on err and returns
// kExitUsage.
int Dispatch(const CommandTable& table, int argc, char** argv,
             std::ostream& out, std::ostream& err);

}  // namespace rondo::cli

#endif  // RONDO_CLI_COMMAND_H_
