// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/pacer.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>

#include "gtest/gtest.h"

namespace rondo::sim::driver {
namespace {

// A program that a processor could run at any time.
class Spinning {
 public:
  Spinning() : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (std::atomic<int> turns{0};;) ++turns;
  }
  ~Spinning() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  uint32_t pid() const { return static_cast<uint32_t>(pid_); }
  void Stop() {
    kill(pid_, SIGSTOP);
    ASSERT_EQ(waitpid(pid_, nullptr, WUNTRACED), pid_);
  }

 private:
  const pid_t pid_;
};

class PacerTest : public testing::Test {
 protected:
  PacerTest() {
    const auto memory = SharedMemory::Create(sizeof(GroupPage));
    page_ = memory->As<GroupPage>();
    card_.AddGroup(program_.pid(), 0, 2'048'000, memory);
    // One of its threads was woken, and has work to do before it waits again.
    page_->waiters[0].coupled = 1;
    page_->waiters[0].state = kWaiterHolding;
    pacer_.CatchUp();
  }
  bool HeldAfter(int64_t ns) {
    clock_.Advance(std::chrono::nanoseconds(ns));
    pacer_.CatchUp();
    return page_->waiters[0].state == kWaiterHolding;
  }

  Spinning program_;
  GroupPage* page_ = nullptr;
  Card card_{{}};
  ManualClock clock_;
  Pacer pacer_{{&card_}, SharedMemory::Create(sizeof(Doorbell)), clock_};
};

TEST_F(PacerTest, WaitsForAProgramThatGetsNoProcessor) {
  EXPECT_TRUE(HeldAfter(Pacer::kHoldNs));
  EXPECT_TRUE(HeldAfter(Pacer::kLongestHoldNs - Pacer::kHoldNs - 1));
  EXPECT_EQ(card_.now(), 0) << "time stands still";
}

TEST_F(PacerTest, WaitsNotForEver) {
  EXPECT_FALSE(HeldAfter(Pacer::kLongestHoldNs));
  EXPECT_GT(card_.now(), 0);
}

TEST_F(PacerTest, WaitsAMomentForAProgramThatWasStopped) {
  program_.Stop();
  EXPECT_TRUE(HeldAfter(Pacer::kHoldNs - 1));
  EXPECT_FALSE(HeldAfter(1));
  EXPECT_GT(card_.now(), 0);
}

}  // namespace
}  // namespace rondo::sim::driver
