// SPDX-License-Identifier: Apache-2.0
#include "base/ending.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

#include "base/signals.h"
#include "gtest/gtest.h"

namespace rondo {
namespace {

constexpr std::chrono::milliseconds kShort{1};
constexpr std::chrono::hours kLong{1};

[[noreturn]] void Hang() {
  for (;;) pause();
}

TEST(EndingDeathTest, SaysWhichCallItDidNotWaitFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        CallsInFlight calls;
        { const CallsInFlight::Scope done(&calls, "a call that returned"); }
        const CallsInFlight::Scope hangs(&calls, "a call that hangs");
        Ending ending(calls, UniqueFd(), nullptr, kShort);
        ending.Begin(7);
        ending.Begin(8);
        Hang();
      },
      testing::ExitedWithCode(7),
      "ending without having waited for a call that hangs \\(for .* s\\)\n");
}

TEST(EndingDeathTest, BeginsAtASignalThoughNobodyElseLooks) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        CallsInFlight calls;
        Ending ending(
            calls, *WatchedSignals({SIGHUP, SIGTERM}),
            [](int signal) -> std::optional<int> {
              if (signal == SIGHUP) return std::nullopt;
              return 7;
            },
            kShort);
        kill(getpid(), SIGHUP);
        kill(getpid(), SIGTERM);
        Hang();
      },
      testing::ExitedWithCode(7), "without having waited for all threads");
}

TEST(CallsInFlight, AreThoseThatBeganByThen) {
  CallsInFlight calls;
  const CallsInFlight::Scope first(&calls, "first");
  const MonotonicTime then = RealClock().Now();
  EXPECT_EQ(calls.Since(then).size(), 1u);
  EXPECT_EQ(calls.Since(then)[0].what, "first");
  EXPECT_TRUE(calls.Since(then - kLong).empty());
  const CallsInFlight::Scope nobodys(nullptr, "not noted");
  EXPECT_EQ(calls.Since(then + kLong).size(), 1u);
}

TEST(Ending, TellsSignalsUntilTheEndBeginsAndLetsAnOrderlyEndBe) {
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  CallsInFlight calls;
  std::promise<void> hup, term;
  {
    Ending ending(
        calls, *WatchedSignals({SIGHUP, SIGTERM}),
        [&](int signal) -> std::optional<int> {
          (signal == SIGHUP ? hup : term).set_value();
          if (signal == SIGHUP) return std::nullopt;
          return 0;
        },
        kLong);
    kill(getpid(), SIGHUP);
    hup.get_future().wait();
    kill(getpid(), SIGTERM);
    term.get_future().wait();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace rondo
