// SPDX-License-Identifier: Apache-2.0
//
// NVML's samples made into reports, and when they are asked for.
#include "activity/feed.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "activity/usage_sampler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nvml/test_backend.h"
#include "rm/test_driver.h"

namespace rondo::activity {
namespace {

using nvml::FakeBackend;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr char kGpu[] = "GPU-0";

class UsageSamplerTest : public testing::Test {
 protected:
  // At so many ms after the start.
  std::optional<Usage> Poll(int64_t ms) {
    auto sample = sampler_.Poll(nvml_, kGpu,
                                {.wall_us = kStartUs + ms * 1000 + jump_us_,
                                 .monotonic = milliseconds(ms)});
    EXPECT_TRUE(sample.ok()) << sample.status();
    return sample.value_or(std::nullopt);
  }
  static nvml::ProcessSample At(int64_t ms, uint32_t pid, int percent) {
    return {.pid = pid,
            .time_us = static_cast<uint64_t>(kStartUs + ms * 1000),
            .sm_percent = percent};
  }

  static constexpr int64_t kStartUs = 1'800'000'000'000'000;
  FakeBackend nvml_;
  UsageSampler sampler_;
  int64_t jump_us_ = 0;
};

TEST_F(UsageSamplerTest, ReportsFollowEachOther) {
  nvml_.SetSamples(kGpu, {At(-100, 9, 50), At(900, 7, 40), At(900, 8, 0)});
  EXPECT_FALSE(Poll(0)) << "what was before is nobody's business";
  const auto first = Poll(1000);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->ended, milliseconds(900));
  EXPECT_EQ(first->interval, milliseconds(900));
  ASSERT_EQ(first->runs.size(), 1u) << "less than a percent is nothing";
  EXPECT_EQ(first->runs[0].pid, 7);
  EXPECT_EQ(first->runs[0].busy_us, 360'000);
  EXPECT_FALSE(Poll(1250)) << "nothing new";
  // Two samples since: the average of those that name the process.
  nvml_.SetSamples(kGpu, {At(900, 7, 40), At(1100, 7, 20), At(1300, 7, 60),
                          At(1300, 8, 10)});
  const auto second = Poll(1500);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->interval, milliseconds(400));
  ASSERT_EQ(second->runs.size(), 2u);
  EXPECT_EQ(second->runs[0].busy_us, 160'000);
  EXPECT_EQ(second->runs[1].busy_us, 40'000);
}

TEST_F(UsageSamplerTest, NobodyForAWholeSampleIsAReport) {
  nvml_.SetSamples(kGpu, {At(500, 7, 40)});
  Poll(0);
  ASSERT_TRUE(Poll(600));
  EXPECT_FALSE(Poll(1900)) << "one may have just ended";
  const auto empty = Poll(2100);
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->runs.empty());
  EXPECT_EQ(empty->ended, milliseconds(1500));
  EXPECT_EQ(empty->interval, milliseconds(1000));
  EXPECT_FALSE(Poll(2350));
  // Somebody again: no more than a second is told of.
  nvml_.SetSamples(kGpu, {At(2800, 7, 40)});
  const auto again = Poll(2900);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->interval, milliseconds(1000));
}

TEST_F(UsageSamplerTest, AClockThatIsSetIsNoReport) {
  nvml_.SetSamples(kGpu, {});
  Poll(0);
  jump_us_ = 3'600'000'000;
  EXPECT_FALSE(Poll(250)) << "an hour of nobody";
  EXPECT_FALSE(Poll(500));
  jump_us_ = 0;
  EXPECT_FALSE(Poll(750));
  nvml_.SetSamples(kGpu, {At(1000, 7, 40)});
  EXPECT_TRUE(Poll(1100));
}

TEST_F(UsageSamplerTest, AGpuThatDoesNotTellIsAnError) {
  EXPECT_FALSE(Poll(0));
  const auto failed = sampler_.Poll(
      nvml_, kGpu,
      {.wall_us = kStartUs + 250'000, .monotonic = milliseconds(250)});
  EXPECT_TRUE(absl::IsUnimplemented(failed.status())) << failed.status();
}

class FeedTest : public testing::Test {
 protected:
  void StartFeed(bool other_users = false) {
    feed_.emplace(
        loop_, driver_,
        [this]() -> absl::StatusOr<std::shared_ptr<nvml::Backend>> {
          ++opens_;
          return nvml_;
        },
        [this](const std::string& uuid, const Usage& usage) {
          OnUsage(uuid, usage);
        },
        Feed::Options{.sample_interval = milliseconds(2),
                      .retry_log = milliseconds(2),
                      .other_users = other_users});
    feed_->SetInterval(kGpu, milliseconds(5));
    feed_->SetInterval("MIG-0", milliseconds(5));
  }
  void OnUsage(const std::string& uuid, const Usage& usage) {
    EXPECT_EQ(uuid, kGpu);
    last_ = usage.source;
    ++count_;
    if (usage.source == Source::kSampling && !usage.runs.empty())
      sampled_pid_ = usage.runs[0].pid;
  }
  // Runs the loop until the next reports are of this source only.
  bool Until(Source source) {
    const MonotonicTime end = RealClock().Now() + std::chrono::seconds(20);
    while (RealClock().Now() < end) {
      last_.reset();
      const int before = count_;
      bool other = false;
      while (count_ < before + 5 && RealClock().Now() < end) {
        // Somebody runs all the time.
        nvml_->SetSamples(
            kGpu,
            {{.pid = 7,
              .time_us = static_cast<uint64_t>(UsageSampler::RealNow().wall_us),
              .sm_percent = 40}});
        loop_.RunOnce(milliseconds(10));
        other |= last_ && *last_ != source;
      }
      if (!other) return last_.has_value();
    }
    return false;
  }
  void SetLog(uint32_t bind, uint32_t flush) {
    const std::lock_guard lock(driver_.mutex);
    driver_.bind_status = bind;
    driver_.flush_status = flush;
  }

  EventLoop loop_;
  rm::TestDriver driver_;
  std::optional<Source> last_;
  int count_ = 0;
  int32_t sampled_pid_ = 0;
  std::shared_ptr<FakeBackend> nvml_ = std::make_shared<FakeBackend>();
  std::atomic<int> opens_{0};
  std::optional<Feed> feed_;
};

constexpr uint32_t kNoPermission = 0x1b;

TEST_F(FeedTest, WhereTheLogIsReadNvmlIsNotAsked) {
  StartFeed();
  EXPECT_TRUE(Until(Source::kSwitchLog));
  EXPECT_EQ(opens_, 0);
}

TEST_F(FeedTest, SamplesFromTheFailureUntilTheLogOpens) {
  SetLog(kNoPermission, rm::kOk);
  StartFeed();
  EXPECT_TRUE(Until(Source::kSampling));
  EXPECT_EQ(sampled_pid_, 7);
  EXPECT_EQ(opens_, 1);
  SetLog(rm::kOk, rm::kOk);
  EXPECT_TRUE(Until(Source::kSwitchLog));
  SetLog(kNoPermission, kNoPermission);
  EXPECT_TRUE(Until(Source::kSampling));
  SetLog(rm::kOk, rm::kOk);
  EXPECT_TRUE(Until(Source::kSwitchLog));
  EXPECT_EQ(opens_, 1) << "once";
}

TEST_F(FeedTest, ALogThatHidesTenantsIsNotRead) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3,
                                  .pid = 0};
  __user_cap_data_struct before[_LINUX_CAPABILITY_U32S_3] = {};
  ASSERT_EQ(syscall(SYS_capget, &header, before), 0);
  __user_cap_data_struct less[] = {before[0], before[1]};
  less[0].effective &= ~CAP_TO_MASK(CAP_SYS_ADMIN);
  ASSERT_EQ(syscall(SYS_capset, &header, less), 0);
  for (const bool other_users : {true, false}) {
    StartFeed(other_users);
    EXPECT_TRUE(Until(other_users ? Source::kSampling : Source::kSwitchLog));
    feed_.reset();
  }
  ASSERT_EQ(syscall(SYS_capset, &header, before), 0);
}

TEST_F(FeedTest, WithoutADriverThereAreSamplesAllTheSame) {
  driver_.absent = true;
  StartFeed();
  EXPECT_TRUE(Until(Source::kSampling));
}

}  // namespace
}  // namespace rondo::activity
