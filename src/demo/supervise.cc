// SPDX-License-Identifier: Apache-2.0
#include "demo/supervise.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>

#include "base/status.h"

namespace rondo::demo {

int Supervise(const std::function<int()>& work, std::chrono::seconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  sigset_t wanted, before;
  sigemptyset(&wanted);
  for (const int signal : {SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM})
    sigaddset(&wanted, signal);
  sigprocmask(SIG_BLOCK, &wanted, &before);
  const pid_t child = fork();
  if (child < 0) return kExitFailure;
  setpgid(child, child);  // on both sides: whoever is first
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    signal(SIGTTOU, SIG_IGN);  // a terminal may stop background output
    const int code = work();
    _exit(std::cout.flush() ? code : kExitFailure);
  }
  int ended_by = 0, status = 0;
  bool late = false;
  while (waitpid(child, &status, WNOHANG) != child) {
    const auto left = std::chrono::duration_cast<std::chrono::seconds>(
        deadline - std::chrono::steady_clock::now());
    const timespec wait{.tv_sec = std::max<time_t>(0, left.count()) + 1,
                        .tv_nsec = 0};
    const int signal = sigtimedwait(&wanted, nullptr, &wait);
    if (signal == SIGCHLD || (signal < 0 && errno == EINTR)) continue;
    late = signal < 0;
    ended_by = late ? ended_by : signal;
    kill(-child, SIGKILL);
  }
  kill(-child, SIGKILL);  // children that outlived it
  if (late) {
    std::cerr << "ended: not done after " << patience.count() << " s\n";
    return kExitFailure;
  }
  if (ended_by != 0) return 128 + ended_by;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace rondo::demo
