// SPDX-License-Identifier: Apache-2.0

#include "wire/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "wire/codec.h"

namespace rondo::wire {
namespace {

template <typename T>
std::string Bytes(const T& message) {
  return std::string(reinterpret_cast<const char*>(&message), sizeof(T));
}

std::string Hex(const std::string& spaced) {
  return absl::HexStringToBytes(absl::StrReplaceAll(spaced, {{" ", ""}}));
}

// The bytes of version 1. A change that moves one of them breaks running pods.
TEST(WireGolden, Hello) {
  auto m = Make<Hello>(1);
  m.magic = kMagic;
  m.version = kVersion;
  m.oldest = kOldestVersion;
  m.pid = 0x1234;
  strcpy(m.driver, "580.159.04");
  EXPECT_EQ(Bytes(m),
            Hex("0100 3800 01000000 526e646f 0100 0100 34120000 00000000"
                "3538302e3135392e3034 0000 0000000000000000 0000000000000000"
                "00000000"));
}

TEST(WireGolden, Welcome) {
  auto m = Make<Welcome>(2);
  m.version = 1;
  m.policy = {.limit = 1ull << 33,
              .used = 4096,
              .slice_us = 20000,
              .memory = Memory::kEnforce,
              .on_agent_loss = OnAgentLoss::kOpen,
              .managed = Managed::kIgnore,
              .cls = Class::kBatch};
  EXPECT_EQ(Bytes(m), Hex("0200 2800 02000000 0100 000000000000"
                          "0000000002000000 0010000000000000 204e0000"
                          "02 01 01 02"));
}

TEST(WireGolden, ReserveReleaseAnswer) {
  auto reserve = Make<Reserve>(3);
  reserve.id = 7;
  reserve.bytes = 0x200000;
  reserve.kind = Kind::kManaged;
  reserve.held = 1;
  EXPECT_EQ(Bytes(reserve), Hex("0300 2000 03000000 0700000000000000"
                                "0000200000000000 01 01 000000000000"));
  auto release = Make<Release>(4);
  release.id = 7;
  EXPECT_EQ(Bytes(release), Hex("0400 1000 04000000 0700000000000000"));
  auto answer = Make<Answer>(3);
  answer.verdict = Verdict::kDenied;
  answer.used = 1;
  answer.limit = 2;
  EXPECT_EQ(Bytes(answer), Hex("0500 2000 03000000 01000000 00000000"
                               "0100000000000000 0200000000000000"));
}

TEST(WireGolden, SharedBorrow) {
  auto shared = Make<Shared>(0);
  shared.id = 7;
  shared.tag = 0xcafe0001;
  EXPECT_EQ(Bytes(shared),
            Hex("0c00 1800 00000000 0700000000000000 0100feca 00000000"));
  auto borrow = Make<Borrow>(0);
  borrow.id = 8;
  borrow.bytes = 0x200000;
  borrow.tag = 0xcafe0001;
  EXPECT_EQ(Bytes(borrow), Hex("0d00 2000 00000000 0800000000000000"
                               "0000200000000000 0100feca 00000000"));
}

TEST(WireGolden, SliceAppliedChannels) {
  auto slice = Make<Slice>(9);
  slice.us = 20;
  EXPECT_EQ(Bytes(slice), Hex("0800 1000 09000000 14000000 00000000"));
  auto applied = Make<Applied>(9);
  applied.us = 20;
  applied.groups = 4;
  applied.failed = 1;
  EXPECT_EQ(Bytes(applied), Hex("0900 1000 09000000 14000000 0400 0100"));
  auto channels = Make<Channels>(0);
  channels.client = 0xc1d00001;
  channels.gone = 1;
  channels.count = 2;
  channels.handles[0] = 0x5c000010;
  channels.handles[1] = 0x5c000011;
  EXPECT_EQ(Bytes(channels).substr(0, 24),
            Hex("0700 1001 00000000 0100d0c1 0100 0200 1000005c 1100005c"));
}

TEST(WireGolden, ViewPolicyState) {
  EXPECT_EQ(Bytes(Make<View>(5)), Hex("0600 0800 05000000"));
  auto policy = Make<PolicyChange>(0);
  policy.policy.limit = 1;
  EXPECT_EQ(Bytes(policy).substr(0, 16),
            Hex("0a00 2000 00000000 0100000000000000"));
  auto state = Make<State>(0);
  state.reasons = 1;
  state.counters[1] = 2;
  EXPECT_EQ(Bytes(state).substr(0, 24),
            Hex("0b00 5000 00000000 0100000000000000 00000000 02000000"));
}

TEST(WireRead, TakesTheKnownHeadOfALongerMessage) {
  std::string bytes = Bytes(Make<Slice>(1)) + "future";
  bytes[2] = static_cast<char>(bytes.size());
  Slice out;
  EXPECT_TRUE(Read(bytes.data(), bytes.size(), &out));
}

TEST(WireRead, RefusesEveryPrefix) {
  const std::string bytes = Bytes(Make<Reserve>(1));
  for (size_t n = 0; n < bytes.size(); ++n) {
    const std::string part = bytes.substr(0, n);
    Reserve out;
    EXPECT_FALSE(Read(part.data(), part.size(), &out)) << n;
  }
}

TEST(WireRead, RefusesAnotherType) {
  const std::string bytes = Bytes(Make<Applied>(1));
  Slice out;
  EXPECT_FALSE(Read(bytes.data(), bytes.size(), &out));
}

TEST(WireRead, RefusesASizeBeyondTheDatagram) {
  std::string bytes = Bytes(Make<Slice>(1));
  bytes[2] = 17;
  Slice out;
  EXPECT_FALSE(Read(bytes.data(), bytes.size(), &out));
}

TEST(WireRead, ChecksFields) {
  auto hello = Make<Hello>(1);
  Hello hello_out;
  EXPECT_FALSE(Read(&hello, sizeof hello, &hello_out)) << "no magic";
  hello.magic = kMagic;
  hello.version = 3;
  EXPECT_TRUE(Read(&hello, sizeof hello, &hello_out));
  memset(hello.driver, 'x', sizeof hello.driver);
  EXPECT_FALSE(Read(&hello, sizeof hello, &hello_out)) << "unterminated text";

  const auto shared = Make<Shared>(1);
  Shared shared_out;
  EXPECT_FALSE(Read(&shared, sizeof shared, &shared_out)) << "no tag";
  Borrow borrow_out;
  auto borrow = Make<Borrow>(1);
  EXPECT_FALSE(Read(&borrow, sizeof borrow, &borrow_out))
      << "neither size nor tag";
  borrow.tag = 1;
  EXPECT_TRUE(Read(&borrow, sizeof borrow, &borrow_out));

  auto channels = Make<Channels>(1);
  channels.count = kMaxHandles + 1;
  Channels channels_out;
  EXPECT_FALSE(Read(&channels, sizeof channels, &channels_out));

  auto welcome = Make<Welcome>(1);
  welcome.version = kVersion + 1;
  Welcome welcome_out;
  EXPECT_FALSE(Read(&welcome, sizeof welcome, &welcome_out));
  welcome.version = kVersion;
  welcome.policy.memory = static_cast<Memory>(9);
  EXPECT_FALSE(Read(&welcome, sizeof welcome, &welcome_out));
}

TEST(WireState, EveryReasonFitsTheMask) {
  EXPECT_LE(static_cast<int>(Reason::kCount), 64);
}

}  // namespace
}  // namespace rondo::wire
