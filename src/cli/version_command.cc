// SPDX-License-Identifier: Apache-2.0
#include "cli/version_command.h"

#include <iostream>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "base/usage.h"
#include "base/version.h"

namespace rondo::cli {

int VersionCommand(int argc, char** argv) {
  CLI::App app("Prints the version.", "rondo version");
  app.footer(kExitHelp);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return ReportParse(app, error, std::cout, std::cerr);
  }
  std::cout << "rondo " << kVersion << "\n";
  return kExitOk;
}

}  // namespace rondo::cli
