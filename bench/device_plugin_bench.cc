// SPDX-License-Identifier: Apache-2.0
//
// The device plugin over real unix sockets, against the stand-in kubelet.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/log.h"
#include "deviceplugin/test_plugin.h"

namespace rondo::deviceplugin {
namespace {

const std::string kGpu = "nvidia.com/gpu";

void Require(bool condition) {
  if (!condition) std::abort();
}

// Round trips of one call; p50 and p99 of all iterations in microseconds.
class Percentiles {
 public:
  template <typename Function>
  void Measure(benchmark::State& state, Function function) {
    const auto start = std::chrono::steady_clock::now();
    function();
    const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - start;
    state.SetIterationTime(took.count());
    times_.push_back(took.count() * 1e6);
  }
  void Report(benchmark::State& state) {
    std::sort(times_.begin(), times_.end());
    if (times_.empty()) return;
    state.counters["p50_us"] = times_[times_.size() / 2];
    state.counters["p99_us"] = times_[times_.size() * 99 / 100];
  }

 private:
  std::vector<double> times_;
};

std::vector<std::string> AllIds(int gpus, int replicas) {
  std::vector<std::string> ids;
  for (int i = 0; i < gpus; ++i) {
    for (int n = 0; n < replicas; ++n) ids.push_back(ReplicaId(GpuUuid(i), n));
  }
  return ids;
}

void AllocateRpc(benchmark::State& state) {
  const int replicas = static_cast<int>(state.range(0));
  TestPlugin node;
  Require(node.kubelet.Start().ok());
  Require(node.Apply(SharedPlan(replicas), TestGpus(8)).ok());
  Require(node.kubelet.WaitForAllocatable(kGpu, 8 * replicas));
  demo::PluginClient client(kGpu, node.Stats(kGpu).socket);
  Require(client.Connect().ok());
  Percentiles percentiles;
  const std::vector<std::string> ids = {ReplicaId(GpuUuid(3), 1)};
  for (auto _ : state)
    percentiles.Measure(state, [&] { Require(client.Allocate(ids).ok()); });
  percentiles.Report(state);
}
BENCHMARK(AllocateRpc)
    ->ArgName("replicas")
    ->Arg(10)
    ->Arg(1000)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

void PreferredAllocationRpc(benchmark::State& state) {
  const int replicas = static_cast<int>(state.range(0));
  TestPlugin node;
  Require(node.kubelet.Start().ok());
  Require(node.Apply(SharedPlan(replicas), TestGpus(8)).ok());
  Require(node.kubelet.WaitForAllocatable(kGpu, 8 * replicas));
  demo::PluginClient client(kGpu, node.Stats(kGpu).socket);
  Require(client.Connect().ok());
  const std::vector<std::string> ids = AllIds(8, replicas);
  Percentiles percentiles;
  for (auto _ : state)
    percentiles.Measure(state, [&] {
      Require(client.GetPreferredAllocation(ids, {}, 1).ok());
    });
  percentiles.Report(state);
}
BENCHMARK(PreferredAllocationRpc)
    ->ArgName("replicas")
    ->Arg(10)
    ->Arg(1000)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

// From a new plan to kubelet's allocatable.
void ApplyToAllocatable(benchmark::State& state) {
  const int replicas = static_cast<int>(state.range(0));
  TestPlugin node;
  Require(node.kubelet.Start().ok());
  Percentiles percentiles;
  int more = 0;
  for (auto _ : state) {
    percentiles.Measure(state, [&] {
      const int now = replicas + ++more % 2;
      Require(node.Apply(SharedPlan(now), TestGpus(8)).ok());
      Require(node.kubelet.WaitForAllocatable(kGpu, 8 * now));
    });
  }
  percentiles.Report(state);
}
BENCHMARK(ApplyToAllocatable)
    ->ArgName("replicas")
    ->Arg(10)
    ->Arg(1000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// From the making of a manager to its registration and first list. The manager
// goes outside the measured time.
void StartToRegistered(benchmark::State& state) {
  TestPlugin node;
  Require(node.kubelet.Start().ok());
  Percentiles percentiles;
  for (auto _ : state) {
    percentiles.Measure(state, [&] {
      Require(node.Apply(SharedPlan(4), TestGpus(8)).ok());
      Require(node.kubelet.WaitForAllocatable(kGpu, 32));
    });
    node.StopManager();
    Require(node.kubelet.WaitForAllocatable(kGpu, 0));
  }
  percentiles.Report(state);
}
BENCHMARK(StartToRegistered)
    ->UseManualTime()
    ->Iterations(10)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rondo::deviceplugin

int main(int argc, char** argv) {
  rondo::SetLogLevel(rondo::LogLevel::kOff);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
