// SPDX-License-Identifier: Apache-2.0
//
// The ListAndWatch message: what one health event or one edit costs.

#include <benchmark/benchmark.h>

#include "deviceplugin/test_node.h"
#include "deviceplugin/view.h"

namespace rondo::deviceplugin {
namespace {

void EncodeList(benchmark::State& state) {
  std::vector<NamedDevice> devices;
  for (int i = 0; i < state.range(0); ++i)
    devices.push_back({GpuUuid(i), static_cast<int>(state.range(1))});
  const auto view = TestView(devices);
  for (auto _ : state) {
    std::string list = view->EncodeList();
    benchmark::DoNotOptimize(list);
  }
  state.counters["bytes"] = static_cast<double>(view->EncodedSize());
}
BENCHMARK(EncodeList)
    ->ArgNames({"gpus", "replicas"})
    ->Args({8, 10})
    ->Args({8, 100})
    ->Args({8, 1000})
    ->Args({1, 16384})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rondo::deviceplugin

BENCHMARK_MAIN();
