// SPDX-License-Identifier: Apache-2.0
//
// The shim's code inside the test's own process, so that the thread sanitizer
// sees it: many threads at the driver, slices and lost agents in between.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "rm/abi.h"
#include "rm/memory.h"
#include "shim/calls.h"
#include "shim/thread.h"
#include "test/shim/fake_agent.h"
#include "test/shim/fake_driver.h"
#include "test/shim/tenant_process.h"

namespace rondo::shim {
namespace {

// Outlives the test, as in a real process: its thread never ends.
constinit Shim g_shim;

class Tenant {
 public:
  Tenant() : fd_(memfd_create("nvidiactl", MFD_CLOEXEC)) {
    rm::AllocArg root{.cls = rm::kClassRootClient};
    Say(rm::kEscAlloc, &root);
    client_ = root.handle;
    uint32_t params[16] = {};
    Alloc(client_, 0x100, rm::kClassDevice, params);
    Alloc(0x100, 0x101, rm::kClassSubdevice, params);
  }

  uint32_t Alloc(uint32_t parent, uint32_t handle, uint32_t cls, void* params) {
    rm::AllocArg arg{.client = client_,
                     .parent = parent,
                     .handle = handle,
                     .cls = cls,
                     .params = reinterpret_cast<uint64_t>(params)};
    Say(rm::kEscAlloc, &arg);
    return arg.status;
  }
  uint32_t Memory(uint32_t handle, uint64_t bytes) {
    rm::MemoryParams params{.size = bytes};
    return Alloc(0x100, handle, rm::kClassMemoryLocal, &params);
  }
  uint32_t Free(uint32_t handle) {
    rm::FreeArg arg{client_, 0x100, handle, 0};
    Say(rm::kEscFree, &arg);
    return arg.status;
  }

 private:
  template <typename T>
  void Say(uint32_t nr, T* arg) {
    OnDriverIoctl(&g_shim, fd_, rm::MakeRequest(nr, sizeof(T)), arg);
    StartThreadIfWanted(&g_shim);
  }
  const int fd_;
  uint32_t client_ = 0;
};

TEST(ShimThreads, AllocateWhileSlicesChangeAndAgentsGo) {
  RunDir dir;
  const std::string socket = dir.Socket(kGpu, 0);
  setenv("RONDO_RUN_DIR", dir.path().c_str(), 1);
  setenv("RONDO_SLOTS", (std::string(kGpu) + "::0").c_str(), 1);
  FakeAgent::Options options;
  options.policy.limit = 8 << 20;
  auto agent = std::make_unique<FakeAgent>(socket, options);
  Tenant tenant;
  ASSERT_EQ(tenant.Alloc(0x100, 10, rm::kClassChannelGroup, nullptr), rm::kOk);
  std::atomic<bool> stop{false};
  std::atomic<int> granted{0}, denied{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; !stop; ++i) {
        const uint32_t base = 0x10000 * (t + 1);
        for (uint32_t k = 0; k < 12; ++k) {
          ++(tenant.Memory(base + k, 1 << 20) == rm::kOk ? granted : denied);
        }
        if (t == 0) {
          tenant.Alloc(0x100, base + 100, rm::kClassChannelGroup, nullptr);
          tenant.Alloc(base + 100, base + 101, 0xc86f, nullptr);
          tenant.Free(base + 100);
        }
        for (uint32_t k = 0; k < 12; ++k) tenant.Free(base + k);
      }
    });
  }
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(agent->Wait([](const auto& s) { return s.hellos > 0; }));
    for (uint32_t us = 1; us <= 20; ++us) {
      const size_t before = agent->Get().applied.size();
      agent->SendSlice(us * 1000);
      EXPECT_TRUE(agent->Wait(
          [&](const auto& s) { return s.applied.size() > before; }));
    }
    agent.reset();
    agent = std::make_unique<FakeAgent>(socket, options);
  }
  EXPECT_TRUE(agent->Wait([](const auto& s) { return s.hellos > 0; }));
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_GT(granted, 0);
  EXPECT_GT(denied, 0) << "each thread alone wants 12 MiB, 8 are there";
  EXPECT_TRUE(agent->Wait(
      [](const auto& s) { return s.Used() == 0 && s.channels.empty(); }));
  EXPECT_EQ(fake_driver::BytesInUse(), 0u);
}

}  // namespace
}  // namespace rondo::shim
