// SPDX-License-Identifier: Apache-2.0
//
// A real `rondo agent` as a child process on a simulated node, with all of its
// folders in one scratch folder. For `rondo demo`, the agent's integration
// tests and its benchmarks.
//
// Threads: all methods from any thread; waiting ones block. The process is
// killed and reaped by the destructor.

#ifndef RONDO_DEMO_AGENT_PROCESS_H_
#define RONDO_DEMO_AGENT_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"

namespace rondo::demo {

struct AgentSetup {
  std::string executable = "/proc/self/exe";
  // Sockets, CDI specifications and state lie below it.
  std::string scratch;
  // Of sim::Node. Empty: the machine's own driver.
  std::string nvml_library;
  std::string node_root;
  std::vector<std::string> environment;  // more of it, "NAME=value"
  std::vector<std::string> arguments;    // after those that the folders need
};

class AgentProcess {
 public:
  static absl::StatusOr<std::unique_ptr<AgentProcess>> Start(
      const AgentSetup& setup);
  ~AgentProcess();
  AgentProcess(const AgentProcess&) = delete;
  AgentProcess& operator=(const AgentProcess&) = delete;

  // Where the agent expects kubelet's folder.
  static std::string DevicePluginDir(absl::string_view scratch);

  pid_t pid() const { return pid_; }
  void Signal(int signal);
  // Waits for the end; the exit code, or 128 + signal.
  int Wait();

  // A line of its log that holds text, seen since the start or the last call
  // that returned one: each line is given once. DeadlineExceeded, with the
  // log's last lines, when none comes; Aborted when the agent ended.
  absl::StatusOr<std::string> NextLineWith(
      absl::string_view text,
      std::chrono::milliseconds deadline = std::chrono::seconds(10));

 private:
  AgentProcess(pid_t pid, UniqueFd log);
  void ReadLog();

  const pid_t pid_;
  UniqueFd log_;
  bool reaped_ = false;
  int exit_code_ = 0;

  std::mutex mutex_;
  std::condition_variable grown_;
  std::vector<std::string> lines_;  // guarded by mutex_, as are the next two
  size_t next_line_ = 0;
  bool log_ended_ = false;
  std::thread reader_;
};

}  // namespace rondo::demo

#endif  // RONDO_DEMO_AGENT_PROCESS_H_
