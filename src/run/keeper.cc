// SPDX-License-Identifier: Apache-2.0
#include "run/keeper.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/unique_fd.h"

namespace rondo::run {
namespace {

constexpr int kNoSuchProgram = 127;  // as shells say it

int CodeOf(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status)
                                : 128 + WTERMSIG(wait_status);
}

// The names in a folder that are numbers.
std::vector<int> Numbers(const char* folder) {
  std::vector<int> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder), closedir);
  if (dir == nullptr) return numbers;
  int number = 0;
  while (const dirent* entry = readdir(dir.get()))
    if (absl::SimpleAtoi(entry->d_name, &number)) numbers.push_back(number);
  return numbers;
}

// Not /proc/self/task/*/children, which not every kernel has.
std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  for (const int pid : Numbers("/proc")) {
    const auto stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
    if (!stat.ok()) continue;
    // "12 (name) S 3 ...": the name may hold anything.
    const size_t name_end = stat->rfind(')');
    int parent = 0;
    if (name_end != std::string::npos &&
        sscanf(stat->c_str() + name_end + 1, " %*c %d", &parent) == 1 &&
        parent == getpid())
      children.push_back(pid);
  }
  return children;
}

class Keeper {
 public:
  // front: the socket to `rondo run`, which takes one int, the exit code.
  Keeper(UniqueFd front, UniqueFd signals, const Kept& kept)
      : front_(std::move(front)), signals_(std::move(signals)), kept_(kept) {}

  // In the process that was forked for it. Returns when nothing is to be kept.
  void Run(const Program& program, const sigset_t& mask, pid_t group) {
    setpgid(0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    // In the background of a terminal: a word to it must not stop this process.
    sigset_t background;
    sigemptyset(&background);
    sigaddset(&background, SIGTTOU);
    sigprocmask(SIG_BLOCK, &background, nullptr);
    const absl::StatusOr<pid_t> child = StartProgram(program, mask, group);
    if (!child.ok()) {
      std::cerr << "rondo run: " << child.status().message() << "\n";
      kept_.give_back();
      return Tell(kNoSuchProgram);
    }
    child_ = *child;
    while (Watch()) {
      pollfd fds[] = {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                      {.fd = kept_.fd(), .events = POLLIN, .revents = 0}};
      poll(fds, 2, -1);
      PassOn(signals_.get(), child_);
      if (fds[1].revents != 0) kept_.renew();
    }
  }

 private:
  // False when nobody is left for whom to keep it.
  bool Watch() {
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
      if (pid != child_) continue;
      child_ = 0;
      code_ = CodeOf(status);
    }
    if (child_ != 0) return true;
    const bool nobody = pid < 0 || kept_.fd() < 0 || OnlyTheGiver();
    // Whoever comes after `rondo run` has ended finds the slot free, if it is.
    if (nobody) kept_.give_back();
    if (front_.ok()) {
      LetGo();
      Tell(code_);
      front_.Reset();
    }
    return !nobody;
  }

  bool OnlyTheGiver() const {
    return Children() == std::vector<pid_t>{kept_.giver()};
  }

  void Tell(int code) const {
    // It may have been killed: then there is nobody to tell.
    send(front_.get(), &code, sizeof(code), MSG_NOSIGNAL);
  }

  // Pipes and files that CMD was given, and the folder that it was started in.
  void LetGo() const {
    const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
    const std::set<int> ours = {front_.get(), signals_.get(), kept_.fd()};
    for (const int fd : Numbers("/proc/self/fd")) {
      if (fd <= STDERR_FILENO)
        dup2(null.get(), fd);
      else if (ours.count(fd) == 0 && fd != null.get())
        close(fd);
    }
    if (chdir("/") != 0) return;  // then it stays where it is
  }

  UniqueFd front_;
  const UniqueFd signals_;
  const Kept& kept_;
  pid_t child_ = 0;  // 0: it has ended
  int code_ = 0;
};

// Until the keeper says how CMD ended.
int WaitInFront(int signals, int keeper_fd, pid_t keeper) {
  int code = 0;
  for (;;) {
    pollfd fds[] = {{.fd = signals, .events = POLLIN, .revents = 0},
                    {.fd = keeper_fd, .events = POLLIN, .revents = 0}};
    poll(fds, 2, -1);
    if (fds[1].revents != 0) break;
    PassOn(signals, keeper);
  }
  if (recv(keeper_fd, &code, sizeof(code), 0) == sizeof(code)) return code;
  // Somebody killed it. CMD runs on, and nobody can tell how it ends.
  int status = 0;
  waitpid(keeper, &status, 0);
  return CodeOf(status);
}

}  // namespace

absl::StatusOr<int> RunKept(const Program& program,
                            const sigset_t& program_mask, const Kept& kept) {
  // Reading it tells each process of its own signals.
  UniqueFd signals = SignalDescriptor();
  int ends[2];
  if (!signals.ok() ||
      socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return ErrnoStatus("rondo run");
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t group = getpgrp();
  const pid_t keeper = fork();
  if (keeper < 0) return ErrnoStatus("fork");
  if (keeper == 0) {
    ours.Reset();
    Keeper(std::move(theirs), std::move(signals), kept)
        .Run(program, program_mask, group);
    _exit(0);
  }
  theirs.Reset();
  kept.give_back();  // the keeper has it
  return WaitInFront(signals.get(), ours.get(), keeper);
}

}  // namespace rondo::run
