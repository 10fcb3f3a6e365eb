// SPDX-License-Identifier: Apache-2.0
//
// What the arbiter costs: one report of the context-switch log, as it comes up
// to 500 times a second, with a latency tenant and n - 1 batch tenants.
#include <benchmark/benchmark.h>

#include "share/time/arbiter.h"

namespace rondo::share {
namespace {

void ArbiterReport(benchmark::State& state) {
  const auto tenants = static_cast<TenantId>(state.range(0));
  Arbiter arbiter({});
  int64_t now_us = 0;
  for (TenantId id = 1; id <= tenants; ++id) {
    TenantSpec spec;
    spec.cls = id == 1 ? TenantClass::kLatency : TenantClass::kBatch;
    arbiter.Step(now_us, TenantSet{id, spec});
    arbiter.Step(now_us, ProcessAttached{id, id});
    arbiter.Step(now_us, ProcessGroups{id, 1});
  }
  Activity activity;
  activity.interval_us = 2000;
  activity.runs = {{1, 300, 700}, {2, 1500, 0}};
  for (auto _ : state) {
    now_us += 2000;
    const Decision decision = arbiter.Step(now_us, activity);
    for (const Action& action : decision.actions) {
      if (const auto* call = std::get_if<Switch>(&action)) {
        for (ProcessId id : call->processes)
          arbiter.Step(now_us, Switched{call->op, id, true});
      } else {
        const auto& set = std::get<SetSlice>(action);
        arbiter.Step(now_us,
                     SliceApplied{set.process, set.seq, set.slice_us, true});
      }
    }
  }
}
BENCHMARK(ArbiterReport)->Arg(2)->Arg(4)->Arg(8)->Arg(32);

}  // namespace
}  // namespace rondo::share

BENCHMARK_MAIN();
