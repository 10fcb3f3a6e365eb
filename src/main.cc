// SPDX-License-Identifier: Apache-2.0
//
// The executable `rondo`: nothing but its command table.

#include <iostream>

#include "cli/command.h"
#include "cli/version_command.h"

int main(int argc, char** argv) {
  static const rondo::cli::CommandTable kTable = {
      .commands =
          {
              {"version", "print the version", "nothing",
               rondo::cli::VersionCommand},
          },
      .aliases = {},
  };
  return rondo::cli::Dispatch(kTable, argc, argv, std::cout, std::cerr);
}
