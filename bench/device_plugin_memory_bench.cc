// SPDX-License-Identifier: Apache-2.0
//
// Resident memory of a process that is nothing but the device plugin: the
// stand-in kubelet lives in the parent. Counted after registration, a new list
// and 200 allocations. Not a Google Benchmark loop: one figure a case.

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/log.h"
#include "demo/stand_in_kubelet.h"
#include "deviceplugin/manager.h"
#include "deviceplugin/test_backend.h"
#include "deviceplugin/test_node.h"

namespace rondo::deviceplugin {
namespace {

const std::string kGpu = "nvidia.com/gpu";

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::_Exit(1);
}

// The plugin's process: ends with its parent's SIGKILL.
[[noreturn]] void RunPlugin(const std::string& dir, int replicas) {
  EventLoop loop;
  FakeBackend backend;
  ManagerOptions options;
  options.socket_dir = dir;
  Manager manager(loop, backend, options);
  config::Plan plan = SharedPlan(replicas);
  plan.flags.kubelet_socket = absl::StrCat(dir, "/kubelet.sock");
  Require(manager.Apply(plan, TestGpus(8)).ok(), "apply");
  loop.Run();
  std::_Exit(0);
}

std::string Field(pid_t pid, const std::string& name) {
  const auto status = ReadFile(absl::StrCat("/proc/", pid, "/status"));
  Require(status.ok(), "read status");
  for (const absl::string_view line : absl::StrSplit(*status, '\n')) {
    if (absl::StartsWith(line, absl::StrCat(name, ":")))
      return std::string(line);
  }
  return "";
}

void Measure(int replicas) {
  const auto dir = TempDir::Create();
  Require(dir.ok(), "temporary folder");
  const pid_t plugin = fork();
  // Before any gRPC thread exists in this process.
  if (plugin == 0) RunPlugin(dir->path(), replicas);
  demo::StandInKubelet kubelet(dir->path());
  Require(kubelet.Start().ok(), "kubelet");
  Require(kubelet.WaitForAllocatable(kGpu, 8 * replicas), "registration");
  for (int i = 0; i < 200; ++i) {
    const std::string pod = absl::StrCat("pod", i % 50);
    Require(kubelet.Admit(pod, {{{kGpu, 1}}}).reason.empty(), "admission");
    kubelet.Remove(pod);
  }
  std::printf("8 x %d: %s  %s  %s\n", replicas, Field(plugin, "VmRSS").c_str(),
              Field(plugin, "RssAnon").c_str(),
              Field(plugin, "Threads").c_str());
  kill(plugin, SIGKILL);
  waitpid(plugin, nullptr, 0);
}

}  // namespace
}  // namespace rondo::deviceplugin

int main(int argc, char** argv) {
  rondo::SetLogLevel(rondo::LogLevel::kOff);
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s REPLICAS\n", argv[0]);
    return 2;
  }
  rondo::deviceplugin::Measure(
      static_cast<int>(std::strtol(argv[1], nullptr, 10)));
}
