// SPDX-License-Identifier: Apache-2.0
//
// What a command says and how it ends, for tests of executables.

#ifndef RONDO_BASE_TEST_SHELL_H_
#define RONDO_BASE_TEST_SHELL_H_

#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace rondo {

struct Outcome {
  int code = -1;     // of the exit; -1 where a signal ended it
  std::string text;  // both streams
};

// Waits for the end of the command, and of all that holds its streams open.
inline Outcome Shell(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen(("(" + command + ") 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    outcome.text.append(buffer, n);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

}  // namespace rondo

#endif  // RONDO_BASE_TEST_SHELL_H_
