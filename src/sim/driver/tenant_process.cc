// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/tenant_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"

namespace rondo::sim::driver {
namespace {

constexpr int kPatienceMs = 60'000;

std::vector<char*> Pointers(std::vector<std::string>* words) {
  std::vector<char*> pointers;
  for (std::string& word : *words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TenantProcess>> TenantProcess::Start(
    std::vector<std::string> words, std::vector<std::string> environment) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0) return ErrnoStatus("pipe2");
  UniqueFd in_read(in[0]), in_write(in[1]);
  if (pipe2(out, O_CLOEXEC) != 0) return ErrnoStatus("pipe2");
  UniqueFd out_read(out[0]), out_write(out[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in_read.get(), STDIN_FILENO);
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_adddup2(&actions, out_write.get(), fd);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, words.at(0).c_str(), &actions, nullptr,
                  Pointers(&words).data(), Pointers(&environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return absl::InternalError(
        absl::StrCat("start ", words[0], ": ", strerror(error)));
  return std::unique_ptr<TenantProcess>(
      new TenantProcess(pid, std::move(in_write), std::move(out_read)));
}

absl::StatusOr<std::string> TenantProcess::Line() {
  std::string line;
  pollfd ready{.fd = out_.get(), .events = POLLIN, .revents = 0};
  for (char c = 0;;) {
    if (poll(&ready, 1, kPatienceMs) == 0)
      return absl::DeadlineExceededError(
          absl::StrCat("a tenant hangs; it said: ", said_));
    if (read(out_.get(), &c, 1) != 1) break;
    said_ += c;
    if (c == '\n') return line;
    line += c;
  }
  return absl::AbortedError(
      absl::StrCat("a tenant ended: ", absl::StripSuffix(said_, "\n")));
}

absl::Status TenantProcess::AwaitReady() {
  for (std::string line; line != "ready";) {
    RONDO_ASSIGN_OR_RETURN(line, Line());
  }
  return absl::OkStatus();
}

absl::Status TenantProcess::Begin() {
  return write(in_.get(), "\n", 1) == 1 ? absl::OkStatus()
                                        : ErrnoStatus("begin a tenant");
}

absl::StatusOr<TenantProcess::Progress> TenantProcess::NextProgress() {
  pollfd ready{.fd = out_.get(), .events = POLLIN, .revents = 0};
  for (bool old = true;;) {
    old = old && poll(&ready, 1, 0) > 0;
    RONDO_ASSIGN_OR_RETURN(const std::string line, Line());
    if (absl::StartsWith(line, "{")) {
      report_ = line;
      return absl::AbortedError(absl::StrCat("a tenant is done: ", line));
    }
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    Progress progress;
    if (old || words.size() != 3 || words[0] != "progress" ||
        !absl::SimpleAtod(words[1], &progress.seconds) ||
        !absl::SimpleAtod(words[2], &progress.requests))
      continue;
    progress.seconds /= 1e9;
    return progress;
  }
}

absl::Status TenantProcess::Finish() {
  while (!absl::StartsWith(report_, "{")) {
    RONDO_ASSIGN_OR_RETURN(report_, Line());
  }
  const int code = Wait();
  return code == 0 ? absl::OkStatus()
                   : absl::AbortedError(absl::StrCat("a tenant exited with ",
                                                     code, ": ", said_));
}

double TenantProcess::Number(const std::string& name) const {
  const std::string key = absl::StrCat("\"", name, "\": ");
  const size_t at = report_.find(key);
  if (at == std::string::npos) return NAN;
  const size_t begin = at + key.size();
  const size_t end = report_.find_first_of(",}", begin);
  double value = NAN;
  return absl::SimpleAtod(report_.substr(begin, end - begin), &value) ? value
                                                                      : NAN;
}

int TenantProcess::Wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void TenantProcess::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  Wait();
}

}  // namespace rondo::sim::driver
