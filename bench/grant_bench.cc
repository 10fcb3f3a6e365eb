// SPDX-License-Identifier: Apache-2.0
//
// What one memory request costs a program: reserve -> answer over the slot's
// socket, the agent's loop on its own thread; and what the ledger itself takes.
#include <benchmark/benchmark.h>

#include <thread>

#include "base/file.h"
#include "share/memory/ledger.h"
#include "share/slot_server.h"
#include "share/test_shim.h"

namespace rondo::share {
namespace {

class Nobody : public SlotServer::Observer {
  void OnAttached(ProcessId) override {}
  void OnChannels(ProcessId) override {}
  void OnApplied(ProcessId, const wire::Applied&) override {}
  void OnDetached(ProcessId) override {}
};

void GrantRoundTrip(benchmark::State& state) {
  const TempDir dir = *TempDir::Create();
  EventLoop loop;
  Nobody nobody;
  SlotServer server(loop, dir.path(), &nobody, std::chrono::milliseconds(0));
  SlotPolicy policy{.memory = wire::Memory::kEnforce,
                    .limit_bytes = uint64_t{1} << 40};
  if (!server.AddSlot("G::0", "G-0", policy).ok()) abort();
  std::thread agent([&] { loop.Run(); });
  TestShim shim;
  if (!shim.Connect(dir.path() + "/G-0/agent.sock") || !shim.Hello()) abort();
  uint64_t id = 0;
  for (auto _ : state) {
    if (!shim.Reserve(++id, 2 << 20)) abort();
    shim.Release(id);
  }
  loop.Stop();
  agent.join();
}
BENCHMARK(GrantRoundTrip)->UseRealTime();

void LedgerReserveAndRelease(benchmark::State& state) {
  Ledger ledger({.limit_bytes = uint64_t{1} << 40, .enforce = true});
  for (uint64_t i = 0; i < 10'000; ++i)
    benchmark::DoNotOptimize(
        ledger.Reserve(i % 16, MemoryKind::kDevice, i, 2 << 20));
  uint64_t id = 10'000;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        ledger.Reserve(1, MemoryKind::kDevice, ++id, 2 << 20));
    ledger.Release(1, id);
  }
}
BENCHMARK(LedgerReserveAndRelease);

}  // namespace
}  // namespace rondo::share

BENCHMARK_MAIN();
