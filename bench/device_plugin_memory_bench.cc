// SPDX-License-Identifier: Apache-2.0
//
// Resident memory of a process that is nothing but the device plugin, after
// registration and 200 allocations. The stand-in kubelet lives in the parent;
// the plugin is this same program, started anew.

#include <benchmark/benchmark.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/log.h"
#include "demo/stand_in_kubelet.h"
#include "deviceplugin/manager.h"
#include "deviceplugin/test_node.h"
#include "nvml/test_backend.h"

namespace rondo::deviceplugin {
namespace {

const std::string kGpu = "nvidia.com/gpu";

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::_Exit(1);
}

// The plugin's process; the parent kills it.
int RunPlugin(const std::string& dir, int replicas) {
  EventLoop loop;
  nvml::FakeBackend backend;
  ManagerOptions options;
  options.socket_dir = dir;
  Manager manager(loop, backend, options);
  config::Plan plan = SharedPlan(replicas);
  plan.flags.kubelet_socket = absl::StrCat(dir, "/kubelet.sock");
  Require(manager.Apply(plan, TestGpus(8)).ok(), "apply");
  loop.Run();
  return 0;
}

pid_t StartPlugin(const std::string& dir, int replicas) {
  std::string self = "/proc/self/exe";
  std::string mode = "plugin";
  std::string folder = dir;
  std::string count = absl::StrCat(replicas);
  char* const argv[] = {self.data(), mode.data(), folder.data(), count.data(),
                        nullptr};
  pid_t pid = 0;
  Require(posix_spawn(&pid, self.c_str(), nullptr, nullptr, argv, environ) == 0,
          "start of the plugin");
  return pid;
}

double Mebibytes(pid_t pid, absl::string_view name) {
  const auto status = ReadFile(absl::StrCat("/proc/", pid, "/status"));
  Require(status.ok(), "read status");
  for (absl::string_view line : absl::StrSplit(*status, '\n')) {
    double kibibytes = 0;
    if (absl::ConsumePrefix(&line, absl::StrCat(name, ":")) &&
        absl::ConsumeSuffix(&line, " kB") &&
        absl::SimpleAtod(absl::StripAsciiWhitespace(line), &kibibytes))
      return kibibytes / 1024;
  }
  Require(false, "find the field");
  return 0;
}

void Memory(benchmark::State& state) {
  const int replicas = static_cast<int>(state.range(0));
  for (auto _ : state) {
    const auto dir = TempDir::Create();
    Require(dir.ok(), "temporary folder");
    demo::StandInKubelet kubelet(dir->path());
    Require(kubelet.Start().ok(), "kubelet");
    const pid_t plugin = StartPlugin(dir->path(), replicas);
    Require(kubelet.WaitForAllocatable(kGpu, 8 * replicas), "registration");
    for (int i = 0; i < 200; ++i) {
      const std::string pod = absl::StrCat("pod", i % 50);
      Require(kubelet.Admit(pod, {{{kGpu, 1}}}).reason.empty(), "admission");
      kubelet.Remove(pod);
    }
    state.counters["rss_mib"] = Mebibytes(plugin, "VmRSS");
    state.counters["anonymous_mib"] = Mebibytes(plugin, "RssAnon");
    kill(plugin, SIGKILL);
    waitpid(plugin, nullptr, 0);
  }
}
BENCHMARK(Memory)
    ->ArgName("replicas")
    ->Arg(10)
    ->Arg(1000)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rondo::deviceplugin

int main(int argc, char** argv) {
  rondo::SetLogLevel(rondo::LogLevel::kOff);
  int replicas = 0;
  if (argc == 4 && absl::SimpleAtoi(argv[3], &replicas))
    return rondo::deviceplugin::RunPlugin(argv[2], replicas);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
