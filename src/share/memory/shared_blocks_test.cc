// SPDX-License-Identifier: Apache-2.0
//
// Memory that several processes hold, through the ledgers of their slots.
#include "share/memory/shared_blocks.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "share/memory/ledger.h"

namespace rondo::share {
namespace {

constexpr auto kDevice = MemoryKind::kDevice;
constexpr uint32_t kTag = 0xcafe, kOther = 0xbeef;

class SharedBlocksTest : public testing::Test {
 protected:
  SharedBlocks shared_;
  Ledger a_{MemoryPolicy{.limit_bytes = 1000, .enforce = true}, &shared_};
  Ledger b_{MemoryPolicy{.limit_bytes = 1000, .enforce = true}, &shared_};
};

TEST_F(SharedBlocksTest, ChargedOnceWhoeverGoesFirst) {
  for (const bool owner_first : {true, false}) {
    EXPECT_TRUE(a_.Reserve(1, kDevice, 1, 512));
    EXPECT_TRUE(a_.Share(1, 1, kTag));
    EXPECT_TRUE(a_.Borrow(2, 9, 512, kTag));
    EXPECT_EQ(a_.charged_bytes(), 512u);
    EXPECT_EQ(a_.device_bytes(1), 512u);
    EXPECT_TRUE(owner_first ? a_.Release(1, 1) : a_.Release(2, 9));
    EXPECT_EQ(a_.charged_bytes(), 512u);
    EXPECT_EQ(a_.device_bytes(owner_first ? 2 : 1), 512u);
    EXPECT_FALSE(a_.Reserve(3, kDevice, 1, 489));
    EXPECT_TRUE(owner_first ? a_.Release(2, 9) : a_.Release(1, 1));
    EXPECT_EQ(a_.charged_bytes(), 0u);
    EXPECT_EQ(a_.usage().reservations, 0u);
    EXPECT_EQ(shared_.size(), 0u);
  }
}

TEST_F(SharedBlocksTest, AMakerThatDiesPassesOnAllThatItLent) {
  for (uint64_t i = 1; i <= 3; ++i) {
    EXPECT_TRUE(a_.Reserve(1, kDevice, i, 100));
    EXPECT_TRUE(a_.Share(1, i, kTag + i));
  }
  EXPECT_TRUE(a_.Borrow(2, 1, 100, kTag + 1));
  EXPECT_TRUE(a_.Borrow(3, 1, 100, kTag + 2));
  a_.Close(1);
  EXPECT_EQ(a_.charged_bytes(), 200u);
  a_.Close(2);
  EXPECT_EQ(a_.charged_bytes(), 100u);
  a_.Close(3);
  EXPECT_EQ(a_.charged_bytes(), 0u);
}

TEST_F(SharedBlocksTest, ABlockPassesOnToAnotherSlotEvenAboveItsLimit) {
  EXPECT_TRUE(b_.Reserve(5, kDevice, 1, 900));
  EXPECT_TRUE(a_.Reserve(1, kDevice, 1, 512));
  EXPECT_TRUE(a_.Share(1, 1, kTag));
  EXPECT_TRUE(b_.Borrow(2, 1, 512, kTag));
  EXPECT_EQ(b_.charged_bytes(), 900u);
  a_.Close(1);
  EXPECT_EQ(a_.charged_bytes(), 0u);
  EXPECT_EQ(b_.charged_bytes(), 1412u) << "a fact";
  EXPECT_FALSE(b_.Reserve(2, kDevice, 2, 1));
}

TEST_F(SharedBlocksTest, PassedOnToTheNewestAndFromLoanToLoan) {
  EXPECT_TRUE(a_.Reserve(1, kDevice, 1, 100));
  EXPECT_TRUE(a_.Share(1, 1, kTag));
  for (ProcessId p = 2; p <= 4; ++p) EXPECT_TRUE(a_.Borrow(p, 1, 100, kTag));
  a_.Close(1);
  EXPECT_EQ(a_.device_bytes(4), 100u);
  a_.Close(4);
  EXPECT_EQ(a_.device_bytes(3), 100u);
  EXPECT_EQ(a_.charged_bytes(), 100u);
}

// After an agent's restart they tell in any order; so do two sockets at once.
TEST_F(SharedBlocksTest, ALoanMayBeToldBeforeItsOwner) {
  EXPECT_TRUE(b_.Borrow(2, 1, 512, kTag));
  EXPECT_EQ(b_.charged_bytes(), 512u) << "nobody else is known to have it";
  EXPECT_TRUE(a_.Replay(1, kDevice, 1, 512));
  EXPECT_TRUE(a_.Share(1, 1, kTag));
  EXPECT_EQ(b_.charged_bytes(), 0u);
  EXPECT_EQ(a_.charged_bytes(), 512u);
}

// A shim that lost its connection is there twice until the old one's end is
// seen.
TEST_F(SharedBlocksTest, AnOwnerThatComesBackIsNotItsOwnHeir) {
  EXPECT_TRUE(a_.Reserve(1, kDevice, 1, 512));
  EXPECT_TRUE(a_.Share(1, 1, kTag));
  EXPECT_TRUE(a_.Borrow(2, 1, 512, kTag));
  EXPECT_TRUE(a_.Replay(3, kDevice, 1, 512));
  EXPECT_TRUE(a_.Share(3, 1, kTag));
  a_.Close(1);
  EXPECT_EQ(a_.device_bytes(3), 512u);
  EXPECT_EQ(a_.charged_bytes(), 512u);
  a_.Close(3);
  EXPECT_EQ(a_.device_bytes(2), 512u);
}

TEST_F(SharedBlocksTest, ALoanOfUnknownSizeHasItsBlocksOwn) {
  EXPECT_FALSE(a_.Borrow(2, 1, 0, kTag)) << "nobody knows the block";
  EXPECT_TRUE(a_.Reserve(1, kDevice, 1, 512));
  EXPECT_TRUE(a_.Share(1, 1, kTag));
  EXPECT_TRUE(a_.Borrow(2, 1, 0, kTag));
  a_.Close(1);
  EXPECT_EQ(a_.device_bytes(2), 512u);
}

TEST_F(SharedBlocksTest, RefusesWhatMakesNoSense) {
  EXPECT_FALSE(a_.Share(1, 1, kTag)) << "not held";
  EXPECT_TRUE(a_.Reserve(1, kDevice, 1, 10));
  EXPECT_TRUE(a_.Reserve(1, MemoryKind::kManaged, 2, 10));
  EXPECT_FALSE(a_.Share(1, 1, 0));
  EXPECT_FALSE(a_.Share(1, 2, kTag)) << "managed memory has no handle";
  EXPECT_TRUE(a_.Share(1, 1, kTag));
  EXPECT_TRUE(a_.Share(1, 1, kTag)) << "told twice";
  EXPECT_FALSE(a_.Share(1, 1, kOther));
  EXPECT_FALSE(a_.Borrow(1, 1, 10, kTag)) << "the handle is in use";
  EXPECT_TRUE(a_.Borrow(1, 3, 10, kTag));
  EXPECT_FALSE(a_.Share(1, 3, kTag)) << "not its own";
  EXPECT_FALSE(a_.Reserve(1, kDevice, 3, 20)) << "a loan has no other size";
  EXPECT_FALSE(a_.Borrow(1, 4, ~uint64_t{0}, kTag));
}

TEST_F(SharedBlocksTest, LoansWithoutATagAreToldBySize) {
  EXPECT_TRUE(a_.Borrow(2, 1, 64, 0));
  EXPECT_EQ(a_.charged_bytes(), 64u) << "whose it was is not known";
  EXPECT_TRUE(a_.Reserve(1, kDevice, 1, 100));
  EXPECT_TRUE(a_.Reserve(1, kDevice, 2, 100));
  EXPECT_TRUE(a_.Borrow(2, 2, 100, 0));
  EXPECT_EQ(a_.charged_bytes(), 264u);
  EXPECT_TRUE(a_.Release(1, 1));
  EXPECT_EQ(a_.charged_bytes(), 264u) << "it may have been that one";
  EXPECT_TRUE(a_.Release(1, 2));
  EXPECT_EQ(a_.charged_bytes(), 164u);
  a_.Close(2);
  EXPECT_EQ(a_.charged_bytes(), 0u);
}

TEST_F(SharedBlocksTest, WhatClosesPassesNothingOnToItself) {
  EXPECT_TRUE(a_.Borrow(1, 1, 100, 0));
  EXPECT_TRUE(a_.Borrow(2, 1, 100, 0));
  EXPECT_TRUE(a_.Borrow(1, 2, 100, 0));
  EXPECT_EQ(a_.device_bytes(1), 100u);
  a_.Close(1);
  EXPECT_EQ(a_.device_bytes(2), 100u);
  EXPECT_EQ(a_.charged_bytes(), 100u);
}

// What is true of the memory itself: blocks, and who holds each.
struct True {
  uint64_t bytes;
  uint32_t tag;
  std::vector<std::pair<ProcessId, uint64_t>> holders;  // by handle
  bool Held() const { return !holders.empty(); }
};

class SharedProperty : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr ProcessId kProcesses = 6;

  uint64_t Pick(uint64_t n) { return random_() % n; }
  Ledger& LedgerOf(ProcessId process) {
    return process % 2 && !one_slot_ ? odd_ : even_;
  }
  // Told by a process; arrives some time later, in the process's own order.
  void Tell(ProcessId process, std::function<void(Ledger&)> what) {
    on_their_way_[process].push_back(std::move(what));
  }
  void Deliver(ProcessId process) {
    if (on_their_way_[process].empty()) return;
    on_their_way_[process].front()(LedgerOf(process));
    on_their_way_[process].pop_front();
  }
  void DeliverAll() {
    for (bool any = true; any;) {
      any = false;
      for (ProcessId i = 0, first = Pick(kProcesses); i < kProcesses; ++i) {
        const ProcessId p = (first + i) % kProcesses;
        any = any || !on_their_way_[p].empty();
        Deliver(p);
      }
    }
  }

  void Make(ProcessId process, uint64_t bytes, uint32_t tag) {
    const uint64_t handle = ++handle_;
    blocks_.push_back({bytes, tag, {{process, handle}}});
    Tell(process, [=](Ledger& l) {
      ASSERT_TRUE(l.Replay(process, kDevice, handle, bytes));
      if (tag == 0) return;
      ASSERT_TRUE(l.Share(process, handle, tag));
    });
  }
  void Import(ProcessId process, True& block) {
    const uint64_t handle = ++handle_, bytes = block.bytes;
    block.holders.emplace_back(process, handle);
    Tell(process, [=, tag = block.tag](Ledger& l) {
      ASSERT_TRUE(l.Borrow(process, handle, bytes, tag));
    });
  }
  void Free(True& block) {
    const auto at = block.holders.begin() + Pick(block.holders.size());
    const ProcessId process = at->first;
    const uint64_t handle = at->second;
    block.holders.erase(at);
    Tell(process, [=](Ledger& l) { ASSERT_TRUE(l.Release(process, handle)); });
  }
  void Die(ProcessId process) {
    for (True& block : blocks_)
      std::erase_if(block.holders,
                    [&](const auto& h) { return h.first == process; });
    Tell(process, [=](Ledger& l) { l.Close(process); });
  }
  void Step(uint64_t sizes, bool tags) {
    const ProcessId process = Pick(kProcesses);
    const auto what = Pick(20);
    if (blocks_.empty() || what < 5) {
      Make(process, 1 + Pick(sizes), tags ? ++tag_ : 0);
    } else if (what == 19) {
      Die(process);
    } else {
      True& block = blocks_[Pick(blocks_.size())];
      what < 11 ? Import(process, block) : Free(block);
    }
    std::erase_if(blocks_, [](const True& b) { return !b.Held(); });
  }
  uint64_t Truth() const {
    uint64_t sum = 0;
    for (const True& block : blocks_) sum += block.bytes;
    return sum;
  }
  uint64_t Charged() { return odd_.charged_bytes() + even_.charged_bytes(); }
  // Of what is held in one slot only.
  uint64_t TruthOnlyIn(ProcessId slot) const {
    uint64_t sum = 0;
    for (const True& b : blocks_)
      if (std::all_of(b.holders.begin(), b.holders.end(),
                      [&](const auto& h) { return h.first % 2 == slot; }))
        sum += b.bytes;
    return sum;
  }

  std::mt19937 random_{GetParam()};
  SharedBlocks shared_;
  Ledger odd_{MemoryPolicy{}, &shared_}, even_{MemoryPolicy{}, &shared_};
  std::vector<True> blocks_;
  std::deque<std::function<void(Ledger&)>> on_their_way_[kProcesses];
  bool one_slot_ = false;
  uint64_t handle_ = 0;
  uint32_t tag_ = 0;
};

TEST_P(SharedProperty, WithTagsTheSumIsExactWhenAllHasArrived) {
  for (int step = 0; step < 4000; ++step) {
    SCOPED_TRACE(absl::StrCat("seed ", GetParam(), " step ", step));
    Step(/*sizes=*/5, /*tags=*/true);
    for (auto n = Pick(3); n > 0; --n) Deliver(Pick(kProcesses));
    if (Pick(30) != 0) continue;
    DeliverAll();
    ASSERT_EQ(Charged(), Truth());
    ASSERT_EQ(shared_.size(), blocks_.size());
    ASSERT_GE(odd_.charged_bytes(), TruthOnlyIn(1));
    ASSERT_GE(even_.charged_bytes(), TruthOnlyIn(0));
  }
  for (ProcessId process = 0; process < kProcesses; ++process) Die(process);
  DeliverAll();
  EXPECT_EQ(Charged(), 0u);
  EXPECT_EQ(odd_.usage().reservations + even_.usage().reservations, 0u);
  EXPECT_EQ(shared_.size(), 0u);
}

TEST_P(SharedProperty, WithoutTagsASlotIsNeverBelowTheTruth) {
  one_slot_ = true;
  for (int step = 0; step < 4000; ++step) {
    SCOPED_TRACE(absl::StrCat("seed ", GetParam(), " step ", step));
    Step(/*sizes=*/3, /*tags=*/false);
    DeliverAll();
    ASSERT_GE(Charged(), Truth());
  }
  for (ProcessId process = 0; process < kProcesses; ++process) Die(process);
  DeliverAll();
  EXPECT_EQ(Charged(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SharedProperty, testing::Range(1u, 31u));

}  // namespace
}  // namespace rondo::share
