// SPDX-License-Identifier: Apache-2.0
//
// The small pure parts: views, slots, ranges, readable memory, the lock.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <string>
#include <thread>
#include <vector>

#include "rm/memory.h"
#include "shim/lock.h"
#include "shim/ranges.h"
#include "shim/slots.h"
#include "shim/view.h"

namespace rondo::shim {
namespace {

TEST(View, ShowsTheSmallerOfCardAndSlot) {
  const Share share{.limit = 8ull << 30, .used = 2ull << 30};
  rm::FbInfo list[] = {{rm::kFbTotalRam, 80u << 20},
                       {rm::kFbHeapFree, 1u << 20},  // the card is fuller
                       {rm::kFbHeapFree, 70u << 20},
                       {0x10, 123}};
  ShowFbInfo(share, list, 4);
  EXPECT_EQ(list[0].data, 8u << 20);
  EXPECT_EQ(list[1].data, 1u << 20);
  EXPECT_EQ(list[2].data, 6u << 20);
  EXPECT_EQ(list[3].data, 123u);
}

TEST(View, OverTheLimitNothingIsFree) {
  const Share share{.limit = 1 << 20, .used = 2 << 20};
  EXPECT_EQ(share.free(), 0u);
}

TEST(View, TheListEndsWithTheStruct) {
  std::vector<uint32_t> params(109);  // 436 bytes: 54 entries
  params[0] = 1000;
  EXPECT_EQ(FbInfoCount(params.data(), 436), 54u);
  params[0] = 3;
  EXPECT_EQ(FbInfoCount(params.data(), 436), 3u);
  EXPECT_EQ(FbInfoCount(params.data(), 2), 0u);
}

std::vector<std::string> Parse(const std::string& text) {
  Slots slots{};
  ParseSlots(text.c_str(), "/run/rondo", &slots);
  std::vector<std::string> sockets;
  for (uint32_t i = 0; i < slots.count; ++i) {
    sockets.push_back(slots.slot[i].socket);
  }
  return sockets;
}

TEST(Slots, Parse) {
  EXPECT_THAT(Parse("GPU-a::0,GPU-b::12"),
              testing::ElementsAre("/run/rondo/GPU-a-0/agent.sock",
                                   "/run/rondo/GPU-b-12/agent.sock"));
  EXPECT_THAT(Parse(""), testing::IsEmpty());
  EXPECT_THAT(Parse(",,GPU-a,::3,GPU-a::1,"),
              testing::ElementsAre("/run/rondo/GPU-a-1/agent.sock"));
  EXPECT_THAT(Parse("GPU-" + std::string(200, 'x') + "::0"),
              testing::IsEmpty());
  std::string many;
  for (int i = 0; i < 40; ++i) many += "GPU-a::" + std::to_string(i) + ",";
  EXPECT_EQ(Parse(many).size(), kMaxSlots);
}

TEST(Slots, OfFolders) {
  Slots slots{};
  EXPECT_TRUE(AddSlotOfFolder("GPU-aa-bb-3", "/run/rondo", &slots));
  EXPECT_STREQ(slots.slot[0].uuid, "GPU-aa-bb");
  EXPECT_STREQ(slots.slot[0].socket, "/run/rondo/GPU-aa-bb-3/agent.sock");
  for (const char* name : {"..", "GPU-", "GPU-aa-", "aa-bb-3", "3", ""}) {
    EXPECT_FALSE(AddSlotOfFolder(name, "/run/rondo", &slots)) << name;
  }
}

TEST(Slots, OfAGpu) {
  Slots slots{};
  ParseSlots("GPU-a::0,GPU-b::0,GPU-a::1", "/r", &slots);
  EXPECT_EQ(SlotsOfGpu(slots, "GPU-a"), 5u);
  EXPECT_EQ(SlotsOfGpu(slots, "GPU-b"), 2u);
  EXPECT_EQ(SlotsOfGpu(slots, "GPU-c"), 0u);
  Slots mig{};
  ParseSlots("MIG-a::0", "/r", &mig);
  EXPECT_EQ(SlotsOfGpu(mig, "GPU-c"), 1u);
}

struct Lost {
  uint32_t block;
  uint64_t bytes;
  bool last;
  bool operator==(const Lost&) const = default;
};

std::vector<Lost> Cut(Ranges* ranges, uint64_t start, uint64_t length,
                      uint64_t serial = ~uint64_t{0}) {
  std::vector<Lost> lost;
  ranges->Cut(start, length, serial,
              [&](uint32_t block, uint64_t bytes, bool last) {
                lost.push_back({block, bytes, last});
              });
  return lost;
}

TEST(Ranges, CutsWholesEdgesAndHoles) {
  Ranges ranges;
  EXPECT_FALSE(ranges.MayTouch(0, 1 << 20));
  ranges.Add(1000, 1000, 7);
  EXPECT_TRUE(ranges.MayTouch(1999, 1));
  EXPECT_FALSE(ranges.MayTouch(2000, 1));
  EXPECT_EQ(Cut(&ranges, 0, 1000), std::vector<Lost>());
  EXPECT_EQ(Cut(&ranges, 1400, 200), (std::vector<Lost>{{7, 200, false}}));
  EXPECT_EQ(Cut(&ranges, 500, 600), (std::vector<Lost>{{7, 100, false}}));
  EXPECT_EQ(Cut(&ranges, 1100, 300), (std::vector<Lost>{{7, 300, false}}));
  EXPECT_EQ(Cut(&ranges, 0, 5000), (std::vector<Lost>{{7, 400, true}}));
}

TEST(Ranges, ALateCutLeavesTheSuccessorAlone) {
  Ranges ranges;
  ranges.Add(1000, 1000, 1);
  const uint64_t before = ranges.last_serial();
  Cut(&ranges, 1000, 1000);
  ranges.Add(1000, 1000, 2);
  EXPECT_EQ(Cut(&ranges, 1000, 1000, before), std::vector<Lost>());
  EXPECT_EQ(Cut(&ranges, 1000, 1000), (std::vector<Lost>{{2, 1000, true}}));
}

TEST(Ranges, UnmanagedOnesCostNothing) {
  Ranges ranges;
  ranges.Add(1000, 1000, Account::kNoBlock);
  EXPECT_TRUE(ranges.IsUnmanaged(1500, 10));
  EXPECT_EQ(Cut(&ranges, 0, 5000), std::vector<Lost>());
  EXPECT_FALSE(ranges.IsUnmanaged(1500, 10));
}

TEST(Readable, AsksTheKernel) {
  char* pages = static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(munmap(pages + 4096, 4096), 0);
  EXPECT_TRUE(sys::Readable(pages, 4096));
  EXPECT_TRUE(sys::Readable(pages + 4095, 1));
  EXPECT_FALSE(sys::Readable(pages + 4095, 2));
  EXPECT_FALSE(sys::Readable(nullptr, 8));
  EXPECT_FALSE(sys::Readable(pages, 0));
  EXPECT_FALSE(sys::Readable(reinterpret_cast<void*>(~0ul - 4), 64));
  munmap(pages, 4096);
}

TEST(Lock, Excludes) {
  Lock lock;
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        lock.Acquire();
        ++count;
        lock.Release();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(count, 80000);
}

TEST(SignalsBlocked, ForItsLifetime) {
  sigset_t before, during;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  {
    SignalsBlocked blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &during);
    EXPECT_EQ(sigismember(&during, SIGUSR1), 1);
  }
  pthread_sigmask(SIG_SETMASK, nullptr, &during);
  EXPECT_EQ(sigismember(&during, SIGUSR1), sigismember(&before, SIGUSR1));
}

}  // namespace
}  // namespace rondo::shim
