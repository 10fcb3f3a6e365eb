// SPDX-License-Identifier: Apache-2.0
#include "sim/run_program.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>

#include "base/status.h"

namespace rondo::sim {
namespace {

// What a supervisor or a person may send; job control stays with the terminal.
constexpr int kPassedOn[] = {SIGHUP,  SIGINT,  SIGQUIT,
                             SIGTERM, SIGUSR1, SIGUSR2};

[[noreturn]] void Exec(char** argv, const sigset_t& mask) {
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvp(argv[0], argv);
  const int code = errno == ENOENT ? 127 : 126;
  std::cerr << "rondo sim: " << argv[0] << ": " << strerror(errno) << "\n";
  _exit(code);
}

}  // namespace

int RunProgram(char** argv) {
  sigset_t wanted, before;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  for (const int signal : kPassedOn) sigaddset(&wanted, signal);
  sigprocmask(SIG_BLOCK, &wanted, &before);
  const pid_t child = fork();
  if (child == 0) Exec(argv, before);
  int status = 0;
  bool ended = false;
  while (child > 0 && !ended) {
    siginfo_t info;
    if (sigwaitinfo(&wanted, &info) < 0) continue;
    if (info.si_signo == SIGCHLD)
      ended = waitpid(child, &status, WNOHANG) == child;
    // A key on the terminal already reached the program itself; that it is gone
    // is told to the session's leader alone.
    else if (info.si_code != SI_KERNEL || info.si_signo == SIGHUP)
      kill(child, info.si_signo);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) {
    std::cerr << "rondo sim: fork: " << strerror(errno) << "\n";
    return kExitFailure;
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace rondo::sim
