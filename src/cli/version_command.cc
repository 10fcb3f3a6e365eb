// SPDX-License-Identifier: Apache-2.0
#include "cli/version_command.h"

#include <iostream>

#include "base/status.h"
#include "base/version.h"

namespace rondo::cli {

int VersionCommand(int, char**) {
  std::cout << "rondo " << kVersion << "\n";
  return kExitOk;
}

}  // namespace rondo::cli
