// SPDX-License-Identifier: Apache-2.0
#include "share/time/suspensions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace rondo::share {
namespace {

// The driver as measured: all or none, counted, never below zero.
class Driver {
 public:
  absl::Status operator()(bool suspend, const std::vector<rm::Channel>& list) {
    ++calls;
    EXPECT_LE(list.size(), rm::kMostChannels);
    if (refuse) return absl::InternalError("refused");
    for (const rm::Channel& c : list)
      if (gone.contains(c.handle)) return absl::NotFoundError("no channel");
    for (const rm::Channel& c : list) Add(c.handle, suspend ? 1 : -1);
    return absl::OkStatus();
  }
  void Add(uint32_t handle, int by) {
    counts[handle] = std::max(0, counts[handle] + by);
    EXPECT_LE(counts[handle], 1) << "channel " << handle;
  }
  Suspensions::Call call() {
    return [this](bool suspend, const std::vector<rm::Channel>& list) {
      return (*this)(suspend, list);
    };
  }

  std::map<uint32_t, int> counts;
  std::set<uint32_t> gone;
  bool refuse = false;
  int calls = 0;
};

std::vector<rm::Channel> List(uint32_t from, uint32_t to) {
  std::vector<rm::Channel> list;
  for (uint32_t i = from; i < to; ++i) list.push_back({1, i});
  return list;
}

TEST(Suspensions, TwiceSuspendedIsOnceSuspended) {
  Driver driver;
  Suspensions suspensions;
  const Suspensions::Channels two = {{1, List(0, 20)}, {2, List(20, 40)}};
  EXPECT_TRUE(suspensions.Switch(true, two, driver.call()).at(2).ok());
  EXPECT_EQ(driver.calls, 1) << "both in one";
  // A false alarm, a lost answer: asked again.
  EXPECT_TRUE(suspensions.Switch(true, two, driver.call()).at(1).ok());
  EXPECT_EQ(driver.counts[0], 1);
  EXPECT_TRUE(suspensions.Switch(false, two, driver.call()).at(1).ok());
  EXPECT_EQ(driver.counts[0] + driver.counts[39], 0);
}

TEST(Suspensions, SomebodyElseResumedIt) {
  Driver driver;
  Suspensions suspensions;
  suspensions.Switch(true, {{1, List(0, 4)}}, driver.call());
  for (uint32_t i = 0; i < 4; ++i) driver.Add(i, -1);
  suspensions.Switch(true, {{1, List(0, 4)}}, driver.call());
  EXPECT_EQ(driver.counts[3], 1);
}

TEST(Suspensions, NewChannelsOfASuspendedProcess) {
  Driver driver;
  Suspensions suspensions;
  suspensions.Switch(true, {{1, List(0, 4)}}, driver.call());
  suspensions.Switch(true, {{1, List(2, 9)}}, driver.call());
  EXPECT_EQ(driver.counts[3], 1);
  EXPECT_EQ(driver.counts[8], 1);
  suspensions.Switch(false, {{1, List(2, 9)}}, driver.call());
  EXPECT_EQ(driver.counts[3] + driver.counts[8], 0);
}

TEST(Suspensions, ADyingProcessKeepsNobodyFromBeingSwitched) {
  Driver driver;
  driver.gone = {3};
  Suspensions suspensions;
  const auto results = suspensions.Switch(
      true, {{1, List(0, 4)}, {2, List(10, 14)}}, driver.call());
  EXPECT_FALSE(results.at(1).ok());
  EXPECT_TRUE(results.at(2).ok());
  EXPECT_EQ(driver.counts[0], 0);
  EXPECT_EQ(driver.counts[10], 1);
}

TEST(Suspensions, MoreChannelsThanACallTakesAndADriverThatRefuses) {
  Driver driver;
  Suspensions suspensions;
  const Suspensions::Channels channels = {{1, List(0, 150)},
                                          {2, List(200, 210)}};
  EXPECT_TRUE(suspensions.Switch(true, channels, driver.call()).at(1).ok());
  EXPECT_EQ(driver.calls, 4);
  driver.refuse = true;
  EXPECT_FALSE(suspensions.Switch(true, channels, driver.call()).at(1).ok());
  EXPECT_FALSE(suspensions.Switch(false, channels, driver.call()).at(1).ok());
  driver.refuse = false;
  EXPECT_TRUE(suspensions.Switch(false, channels, driver.call()).at(1).ok());
  EXPECT_EQ(driver.counts[149] + driver.counts[209], 0);
}

// Whatever was asked and whatever failed: once calls succeed again, the last
// word holds and nobody is suspended twice.
TEST(Suspensions, AnySequence) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Driver driver;
    Suspensions suspensions;
    bool suspend = false;
    Suspensions::Channels channels;
    for (int step = 0; step < 20; ++step) {
      driver.refuse = random() % 4 == 0;
      if (random() % 8 == 0) driver.Add(random() % 100, -1);
      suspend = random() % 2 == 0;
      channels[random() % 3].push_back(
          {1, 1000u + static_cast<uint32_t>(step)});
      // A channel that leaves the list is freed.
      channels[3] = List(random() % 50, 50 + random() % 50);
      for (uint32_t i = 0; i < 100; ++i)
        if (i < channels[3].front().handle || i > channels[3].back().handle)
          driver.counts.erase(i);
      suspensions.Switch(suspend, channels, driver.call());
    }
    driver.refuse = false;
    suspensions.Switch(suspend, channels, driver.call());
    for (const auto& [process, list] : channels)
      for (const rm::Channel& channel : list)
        EXPECT_EQ(driver.counts[channel.handle], suspend ? 1 : 0);
  }
}

}  // namespace
}  // namespace rondo::share
