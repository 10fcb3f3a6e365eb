// SPDX-License-Identifier: Apache-2.0
//
// A child with chosen words and environment, its output line by line, and a
// pipe to its input. Killed and reaped by the destructor.

#ifndef RONDO_CONFIGMANAGER_TEST_PROCESS_H_
#define RONDO_CONFIGMANAGER_TEST_PROCESS_H_

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"

namespace rondo::configmanager {

class TestProcess {
 public:
  TestProcess(const std::string& executable, std::vector<std::string> words,
              std::vector<std::string> environment) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) abort();
    const UniqueFd their_in(in[0]), their_out(out[1]);
    in_.Reset(in[1]);
    out_.Reset(out[0]);
    std::vector<char*> argv = Pointers(words);
    std::vector<char*> envp = Pointers(environment);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(their_in.get(), STDIN_FILENO);
      dup2(their_out.get(), STDOUT_FILENO);
      dup2(their_out.get(), STDERR_FILENO);
      execve(executable.c_str(), argv.data(), envp.data());
      _exit(127);
    }
  }
  ~TestProcess() {
    Signal(SIGKILL);
    Wait();
  }
  TestProcess(const TestProcess&) = delete;
  TestProcess& operator=(const TestProcess&) = delete;

  void Signal(int signal) {
    if (!reaped_) kill(pid_, signal);
  }
  void Say(absl::string_view line) {
    const std::string text = absl::StrCat(line, "\n");
    if (write(in_.get(), text.data(), text.size()) < 0) abort();
  }
  // True when a line with text comes within 10 s; lines before it are dropped.
  bool SaysLineWith(absl::string_view text) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (true) {
      for (size_t end; (end = rest_.find('\n')) != std::string::npos;) {
        const std::string line = rest_.substr(0, end);
        rest_.erase(0, end + 1);
        if (absl::StrContains(line, text)) return true;
      }
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0 || !Read(static_cast<int>(left.count())))
        return false;
    }
  }
  // All that it said and SaysLineWith did not take, once it has ended.
  std::string Output() {
    while (Read(10'000)) {
    }
    return rest_;
  }
  // Its exit code, or 128 + signal.
  int Wait() {
    int status = 0;
    if (!reaped_) {
      while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
      }
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      reaped_ = true;
    }
    return code_;
  }

 private:
  static std::vector<char*> Pointers(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
  }
  bool Read(int patience_ms) {
    pollfd readable{.fd = out_.get(), .events = POLLIN, .revents = 0};
    if (poll(&readable, 1, patience_ms) <= 0) return false;
    char buffer[4096];
    const ssize_t n = read(out_.get(), buffer, sizeof(buffer));
    if (n <= 0) return false;
    rest_.append(buffer, static_cast<size_t>(n));
    return true;
  }

  pid_t pid_ = 0;
  UniqueFd in_, out_;
  std::string rest_;
  bool reaped_ = false;
  int code_ = 0;
};

}  // namespace rondo::configmanager

#endif  // RONDO_CONFIGMANAGER_TEST_PROCESS_H_
