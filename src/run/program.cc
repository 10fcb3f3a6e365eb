// SPDX-License-Identifier: Apache-2.0
#include "run/program.h"

#include <signal.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace rondo::run {
namespace {

constexpr int kPassedOn[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                             SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};

sigset_t Handled() {
  sigset_t mask;
  sigemptyset(&mask);
  for (int signal : kPassedOn) sigaddset(&mask, signal);
  sigaddset(&mask, SIGCHLD);
  return mask;
}

std::vector<std::string> Environment(const std::vector<std::string>& changes) {
  std::vector<std::string> environment = changes;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view old = *entry;
    bool replaced = false;
    for (const std::string& change : changes)
      replaced |= absl::StartsWith(
          old, absl::string_view(change).substr(0, change.find('=') + 1));
    if (!replaced) environment.emplace_back(old);
  }
  return environment;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string Preload(const std::string& library, const char* present) {
  if (present == nullptr || *present == '\0') return library;
  return absl::StrCat(library, ":", present);
}

sigset_t BlockSignals() {
  // A caller that ignores it would have children vanish before they are waited
  // for.
  signal(SIGCHLD, SIG_DFL);
  const sigset_t mask = Handled();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &mask, &before);
  return before;
}

UniqueFd SignalDescriptor() {
  const sigset_t mask = Handled();
  return UniqueFd(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
}

void PassOn(int signal_descriptor, pid_t to) {
  signalfd_siginfo info;
  while (read(signal_descriptor, &info, sizeof(info)) == sizeof(info))
    // Of the terminal: SI_KERNEL, which is above 0.
    if (to > 0 && info.ssi_signo != SIGCHLD && info.ssi_code <= 0)
      kill(to, static_cast<int>(info.ssi_signo));
}

absl::StatusOr<pid_t> StartProgram(const Program& program,
                                   const sigset_t& program_mask, pid_t group) {
  std::vector<std::string> words = program.words;
  std::vector<std::string> environment = Environment(program.environment);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setsigmask(&attributes, &program_mask);
  posix_spawnattr_setpgroup(&attributes, group);
  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, words[0].c_str(), nullptr, &attributes,
                   Pointers(words).data(), Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return pid;
  return absl::NotFoundError(absl::StrCat(words[0], ": ", strerror(error)));
}

}  // namespace rondo::run
