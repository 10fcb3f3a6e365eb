// SPDX-License-Identifier: Apache-2.0
#include "agent/pod_feed.h"

#include <deque>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "demo/stand_in_pod_apis.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::agent {
namespace {

using metrics::PodSource;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class PodFeedTest : public testing::Test {
 protected:
  // idle: asks only when poked, while nothing is held.
  void Start(bool idle) {
    PodFeed::Options options;
    options.kubelet = {.pod_resources_socket = dir_.path() + "/holders",
                       .pods_api_socket = dir_.path() + "/pods"};
    options.period = milliseconds(5);
    options.device_plugin_dir = dir_.path();
    if (idle) {
      options.idle_after = milliseconds(0);
      options.idle_period = std::chrono::hours(1);
    }
    feed_ = std::make_unique<PodFeed>(options, [this](const PodReport& report) {
      std::lock_guard lock(mutex_);
      reports_.push_back(report);
      changed_.notify_all();
    });
  }
  // The next report; an empty one, of number 999, after 10 s.
  PodReport Next() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10),
                      [this] { return !reports_.empty(); });
    if (reports_.empty()) return {.number = 999};
    PodReport report = reports_.front();
    reports_.pop_front();
    return report;
  }

  TempDir dir_ = *TempDir::Create("rondo-feed");
  demo::StandInPodApis kubelet_{dir_.path() + "/holders",
                                dir_.path() + "/pods"};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<PodReport> reports_;
  std::unique_ptr<PodFeed> feed_;  // first to go: it calls back
};

TEST_F(PodFeedTest, TellsWhatChangedAndOnlyThat) {
  kubelet_.ServeHolders(true);
  kubelet_.ServePods(true);
  kubelet_.Hold("a", {"GPU-a::0", "whole"});
  kubelet_.Hold("b", {});
  kubelet_.SetPod("a", {{"rondo/weight", "2"}, {"other", "x"}});
  Start(/*idle=*/false);
  PodReport report = Next();
  EXPECT_EQ(report.source, PodSource::kPodsApi);
  ASSERT_TRUE(report.holders);
  ASSERT_EQ(report.holders->size(), 1u);
  EXPECT_EQ(report.holders->at(0).pod, "a");
  EXPECT_THAT(report.holders->at(0).device_ids, ElementsAre("GPU-a::0"));
  ASSERT_EQ(report.pods.size(), 1u);
  EXPECT_THAT(report.pods[0].annotations,
              ElementsAre(Pair("rondo/weight", "2")));
  // It goes on asking; what is not ours changes nothing.
  kubelet_.SetPod("a", {{"rondo/weight", "2"}, {"other", "y"}});
  feed_->Poke();
  const PodReport same = Next();
  EXPECT_EQ(same.number, 1u);
  EXPECT_EQ(same.pods, report.pods);
  kubelet_.SetPod("a", {{"rondo/weight", "3"}});
  report = Next();
  EXPECT_THAT(report.pods.at(0).annotations,
              ElementsAre(Pair("rondo/weight", "3")));
}

// Init containers stand in kubelet's checkpoint only, which also names pods
// that have ended.
TEST_F(PodFeedTest, ContainersThatKubeletDoesNotListAreRead) {
  kubelet_.ServeHolders(true);
  kubelet_.ServePods(true);
  for (const char* pod : {"a", "b"}) kubelet_.SetPod(pod, {});
  kubelet_.End("b");
  const std::string checkpoint = dir_.path() + "/kubelet_internal_checkpoint";
  ASSERT_TRUE(WriteFileAtomically(checkpoint, R"({"Data":{"PodDeviceEntries":[
      {"PodUID":"a-uid","ContainerName":"init","ResourceName":"r",
       "DeviceIDs":{"-1":["GPU-a::0","whole"]}},
      {"PodUID":"a-uid","ContainerName":"other","ResourceName":"r",
       "DeviceIDs":{"-1":["whole"]}},
      {"PodUID":"b-uid","ContainerName":"init","ResourceName":"r",
       "DeviceIDs":{"-1":["GPU-a::1"]}},
      {"PodUID":"gone","ContainerName":"init","ResourceName":"r",
       "DeviceIDs":{"-1":["GPU-a::2"]}}]}})")
                  .ok());
  Start(/*idle=*/false);
  PodReport report = Next();
  ASSERT_EQ(report.recorded.size(), 1u);
  EXPECT_EQ(report.recorded[0].uid, "a-uid");
  EXPECT_EQ(report.recorded[0].container, "init");
  EXPECT_THAT(report.recorded[0].device_ids, ElementsAre("GPU-a::0"));
  // A record that cannot be read is none, and hides nothing else.
  ASSERT_TRUE(WriteFileAtomically(checkpoint, "no JSON").ok());
  report = Next();
  EXPECT_THAT(report.recorded, IsEmpty());
  EXPECT_TRUE(report.holders);
}

TEST_F(PodFeedTest, NobodysPodsHideTheOthers) {
  kubelet_.ServeHolders(true);
  kubelet_.ServePods(true);
  kubelet_.Hold("a", {"GPU-a::0"});
  kubelet_.SetPod("a", {{"rondo/weight", "2"}});
  // More than one answer may be.
  for (int i = 0; i < 160; ++i)
    kubelet_.SetPod(absl::StrCat("b", i),
                    {{"other", std::string(256 << 10, 'x')}});
  Start(/*idle=*/false);
  PodReport report = Next();
  EXPECT_EQ(report.source, PodSource::kPodsApi) << report.pods_problem;
  ASSERT_EQ(report.pods.size(), 161u);
  EXPECT_THAT(report.pods[0].annotations,
              ElementsAre(Pair("rondo/weight", "2")));
  kubelet_.SetPod("a", {{"rondo/weight", "3"}});
  report = Next();
  EXPECT_THAT(report.pods.at(0).annotations,
              ElementsAre(Pair("rondo/weight", "3")));
}

TEST_F(PodFeedTest, WhileNothingIsHeldItAsksWhenPoked) {
  kubelet_.ServeHolders(true);
  kubelet_.ServePods(true);
  Start(/*idle=*/true);
  EXPECT_THAT(*Next().holders, IsEmpty());
  EXPECT_EQ(kubelet_.lists(), 1);
  kubelet_.Hold("a", {"MIG-a::1"});
  EXPECT_EQ(feed_->Poke(), 1u);
  const PodReport report = Next();
  EXPECT_EQ(report.number, 1u);
  EXPECT_EQ(report.holders->at(0).pod, "a");
}

TEST_F(PodFeedTest, AKubeletThatIsNotThereIsUnknownNotEmpty) {
  Start(/*idle=*/false);
  PodReport report = Next();
  EXPECT_FALSE(report.holders);
  EXPECT_THAT(report.holders_problem, HasSubstr("/holders"));
  EXPECT_EQ(report.source, PodSource::kNone);
  EXPECT_THAT(report.pods_problem, HasSubstr("not in a cluster"));
  kubelet_.Hold("a", {"GPU-a::0"});
  kubelet_.ServeHolders(true);
  do report = Next();
  while (report.number != 999 && !report.holders);
  EXPECT_EQ(report.holders->size(), 1u);
  // kubelet restarts: the connection is gone, and another kubelet is there.
  kubelet_.ServeHolders(false);
  kubelet_.Hold("b", {"GPU-a::1"});
  kubelet_.ServeHolders(true);
  do report = Next();
  while (report.number != 999 &&
         (!report.holders || report.holders->size() != 2));
  EXPECT_EQ(report.holders->at(1).pod, "b");
}

}  // namespace
}  // namespace rondo::agent
