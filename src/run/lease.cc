// SPDX-License-Identifier: Apache-2.0
#include "run/lease.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/ending.h"
#include "base/file.h"
#include "base/status.h"
#include "base/unix_socket.h"
#include "run/program.h"

namespace rondo::run {
namespace {

constexpr int kPauseMs = 100;
static_assert((Lease::kRounds - Lease::kQuickRounds) * kPauseMs >
              Ending::kPatience.count());
constexpr int kUpMs = 10'000;
// The first answer waits for NVML's start, which wakes every GPU of the
// machine.
constexpr int kAnswerMs = 60'000;

// The arbiter's life is its own: a grandchild in a session of its own. Returns
// when it listens, or another one does; it says so by closing its end of a
// pipe.
absl::Status StartArbiter(const std::string& run_dir,
                          const std::string& executable) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus("pipe2");
  UniqueFd ours(ends[0]), theirs(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const std::string log = absl::StrCat(run_dir, "/", kArbiterLog);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), 1);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  // It is not of the run in which this one may be, and opens the driver.
  std::vector<std::string> variables = WithoutSlot(environ);
  std::vector<char*> environment;
  for (std::string& variable : variables)
    environment.push_back(variable.data());
  environment.push_back(nullptr);
  std::string words[] = {"rondo", "run-arbiter", run_dir};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, executable.c_str(), &actions, nullptr,
                                argv, environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return absl::InternalError(
        absl::StrCat("start ", executable, ": ", strerror(error)));
  theirs.Reset();
  waitpid(pid, nullptr, 0);  // the middle process, which leaves at once
  pollfd ready{.fd = ours.get(), .events = POLLIN, .revents = 0};
  if (poll(&ready, 1, kUpMs) != 1)
    return absl::DeadlineExceededError(
        absl::StrCat("the arbiter does not come up; see ", log));
  return absl::OkStatus();
}

absl::StatusOr<std::string> Ask(int fd, const Request& request) {
  const std::string packet = EncodeRequest(request);
  if (send(fd, packet.data(), packet.size(), MSG_NOSIGNAL) < 0)
    return absl::UnavailableError("the arbiter went away");
  pollfd answer{.fd = fd, .events = POLLIN, .revents = 0};
  if (poll(&answer, 1, kAnswerMs) != 1)
    return absl::DeadlineExceededError("the arbiter does not answer");
  char buffer[kMaxMessage];
  const ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
  if (n <= 0) return absl::UnavailableError("the arbiter went away");
  return DecodeAnswer({buffer, static_cast<size_t>(n)});
}

}  // namespace

absl::StatusOr<Lease> Lease::Take(const std::string& run_dir,
                                  const std::string& executable,
                                  const Request& request, int rounds) {
  absl::Status last;
  for (int round = 0; round < rounds; ++round) {
    if (round >= kQuickRounds) poll(nullptr, 0, kPauseMs);
    absl::StatusOr<UniqueFd> fd =
        ConnectUnix(ControlSocket(run_dir), SOCK_SEQPACKET);
    if (!fd.ok()) {
      last = StartArbiter(run_dir, executable);
      if (last.ok()) fd = ConnectUnix(ControlSocket(run_dir), SOCK_SEQPACKET);
    }
    if (!fd.ok()) continue;
    const absl::StatusOr<std::string> id = Ask(fd->get(), request);
    if (const auto slot = share::SlotSpec::Parse(id.ok() ? *id : ""))
      return Lease(*std::move(fd), *slot);
    last = id.ok() ? absl::InternalError("the arbiter grants no slot")
                   : id.status();
    if (!absl::IsUnavailable(last)) break;
  }
  return last.ok() ? absl::UnavailableError(absl::StrCat(
                         "no arbiter listens; see ", run_dir, "/", kArbiterLog))
                   : last;
}

absl::StatusOr<std::string> Lease::Notice() {
  char buffer[kMaxMessage];
  const ssize_t n = recv(fd_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
  if (n <= 0) return absl::UnavailableError("the arbiter went away");
  return DecodeNotice({buffer, static_cast<size_t>(n)});
}

}  // namespace rondo::run
