// SPDX-License-Identifier: Apache-2.0
#include "run/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/unique_fd.h"
#include "share/shim_library.h"

namespace rondo::run {
namespace {

// All that somebody may send, or a timer that this process was started with,
// but for those that mean a fault of the process itself.
constexpr int kPassedOn[] = {SIGHUP,  SIGINT,  SIGQUIT,  SIGTERM, SIGUSR1,
                             SIGUSR2, SIGCONT, SIGWINCH, SIGTSTP, SIGALRM,
                             SIGIO,   SIGPROF, SIGPWR,   SIGXCPU, SIGVTALRM};

constexpr int kRetryMs = 1000;

sigset_t Handled() {
  sigset_t mask;
  sigemptyset(&mask);
  for (int signal : kPassedOn) sigaddset(&mask, signal);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal)
    sigaddset(&mask, signal);
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

absl::StatusOr<pid_t> Spawn(const Program& program, const sigset_t& mask) {
  std::vector<std::string> words = program.words;
  std::vector<std::string> environment = Environment(program.environment);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &mask);
  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, words[0].c_str(), nullptr, &attributes,
                   Pointers(words).data(), Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return pid;
  const std::string text = absl::StrCat(words[0], ": ", strerror(error));
  if (error == ENOENT) return absl::NotFoundError(text);
  return absl::PermissionDeniedError(text);
}

// Those that the terminal sends to a whole process group (SI_KERNEL): the child
// has them too. It says that it is gone (SIGHUP) to the session's leader alone.
bool ChildHasIt(const signalfd_siginfo& info) {
  switch (info.ssi_signo) {
    case SIGINT:
    case SIGQUIT:
    case SIGTSTP:
    case SIGCONT:
    case SIGWINCH:
      return info.ssi_code > 0;
    default:
      return false;
  }
}

// Whether a shell waits for us at a terminal. The child may have it by a group
// of its own, as a shell does.
bool IsForegroundJob(pid_t child) {
  const pid_t session = getsid(0), group = getpgrp();
  if (group == session) return false;
  const UniqueFd terminal(open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC));
  if (!terminal.ok()) return false;
  const pid_t front = tcgetpgrp(terminal.get());
  return front == group || front == getpgid(child);
}

// True when the child has ended; status is its wait status then.
bool HandleSignals(int signals, pid_t child, int& status) {
  signalfd_siginfo info;
  while (read(signals, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGCHLD || ChildHasIt(info)) continue;
    kill(child, static_cast<int>(info.ssi_signo));
  }
  if (waitpid(child, &status, WNOHANG | WUNTRACED) != child) return false;
  if (!WIFSTOPPED(status)) return true;
  // As a job of a shell does, which waits for us. SIGSTOP is what programs end
  // their answer to Ctrl-Z with. (Elsewhere whoever sends it to the child will
  // have only the child go on again.)
  if (WSTOPSIG(status) != SIGSTOP || IsForegroundJob(child)) raise(SIGSTOP);
  return false;
}

// What a value of LD_PRELOAD names, without librondo.so of any run.
std::vector<absl::string_view> OtherLibraries(absl::string_view preload) {
  std::vector<absl::string_view> libraries =
      absl::StrSplit(preload, absl::ByAnyChar(" :"), absl::SkipEmpty());
  std::erase_if(libraries, [](absl::string_view library) {
    return absl::EndsWith(library, absl::StrCat("/", share::kShimName));
  });
  return libraries;
}

}  // namespace

std::string Preload(const std::string& library, const char* present) {
  std::vector<absl::string_view> libraries = OtherLibraries(
      present == nullptr ? absl::string_view() : absl::string_view(present));
  libraries.insert(libraries.begin(), library);
  return absl::StrJoin(libraries, ":");
}

std::vector<std::string> WithoutSlot(char** environment) {
  std::vector<std::string> kept;
  for (char** entry = environment; *entry != nullptr; ++entry) {
    absl::string_view text = *entry;
    if (absl::StartsWith(text, "RONDO_SLOTS=") ||
        absl::StartsWith(text, "RONDO_RUN_DIR="))
      continue;
    if (absl::ConsumePrefix(&text, "LD_PRELOAD=")) {
      kept.push_back("LD_PRELOAD=" + absl::StrJoin(OtherLibraries(text), " "));
    } else {
      kept.emplace_back(text);
    }
  }
  return kept;
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

absl::StatusOr<int> RunProgram(const Program& program,
                               const sigset_t& program_mask, int fd,
                               const std::function<int()>& on_fd) {
  const sigset_t mask = Handled();
  UniqueFd signals(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.ok()) return ErrnoStatus("signalfd");
  const absl::StatusOr<pid_t> child = Spawn(program, program_mask);
  if (!child.ok()) return child.status();
  int status = 0;
  // Once before the first wait: it may have ended already.
  while (!HandleSignals(signals.get(), *child, status)) {
    pollfd fds[] = {{.fd = signals.get(), .events = POLLIN, .revents = 0},
                    {.fd = fd, .events = POLLIN, .revents = 0}};
    const int ready = poll(fds, 2, fd < 0 ? kRetryMs : -1);
    if (fds[1].revents != 0 || (fd < 0 && ready == 0)) fd = on_fd();
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace rondo::run
