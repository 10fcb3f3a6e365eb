// SPDX-License-Identifier: Apache-2.0
//
// The agent as a process, on a simulated node with 8 GPUs and the stand-in
// kubelet: how soon it is registered, how soon an edit reaches kubelet, how
// much memory it takes. Each figure is the median of its repetitions.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "demo/agent_process.h"
#include "demo/stand_in_kubelet.h"
#include "sim/node.h"

namespace rondo {
namespace {

using demo::AgentProcess;
using demo::StandInKubelet;

constexpr char kGpu[] = "nvidia.com/gpu";
constexpr int kGpus = 8;

std::string Replicas(int replicas) {
  return absl::StrCat(
      "sharing: {timeSlicing: {resources: [{name: gpu, replicas: ", replicas,
      "}]}}\n");
}

// A node, a kubelet and a config file; the agent comes and goes.
struct Stage {
  explicit Stage(int replicas) : kubelet(AgentProcess::DevicePluginDir(dir())) {
    Write(replicas);
    if (!kubelet.Start().ok() || !node.ok()) abort();
  }
  std::string dir() const { return scratch.path(); }
  void Write(int replicas) {
    if (!WriteFileAtomically(dir() + "/config", Replicas(replicas)).ok())
      abort();
  }
  std::unique_ptr<AgentProcess> StartAgent() {
    return *AgentProcess::Start(
        {.executable = RONDO,
         .scratch = dir(),
         .nvml_library = node->library_path(),
         .node_root = node->dir(),
         .arguments = {"--config-file=" + dir() + "/config"}});
  }

  TempDir scratch = *TempDir::Create("rondo-bench");
  absl::StatusOr<sim::Node> node = sim::Node::Create(
      absl::StrCat(kGpus, "xA100-SXM4-80GB"), scratch.path() + "/node");
  StandInKubelet kubelet;
};

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

// From fork to the first device list at kubelet, which comes after Register.
void StartToRegistered(benchmark::State& state) {
  Stage stage(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    const int before = stage.kubelet.Counts(kGpu).registrations;
    const auto start = std::chrono::steady_clock::now();
    auto agent = stage.StartAgent();
    const bool done =
        stage.kubelet.WaitFor(kGpu, [&](const demo::ResourceCounts& c) {
          return c.registrations > before && c.allocatable > 0;
        });
    state.SetIterationTime(SecondsSince(start));
    if (!done) state.SkipWithError("not registered");
  }
}
BENCHMARK(StartToRegistered)
    ->Arg(10)
    ->Arg(1000)
    ->Iterations(15)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// From the rename of the config file to the new list at kubelet.
void EditToList(benchmark::State& state) {
  Stage stage(10);
  auto agent = stage.StartAgent();
  int replicas = 10;
  if (!stage.kubelet.WaitForAllocatable(kGpu, kGpus * replicas)) abort();
  for (auto _ : state) {
    replicas = replicas == 10 ? 12 : 10;
    const auto start = std::chrono::steady_clock::now();
    stage.Write(replicas);
    // Fewer replicas retire some devices: they are listed as unhealthy.
    const bool done = stage.kubelet.WaitForAllocatable(kGpu, kGpus * replicas);
    state.SetIterationTime(SecondsSince(start));
    if (!done) state.SkipWithError("the edit did not arrive");
  }
}
BENCHMARK(EditToList)
    ->Iterations(30)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

double StatusMiB(pid_t pid, absl::string_view key) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(status, line);) {
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    double kib = 0;
    if (words.size() > 1 && words[0] == key && absl::SimpleAtod(words[1], &kib))
      return kib / 1024;
  }
  return -1;
}

// Resident memory after registration, 200 allocations and as many scrapes'
// worth of lists.
void ResidentMemory(benchmark::State& state) {
  const int replicas = static_cast<int>(state.range(0));
  for (auto _ : state) {
    Stage stage(replicas);
    auto agent = stage.StartAgent();
    if (!stage.kubelet.WaitForAllocatable(kGpu, kGpus * replicas)) abort();
    for (int i = 0; i < std::min(200, kGpus * replicas); ++i)
      stage.kubelet.Admit(absl::StrCat("pod-", i), {{{kGpu, 1}}});
    state.counters["rss_MiB"] = StatusMiB(agent->pid(), "VmRSS:");
    state.counters["peak_MiB"] = StatusMiB(agent->pid(), "VmHWM:");
    state.counters["threads"] = StatusMiB(agent->pid(), "Threads:") * 1024;
  }
}
BENCHMARK(ResidentMemory)
    ->Arg(10)
    ->Arg(1000)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rondo

BENCHMARK_MAIN();
