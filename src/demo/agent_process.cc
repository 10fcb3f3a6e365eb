// SPDX-License-Identifier: Apache-2.0
#include "demo/agent_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"
#include "demo/environment.h"

namespace rondo::demo {
namespace {

// The environment of the child, with the simulated driver in front.
std::vector<std::string> Environment(const AgentSetup& setup) {
  std::vector<std::string> environment = setup.environment;
  const char* search = getenv("LD_LIBRARY_PATH");
  for (std::string& variable : PlainEnvironment())
    environment.push_back(std::move(variable));
  std::vector<std::string> folders;
  if (!setup.nvml_library.empty())
    folders.push_back(
        setup.nvml_library.substr(0, setup.nvml_library.rfind('/')));
  if (search != nullptr && *search != '\0') folders.emplace_back(search);
  if (!folders.empty())
    environment.push_back(
        absl::StrCat("LD_LIBRARY_PATH=", absl::StrJoin(folders, ":")));
  return environment;
}

std::vector<std::string> Words(const AgentSetup& setup) {
  const std::string dir = AgentProcess::DevicePluginDir(setup.scratch);
  std::vector<std::string> words = {
      "rondo",
      "agent",
      "--device-plugin-dir=" + dir,
      "--kubelet-socket=" + dir + "/kubelet.sock",
      "--pod-resources-socket=" + setup.scratch + "/pod-resources.sock",
      "--pods-api-socket=" + setup.scratch + "/pods-api.sock",
      "--cdi-dir=" + setup.scratch + "/cdi",
      "--state-dir=" + setup.scratch + "/state",
      "--listen=127.0.0.1:0"};
  if (!setup.node_root.empty()) words.push_back("--root=" + setup.node_root);
  words.insert(words.end(), setup.arguments.begin(), setup.arguments.end());
  return words;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string AgentProcess::DevicePluginDir(absl::string_view scratch) {
  return absl::StrCat(scratch, "/device-plugins");
}

absl::StatusOr<std::unique_ptr<AgentProcess>> AgentProcess::Start(
    const AgentSetup& setup) {
  RONDO_RETURN_IF_ERROR(MakeDirectories(DevicePluginDir(setup.scratch)));
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return ErrnoStatus("pipe2");
  UniqueFd ours(fds[0]), theirs(fds[1]);
  std::vector<std::string> words = Words(setup);
  std::vector<std::string> environment = Environment(setup);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDERR_FILENO);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, setup.executable.c_str(), &actions, nullptr,
                  Pointers(words).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return absl::InternalError(
        absl::StrCat("start ", setup.executable, ": ", strerror(error)));
  return std::unique_ptr<AgentProcess>(new AgentProcess(pid, std::move(ours)));
}

AgentProcess::AgentProcess(pid_t pid, UniqueFd log)
    : pid_(pid), log_(std::move(log)), reader_([this] { ReadLog(); }) {}

AgentProcess::~AgentProcess() {
  Signal(SIGKILL);
  Wait();
  reader_.join();
}

void AgentProcess::Signal(int signal) {
  if (!reaped_) kill(pid_, signal);
}

int AgentProcess::Wait() {
  if (reaped_) return exit_code_;
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return exit_code_;
}

void AgentProcess::ReadLog() {
  std::string rest;
  char buffer[4096];
  ssize_t n;
  while ((n = read(log_.get(), buffer, sizeof(buffer))) > 0) {
    rest.append(buffer, static_cast<size_t>(n));
    std::lock_guard lock(mutex_);
    for (size_t end; (end = rest.find('\n')) != std::string::npos;
         rest.erase(0, end + 1))
      lines_.push_back(rest.substr(0, end));
    grown_.notify_all();
  }
  std::lock_guard lock(mutex_);
  log_ended_ = true;
  grown_.notify_all();
}

absl::StatusOr<std::string> AgentProcess::NextLineWith(
    absl::string_view text, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::unique_lock lock(mutex_);
  while (true) {
    while (next_line_ < lines_.size())
      if (const std::string& line = lines_[next_line_++];
          absl::StrContains(line, text))
        return line;
    std::string tail;
    for (size_t i = lines_.size() - std::min<size_t>(lines_.size(), 8);
         i < lines_.size(); ++i)
      absl::StrAppend(&tail, "\n  ", lines_[i]);
    if (log_ended_)
      return absl::AbortedError(absl::StrCat("the agent ended:", tail));
    if (grown_.wait_until(lock, deadline) == std::cv_status::timeout)
      return absl::DeadlineExceededError(
          absl::StrCat("no line with '", text, "' in the agent's log:", tail));
  }
}

}  // namespace rondo::demo
