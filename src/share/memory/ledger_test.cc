// SPDX-License-Identifier: Apache-2.0
#include "share/memory/ledger.h"

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace rondo::share {
namespace {

constexpr auto kDevice = MemoryKind::kDevice;
constexpr auto kManaged = MemoryKind::kManaged;

MemoryPolicy Enforce(uint64_t limit) {
  return {.limit_bytes = limit, .enforce = true};
}

TEST(Ledger, GrantsToTheLastByteAndNotOneMore) {
  Ledger ledger(Enforce(1000));
  EXPECT_TRUE(ledger.Reserve(1, kDevice, 1, 600));
  EXPECT_FALSE(ledger.Reserve(2, kDevice, 1, 401));
  EXPECT_TRUE(ledger.Reserve(2, kDevice, 1, 400));
  EXPECT_FALSE(ledger.Reserve(2, kDevice, 2, 1));
  EXPECT_TRUE(ledger.Reserve(2, kDevice, 2, 0));
  EXPECT_EQ(ledger.charged_bytes(), 1000u);
  EXPECT_EQ(ledger.usage().denials, 2u);
}

TEST(Ledger, AnAmountThatWouldWrapIsDeniedInEveryMode) {
  Ledger enforced(Enforce(1000));
  Ledger observed({.limit_bytes = 1000, .enforce = false});
  for (Ledger* ledger : {&enforced, &observed}) {
    EXPECT_TRUE(ledger->Reserve(1, kDevice, 1, 10));
    EXPECT_FALSE(ledger->Reserve(1, kDevice, 2, ~uint64_t{0}));
    EXPECT_FALSE(ledger->Replay(1, kDevice, 2, ~uint64_t{0} - 5));
    EXPECT_EQ(ledger->charged_bytes(), 10u);
  }
}

TEST(Ledger, AClosedConnectionGivesBackAll) {
  Ledger ledger(Enforce(1000));
  EXPECT_TRUE(ledger.Reserve(1, kDevice, 1, 300));
  EXPECT_TRUE(ledger.Reserve(1, kManaged, 2, 200));
  EXPECT_TRUE(ledger.Reserve(2, kDevice, 1, 100));
  ledger.Close(1);
  EXPECT_EQ(ledger.usage().device_bytes, 100u);
  EXPECT_EQ(ledger.usage().managed_bytes, 0u);
  EXPECT_EQ(ledger.usage().reservations, 1u);
  EXPECT_EQ(ledger.usage().requests, 3u) << "only grows";
  EXPECT_FALSE(ledger.Reserve(2, kDevice, 2, 2000));
  EXPECT_EQ(ledger.usage().requests, 4u);
  ledger.Close(1);
  EXPECT_EQ(ledger.charged_bytes(), 100u);
}

TEST(Ledger, AHandleHeldAlreadyIsResized) {
  Ledger ledger(Enforce(1000));
  EXPECT_TRUE(ledger.Reserve(1, kDevice, 7, 900));
  EXPECT_TRUE(ledger.Reserve(1, kDevice, 7, 1000));
  EXPECT_FALSE(ledger.Reserve(1, kDevice, 7, 1001));
  EXPECT_EQ(ledger.charged_bytes(), 1000u);
  EXPECT_TRUE(ledger.Reserve(1, kDevice, 7, 10));
  EXPECT_EQ(ledger.charged_bytes(), 10u);
  EXPECT_EQ(ledger.usage().reservations, 1u);
}

TEST(Ledger, ALoweredLimitRevokesNothingAndDeniesUntilEnoughWent) {
  Ledger ledger(Enforce(1000));
  EXPECT_TRUE(ledger.Reserve(1, kDevice, 1, 500));
  EXPECT_TRUE(ledger.Reserve(1, kDevice, 2, 400));
  ledger.SetPolicy(Enforce(600));
  EXPECT_EQ(ledger.charged_bytes(), 900u);
  EXPECT_FALSE(ledger.Reserve(1, kDevice, 3, 1));
  EXPECT_TRUE(ledger.Reserve(1, kDevice, 1, 450)) << "shrinking is no grant";
  EXPECT_TRUE(ledger.Release(1, 1));
  EXPECT_TRUE(ledger.Reserve(1, kDevice, 3, 200));
  EXPECT_FALSE(ledger.Reserve(1, kDevice, 4, 1));
}

TEST(Ledger, ManagedMemoryIsANumberOfItsOwnWithAPolicyOfItsOwn) {
  Ledger ledger({.limit_bytes = 1000, .enforce = true, .count_managed = false});
  EXPECT_TRUE(ledger.Reserve(1, kManaged, 2, 5000));
  EXPECT_TRUE(ledger.Reserve(1, kDevice, 1, 1000));
  EXPECT_EQ(ledger.charged_bytes(), 1000u);
  EXPECT_EQ(ledger.usage().managed_bytes, 5000u);
  EXPECT_EQ(ledger.device_bytes(1), 1000u) << "the audit sees device memory";
  ledger.SetPolicy({.limit_bytes = 10'000, .enforce = true});
  EXPECT_EQ(ledger.charged_bytes(), 6000u);
}

TEST(Ledger, ReplayIsAFactEvenAboveTheLimit) {
  Ledger ledger(Enforce(100));
  EXPECT_TRUE(ledger.Replay(1, kDevice, 1, 150));
  EXPECT_EQ(ledger.charged_bytes(), 150u);
  EXPECT_FALSE(ledger.Reserve(2, kDevice, 1, 1));
  EXPECT_TRUE(ledger.Release(1, 1));
  EXPECT_TRUE(ledger.Reserve(2, kDevice, 1, 100));
}

TEST(Ledger, UnknownReleasesChangeNothing) {
  Ledger ledger(Enforce(100));
  EXPECT_FALSE(ledger.Release(1, 1));
  EXPECT_TRUE(ledger.Reserve(1, kDevice, 1, 50));
  EXPECT_FALSE(ledger.Release(1, 2));
  EXPECT_FALSE(ledger.Release(2, 1));
  EXPECT_EQ(ledger.charged_bytes(), 50u);
}

TEST(Ledger, ItsProcessesTogetherCannotHoldEndlessHandles) {
  Ledger ledger({});
  for (uint64_t i = 0; i < Ledger::kMaxReservations; ++i)
    ASSERT_TRUE(ledger.Reserve(i % 3, kDevice, i, 1));
  EXPECT_FALSE(ledger.Reserve(1, kDevice, Ledger::kMaxReservations, 0));
  EXPECT_FALSE(ledger.Replay(4, kDevice, 0, 1));
  EXPECT_FALSE(ledger.Borrow(4, 0, 1, 77));
  EXPECT_TRUE(ledger.Reserve(0, kDevice, 0, 2)) << "held already";
  EXPECT_TRUE(ledger.Release(0, 0));
  EXPECT_TRUE(ledger.Borrow(4, 0, 1, 77));
  EXPECT_FALSE(ledger.Reserve(1, kDevice, Ledger::kMaxReservations, 0));
}

TEST(Ledger, ItsProcessesTogetherCannotLendEndlessly) {
  SharedBlocks shared;
  Ledger ledger({}, &shared), other({}, &shared);
  for (uint64_t i = 0; i < Ledger::kMaxShared / 2; ++i) {
    const auto tag = static_cast<uint32_t>(i + 1);
    ASSERT_TRUE(ledger.Reserve(1, kDevice, i, 1));
    ASSERT_TRUE(ledger.Share(1, i, tag));
    ASSERT_TRUE(ledger.Borrow(2, i, 1, 1'000'000 + tag));
  }
  EXPECT_FALSE(ledger.Borrow(2, 1 << 20, 1, 77));
  EXPECT_FALSE(ledger.Borrow(2, 1 << 20, 1, 0)) << "without a tag neither";
  EXPECT_TRUE(ledger.Reserve(1, kDevice, 1 << 20, 1));
  EXPECT_FALSE(ledger.Share(1, 1 << 20, 2'000'000));
  EXPECT_TRUE(ledger.Share(1, 0, 1)) << "said again";
  EXPECT_TRUE(other.Borrow(1, 0, 1, 5'000'000)) << "another slot's business";
  EXPECT_EQ(shared.size(), Ledger::kMaxShared + 1);
  EXPECT_TRUE(ledger.Release(2, 0));
  EXPECT_TRUE(ledger.Borrow(2, 1 << 20, 1, 0));
  EXPECT_FALSE(ledger.Share(1, 1 << 20, 2'000'000));
  EXPECT_TRUE(ledger.Release(1, 0));
  EXPECT_TRUE(ledger.Share(1, 1 << 20, 2'000'000));
  EXPECT_EQ(ledger.Close(2), Ledger::kMaxShared / 2);
  EXPECT_TRUE(ledger.Borrow(2, 0, 1, 77));
}

// The naive model: a flat list of what is held, sums taken anew each time.
class Model {
 public:
  using Key = std::pair<ProcessId, uint64_t>;

  uint64_t Sum(MemoryKind kind) const {
    uint64_t sum = 0;
    for (const auto& [key, held] : held_)
      if (held.first == kind) sum += held.second;
    return sum;
  }
  uint64_t Charged(const MemoryPolicy& policy) const {
    return Sum(kDevice) + (policy.count_managed ? Sum(kManaged) : 0);
  }
  bool Reserve(const MemoryPolicy& policy, const Key& key, MemoryKind kind,
               uint64_t bytes) {
    const auto entry = held_.find(key);
    if (entry != held_.end() && entry->second.first != kind) return false;
    const uint64_t before = entry == held_.end() ? 0 : entry->second.second;
    const bool counts = kind == kDevice || policy.count_managed;
    if (policy.enforce && counts && bytes > before &&
        Charged(policy) - before + bytes > policy.limit_bytes.value_or(~0ull))
      return false;
    held_[key] = {kind, bytes};
    return true;
  }
  bool Replay(const Key& key, MemoryKind kind, uint64_t bytes) {
    return Reserve({}, key, kind, bytes);
  }
  bool Release(const Key& key) { return held_.erase(key) > 0; }
  void Close(ProcessId process) {
    std::erase_if(
        held_, [&](const auto& entry) { return entry.first.first == process; });
  }
  size_t size() const { return held_.size(); }

 private:
  std::map<Key, std::pair<MemoryKind, uint64_t>> held_;
};

class LedgerProperty : public testing::TestWithParam<uint32_t> {};

TEST_P(LedgerProperty, AgreesWithTheNaiveModelUnderAnyInterleaving) {
  std::mt19937 random(GetParam());
  const auto pick = [&](uint64_t n) { return random() % n; };
  const auto random_policy = [&] {
    return MemoryPolicy{.limit_bytes = 500 + pick(1000),
                        .enforce = pick(4) != 0,
                        .count_managed = pick(3) != 0};
  };
  MemoryPolicy policy = random_policy();
  Ledger ledger(policy);
  Model model;
  for (int step = 0; step < 3000; ++step) {
    SCOPED_TRACE(absl::StrCat("seed ", GetParam(), " step ", step));
    const ProcessId process = 1 + pick(6);
    const MemoryKind kind = pick(3) == 0 ? kManaged : kDevice;
    const uint64_t handle = pick(12);
    const Model::Key key{process, handle};
    const uint64_t charged_before = ledger.charged_bytes();
    const auto what = pick(20);
    if (what < 11) {
      const uint64_t bytes = pick(300);
      const bool granted = ledger.Reserve(process, kind, handle, bytes);
      ASSERT_EQ(granted, model.Reserve(policy, key, kind, bytes));
      // The rule itself, said apart from the model.
      if (granted && policy.enforce &&
          ledger.charged_bytes() > charged_before) {
        ASSERT_LE(ledger.charged_bytes(), *policy.limit_bytes);
      }
    } else if (what < 17) {
      ASSERT_EQ(ledger.Release(process, handle), model.Release(key));
    } else if (what == 17) {
      ledger.Close(process);
      model.Close(process);
    } else if (what == 18) {
      const uint64_t bytes = pick(300);
      ASSERT_EQ(ledger.Replay(process, kind, handle, bytes),
                model.Replay(key, kind, bytes));
    } else {
      policy = random_policy();
      ledger.SetPolicy(policy);
    }
    ASSERT_EQ(ledger.usage().device_bytes, model.Sum(kDevice));
    ASSERT_EQ(ledger.usage().managed_bytes, model.Sum(kManaged));
    ASSERT_EQ(ledger.usage().reservations, model.size());
    ASSERT_EQ(ledger.charged_bytes(), model.Charged(policy));
  }
  for (ProcessId process = 1; process <= 6; ++process) ledger.Close(process);
  EXPECT_EQ(ledger.charged_bytes(), 0u);
  EXPECT_EQ(ledger.usage().reservations, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LedgerProperty, testing::Range(1u, 41u));

}  // namespace
}  // namespace rondo::share
