// SPDX-License-Identifier: Apache-2.0
//
// GetPreferredAllocation without the wire: ids in, ids out.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>

#include "deviceplugin/prefer.h"
#include "deviceplugin/test_node.h"

namespace rondo::deviceplugin {
namespace {

// gpus x replicas, all free, in random order as kubelet sends them.
void Shared(benchmark::State& state) {
  const int gpus = static_cast<int>(state.range(0));
  const int replicas = static_cast<int>(state.range(1));
  std::vector<NamedDevice> devices;
  std::vector<std::string> ids;
  for (int i = 0; i < gpus; ++i) {
    devices.push_back({GpuUuid(i), replicas});
    for (int n = 0; n < replicas; ++n) ids.push_back(ReplicaId(GpuUuid(i), n));
  }
  std::shuffle(ids.begin(), ids.end(), std::mt19937(1));
  const auto view = TestView(devices);
  PreferRequest request;
  request.available.assign(ids.begin(), ids.end());
  request.size = static_cast<int>(state.range(2));
  for (auto _ : state) {
    auto answer =
        Prefer(*view, config::AllocationPolicy::kDistributed, {}, request);
    benchmark::DoNotOptimize(answer);
  }
}
BENCHMARK(Shared)
    ->ArgNames({"gpus", "replicas", "size"})
    ->Args({8, 10, 1})
    ->Args({8, 10, 8})
    ->Args({8, 100, 1})
    ->Args({8, 100, 80})
    ->Args({8, 1000, 1})
    ->Args({1, 16384, 1})
    ->Args({1, 16384, 100})
    ->Unit(benchmark::kMicrosecond);

// Whole GPUs with links of many kinds: no symmetry to help the search.
void Aligned(benchmark::State& state) {
  const int gpus = static_cast<int>(state.range(0));
  std::vector<NamedDevice> devices;
  for (int i = 0; i < gpus; ++i) devices.push_back({GpuUuid(i), 0});
  const auto view = TestView(devices);
  std::mt19937 random(2);
  LinkScores links;
  for (int i = 0; i < gpus; ++i) {
    for (int j = i + 1; j < gpus; ++j)
      links[std::minmax(devices[i].uuid, devices[j].uuid)] =
          static_cast<int>(random() % 6 * 10 + random() % 13 * 100);
  }
  PreferRequest request;
  for (const NamedDevice& device : devices)
    request.available.push_back(device.uuid);
  request.size = static_cast<int>(state.range(1));
  for (auto _ : state) {
    auto answer =
        Prefer(*view, config::AllocationPolicy::kDistributed, links, request);
    benchmark::DoNotOptimize(answer);
  }
}
BENCHMARK(Aligned)
    ->ArgNames({"gpus", "size"})
    ->Args({8, 2})
    ->Args({8, 4})
    ->Args({12, 2})
    ->Args({12, 4})
    ->Args({16, 2})
    ->Args({16, 3})
    ->Args({16, 4})
    ->Args({16, 5})
    ->Args({16, 6})
    ->Args({16, 7})
    ->Args({16, 8})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rondo::deviceplugin

BENCHMARK_MAIN();
