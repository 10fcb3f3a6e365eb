// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_CLI_VERSION_COMMAND_H_
#define RONDO_CLI_VERSION_COMMAND_H_

namespace rondo::cli {

// `rondo version`: prints "rondo <version>".
int VersionCommand(int argc, char** argv);

}  // namespace rondo::cli

#endif  // RONDO_CLI_VERSION_COMMAND_H_
