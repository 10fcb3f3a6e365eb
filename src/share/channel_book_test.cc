// SPDX-License-Identifier: Apache-2.0
#include "share/channel_book.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <initializer_list>
#include <map>
#include <vector>

#include "share/memory/ledger.h"
#include "share/slot_server.h"
#include "wire/codec.h"

namespace rondo::share {
namespace {

using Verdict = ChannelBook::Verdict;

wire::Channels Message(uint32_t client, std::initializer_list<uint32_t> handles,
                       bool gone = false) {
  auto message = wire::Make<wire::Channels>(0);
  message.client = client;
  message.gone = gone ? 1 : 0;
  for (const uint32_t handle : handles)
    message.handles[message.count++] = handle;
  return message;
}

class ChannelBookTest : public testing::Test {
 protected:
  Verdict Come(ProcessId process, uint32_t client,
               std::initializer_list<uint32_t> handles) {
    return book_.Note(process, Message(client, handles), &channels_[process]);
  }
  Verdict Go(ProcessId process, uint32_t client,
             std::initializer_list<uint32_t> handles) {
    return book_.Note(process, Message(client, handles, /*gone=*/true),
                      &channels_[process]);
  }

  ChannelBook book_;
  std::map<ProcessId, std::vector<rm::Channel>> channels_;
};

TEST_F(ChannelBookTest, ChannelsComeOnceAndGo) {
  book_.Add(1, "G::0", 7, 100);
  EXPECT_EQ(Come(1, 0xc1, {5, 6}), Verdict::kNoted);
  EXPECT_EQ(Come(1, 0xc1, {6}), Verdict::kNoted);
  EXPECT_EQ(Come(1, 0xc2, {6}), Verdict::kNoted);
  EXPECT_EQ(channels_[1].size(), 3u);
  EXPECT_EQ(Go(1, 0xc1, {5, 9}), Verdict::kNoted);
  ASSERT_EQ(channels_[1].size(), 2u);
  EXPECT_EQ(channels_[1][0].client, 0xc1u);
  EXPECT_EQ(channels_[1][0].handle, 6u);
}

TEST_F(ChannelBookTest, AClientIsOfItsSlotOrProcess) {
  book_.Add(1, "G::0", 7, 100);
  book_.Add(2, "G::0", 8, 100);  // the same slot
  book_.Add(3, "H::0", 7, 100);  // the same process
  book_.Add(4, "G::1", 9, 100);
  book_.Add(5, "G::2", 0, 100);  // pids that are not known are not the same
  book_.Add(6, "G::3", 0, 100);
  EXPECT_EQ(Come(1, 0xc1, {5}), Verdict::kNoted);
  EXPECT_EQ(Come(2, 0xc1, {5}), Verdict::kNoted);
  EXPECT_EQ(Come(3, 0xc1, {5}), Verdict::kNoted);
  EXPECT_EQ(Come(4, 0xc1, {5}), Verdict::kForeign);
  EXPECT_EQ(Go(4, 0xc1, {5}), Verdict::kForeign);
  EXPECT_TRUE(channels_[4].empty());
  EXPECT_EQ(Come(5, 0xc5, {5}), Verdict::kNoted);
  EXPECT_EQ(Come(6, 0xc5, {5}), Verdict::kForeign);
}

TEST_F(ChannelBookTest, APidThatIsUsedAgainIsAnotherProcess) {
  book_.Add(1, "G::0", 7, 100);
  book_.Add(2, "G::1", 7, 101);
  book_.Add(3, "G::2", 7, 0);  // not known
  book_.Add(4, "G::3", 7, 0);
  book_.Add(5, "H::0", 7, 100);
  EXPECT_EQ(Come(1, 0xc1, {5}), Verdict::kNoted);
  EXPECT_EQ(Come(2, 0xc1, {5}), Verdict::kForeign);
  EXPECT_EQ(Come(3, 0xc1, {5}), Verdict::kForeign);
  EXPECT_EQ(Come(3, 0xc3, {5}), Verdict::kNoted);
  EXPECT_EQ(Come(4, 0xc3, {5}), Verdict::kForeign);
  EXPECT_EQ(Come(5, 0xc1, {5}), Verdict::kNoted);
}

TEST_F(ChannelBookTest, AClientIsNobodysOnceAllWhoNamedItAreGone) {
  book_.Add(1, "G::0", 7, 100);
  book_.Add(2, "G::0", 8, 100);
  book_.Add(3, "G::1", 9, 100);
  EXPECT_EQ(Come(1, 0xc1, {5}), Verdict::kNoted);
  EXPECT_EQ(Come(2, 0xc1, {6}), Verdict::kNoted);
  EXPECT_EQ(Go(1, 0xc1, {5}), Verdict::kNoted);
  EXPECT_EQ(Come(3, 0xc1, {5}), Verdict::kForeign);
  book_.Remove(2);
  EXPECT_EQ(Come(3, 0xc1, {5}), Verdict::kNoted);
  EXPECT_EQ(Come(1, 0xc1, {5}), Verdict::kForeign);
}

TEST_F(ChannelBookTest, TheProcessesOfASlotHaveSoManyTogether) {
  constexpr size_t kEach = ChannelBook::kMaxChannels;
  ProcessId last = 0;
  for (size_t all = 0; all < ChannelBook::kMaxSlotChannels; ++all) {
    if (all % kEach == 0) book_.Add(++last, "G::0", 7, 100);
    ASSERT_EQ(Come(last, 0xc1, {static_cast<uint32_t>(all)}), Verdict::kNoted);
  }
  book_.Add(last + 1, "G::0", 8, 100);
  book_.Add(last + 2, "G::1", 9, 100);
  EXPECT_EQ(Come(last + 1, 0xc2, {1}), Verdict::kSlotFull);
  EXPECT_TRUE(channels_[last + 1].empty());
  EXPECT_EQ(Come(last + 2, 0xc2, {1}), Verdict::kNoted) << "not that client's";
  EXPECT_EQ(Go(last, 0xc1, {ChannelBook::kMaxSlotChannels - 1}),
            Verdict::kNoted);
  EXPECT_EQ(Come(last + 1, 0xc3, {1, 2}), Verdict::kSlotFull);
  EXPECT_EQ(channels_[last + 1].size(), 1u) << "as far as there is room";
  book_.Remove(1);
  EXPECT_EQ(Come(last + 1, 0xc3, {2, 3}), Verdict::kNoted);
}

// All that the processes of a slot can say, in what is dearest to keep. (The
// sanitizers' allocators do not count.)
TEST(SlotBounds, ASlotTakesNoMoreThan64MB) {
  const size_t before = mallinfo2().uordblks;
  SharedBlocks shared;
  Ledger ledger({}, &shared);
  ChannelBook book;
  std::map<ProcessId, std::vector<rm::Channel>> channels;
  for (ProcessId id = 0; id < SlotServer::kMaxConnections; ++id) {
    book.Add(id, "G::0", 7, 100);
    Verdict verdict = Verdict::kNoted;
    for (uint32_t i = 0; verdict == Verdict::kNoted; ++i) {
      const auto client = static_cast<uint32_t>(id << 8 | i);
      auto message = Message(client, {});
      message.count = 16;
      for (uint32_t h = 0; h < 16; ++h) message.handles[h] = h;
      if (i + 1 == ChannelBook::kMaxClients) break;
      verdict = book.Note(id, message, &channels[id]);
    }
  }
  // Each of a size and a tag of its own.
  uint64_t size = 0;
  while (ledger.Borrow(size % 1024, size, size + 1,
                       static_cast<uint32_t>(size + 1)))
    ++size;
  EXPECT_GE(size, uint64_t{1} << 16);
  while (ledger.Reserve(size % 1024, MemoryKind::kDevice, size, size + 1))
    ++size;
  EXPECT_EQ(size, Ledger::kMaxReservations) << "real programs hold that many";
  const size_t taken = mallinfo2().uordblks - before;
  EXPECT_LT(taken, size_t{64'000'000});
}

TEST_F(ChannelBookTest, ThereIsAnEndToIt) {
  book_.Add(1, "G::0", 7, 100);
  for (uint32_t i = 0; i < ChannelBook::kMaxClients; ++i)
    ASSERT_EQ(Come(1, 1000 + i, {1}), Verdict::kNoted);
  EXPECT_EQ(Come(1, 1, {1}), Verdict::kTooMany);
  EXPECT_EQ(Go(1, 1, {1}), Verdict::kNoted) << "of nothing";
  for (uint32_t i = ChannelBook::kMaxClients; i < ChannelBook::kMaxChannels;
       ++i)
    ASSERT_EQ(Come(1, 1000, {1 + i}), Verdict::kNoted);
  EXPECT_EQ(Come(1, 1000, {0xffff}), Verdict::kTooMany);
  EXPECT_EQ(channels_[1].size(), ChannelBook::kMaxChannels);
}

}  // namespace
}  // namespace rondo::share
