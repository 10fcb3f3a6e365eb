// SPDX-License-Identifier: Apache-2.0
#include "base/event_loop.h"

#include <sys/socket.h>

#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace rondo {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(EventLoop, PostedTasksRunInOrderAndStopEnds) {
  EventLoop loop;
  std::string order;
  std::thread poster([&] {
    for (char c : {'a', 'b', 'c'}) loop.Post([&order, c] { order += c; });
    loop.Stop();
  });
  loop.Run();
  poster.join();
  EXPECT_EQ(order, "abc");
}

TEST(EventLoop, TimersFollowTheClockAndCanBeCancelled) {
  ManualClock clock;
  EventLoop loop(clock);
  std::string fired;
  loop.RunAfter(seconds(2), [&] { fired += '2'; });
  loop.RunAfter(seconds(1), [&] { fired += '1'; });
  const auto cancelled = loop.RunAfter(seconds(1), [&] { fired += 'x'; });
  loop.CancelTimer(cancelled);
  loop.RunOnce(milliseconds(0));
  EXPECT_EQ(fired, "");
  clock.Advance(seconds(3));
  loop.RunOnce(milliseconds(0));
  EXPECT_EQ(fired, "12");
}

TEST(EventLoop, ATimerThatRearmsItselfDoesNotStarveTheRest) {
  ManualClock clock;
  EventLoop loop(clock);
  int runs = 0;
  std::function<void()> again = [&] {
    ++runs;
    loop.RunAfter(milliseconds(0), again);
  };
  loop.RunAfter(milliseconds(0), again);
  loop.RunOnce(milliseconds(0));
  EXPECT_EQ(runs, 1);
}

TEST(EventLoop, AWatchMayRemoveItself) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  UniqueFd ours(fds[0]), theirs(fds[1]);
  EventLoop loop;
  int calls = 0;
  ASSERT_TRUE(loop.Watch(ours.get(),
                         [&] {
                           ++calls;
                           loop.Unwatch(ours.get());
                         })
                  .ok());
  ASSERT_EQ(write(theirs.get(), "x", 1), 1);
  loop.RunOnce(seconds(5));
  loop.RunOnce(milliseconds(0));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace rondo
