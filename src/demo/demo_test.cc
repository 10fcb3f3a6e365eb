// SPDX-License-Identifier: Apache-2.0
//
// `rondo demo` as a newcomer may run it: the real executable in an environment
// that is not made for it.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/unique_fd.h"
#include "gtest/gtest.h"

namespace rondo::demo {
namespace {

class DemoTest : public testing::Test {
 protected:
  void Start(std::vector<std::string> environment) {
    int fds[2];
    ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
    output_.Reset(fds[0]);
    const UniqueFd theirs(fds[1]);
    environment.push_back(absl::StrCat("TMPDIR=", dir_.path()));
    for (const char* options : {"ASAN_OPTIONS", "LSAN_OPTIONS"})
      if (const char* value = getenv(options))
        environment.push_back(absl::StrCat(options, "=", value));
    std::vector<char*> variables;
    for (std::string& variable : environment)
      variables.push_back(variable.data());
    variables.push_back(nullptr);
    std::string name = "rondo", demo = "demo";
    char* const argv[] = {name.data(), demo.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
      posix_spawn_file_actions_adddup2(&actions, theirs.get(), fd);
    const int error =
        posix_spawn(&pid_, RONDO, &actions, nullptr, argv, variables.data());
    posix_spawn_file_actions_destroy(&actions);
    ASSERT_EQ(error, 0);
  }

  void TearDown() override {
    if (pid_ > 0) kill(pid_, SIGKILL);
  }

  // What it prints until text is there, or until it ends or a minute passes.
  std::string ReadUntil(absl::string_view text) {
    std::string read_so_far;
    char buffer[4096];
    pollfd ready = {.fd = output_.get(), .events = POLLIN, .revents = 0};
    while (!absl::StrContains(read_so_far, text) &&
           poll(&ready, 1, 60000) > 0) {
      const ssize_t n = read(output_.get(), buffer, sizeof(buffer));
      if (n <= 0) break;
      read_so_far.append(buffer, static_cast<size_t>(n));
    }
    return read_so_far;
  }

  // Processes that were started with this test's TMPDIR in their environment.
  int Survivors() const {
    int count = 0;
    std::error_code gone;
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc", gone)) {
      const auto environment = ReadFile(entry.path() / "environ");
      count += environment.ok() &&
               absl::StrContains(*environment, "TMPDIR=" + dir_.path());
    }
    return count;
  }

  // As a shell says it.
  int Wait() {
    int status = 0;
    waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  const TempDir dir_ = *TempDir::Create("rondo-demo-test");
  UniqueFd output_;
  pid_t pid_ = 0;
};

TEST_F(DemoTest, TheOptionsOfAnAgentInTheEnvironmentAreNotItsOwn) {
  Start({"MIG_STRATEGY=banana", "KUBELET_SOCKET=/nonexistent",
         "CONFIG_FILE=/nonexistent", "RONDO_LISTEN=nowhere",
         "DP_DISABLE_HEALTHCHECKS=all"});
  const std::string output = ReadUntil("deploy/rondo.yaml");
  // It exits with 0 only if what it claims was true just now.
  EXPECT_EQ(Wait(), 0) << output;
  for (const char* line :
       {"\n   16 Running at the same time        pods on each GPU: 4 + 4 + 4 + "
        "4",
        "\n   one more: Pending                  0/1 nodes are available",
        "\n   with Rondo: the greedy one gets    ",
        " GiB, then CUDA_ERROR_OUT_OF_MEMORY; it sees a GPU of 19.8 GiB, its "
        "part\n",
        "\n   asked for 3 : 1                    ",
        "\n   a request of the service takes         p50       p90       p99   "
        "part of the GPU's time",
        "\n     with a GPU of its own             ",
        "\n     shared, without Rondo             ",
        "\n     shared, with Rondo                ",
        "\n   how it comes                       the batch programs took turns",
        "\nAll of it was measured just now, on a simulated card"})
    EXPECT_TRUE(absl::StrContains(output, line)) << line << "\n" << output;
  EXPECT_EQ(Survivors(), 0);
}

// While the agent is on its way or there; while it has programs.
class InterruptedDemoTest : public DemoTest,
                            public testing::WithParamInterface<const char*> {};

TEST_P(InterruptedDemoTest, LeavesNothing) {
  Start({});
  const std::string output = ReadUntil(GetParam());
  EXPECT_TRUE(absl::StrContains(output, GetParam())) << output;
  EXPECT_GT(Survivors(), 0);
  kill(pid_, SIGINT);
  EXPECT_EQ(Wait(), 128 + SIGINT);
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
  ReadUntil("no such text");  // ends with the last process that holds the pipe
  char c;
  EXPECT_EQ(read(output_.get(), &c, 1), 0);
  EXPECT_EQ(Survivors(), 0);
}

INSTANTIATE_TEST_SUITE_P(At, InterruptedDemoTest,
                         testing::Values("1. The agent starts", "8. Latency"));

}  // namespace
}  // namespace rondo::demo
