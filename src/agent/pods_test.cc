// SPDX-License-Identifier: Apache-2.0
//
// Pods' annotations on their way to slots, with stand-ins for kubelet's APIs
// and for the API server.

#include <functional>
#include <optional>
#include <string>

#include "agent/test_pod.h"
#include "demo/stand_in_pod_apis.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/test_api_server.h"
#include "nlohmann/json.hpp"

namespace rondo::agent {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr uint64_t kGiB = 1 << 30;

class PodsTest : public PodTest {
 protected:
  void StartAgent(bool with_api_server) {
    Write("config",
          "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}\n"
          "rondo: {memory: enforce, slotMemory: 2Gi}\n");
    std::vector<std::string> arguments = {"--config-file=" + Path("config"),
                                          "--node-name=n1"};
    if (with_api_server) arguments.push_back("--api-server=" + api_.url());
    Start(arguments);
  }

  // Admitted by kubelet, and shown as the holder of its slot.
  demo::Grant Place(const std::string& pod) {
    const demo::Grant grant = Admit(pod);
    kubelet_apis_.Hold(pod, grant.device_ids);
    return grant;
  }

  json SlotWithWeight(const demo::Grant& grant, double weight) {
    return Slot(
        grant, [weight](const json& slot) { return slot["weight"] == weight; });
  }

  // What is told of the pods once `source` is the source.
  json Pods(const json& source) {
    const MonotonicTime end = RealClock().Now() + std::chrono::seconds(20);
    json pods;
    do {
      pods = Sharing().value("pods", json::object());
    } while (pods.value("annotationSource", json("?")) != source &&
             RealClock().Now() < end);
    return pods;
  }

  kube::TestApiServer api_;
  demo::StandInPodApis kubelet_apis_{Path("pod-resources.sock"),
                                     Path("pods-api.sock")};
};

TEST_F(PodsTest, AnEditReachesTheRunningPodAndARemovalGivesTheDefaultsBack) {
  kubelet_apis_.ServeHolders(true);
  kubelet_apis_.ServePods(true);
  StartAgent(/*with_api_server=*/false);
  kubelet_apis_.SetPod("a", {});
  const demo::Grant grant = Place("a");
  auto early = Run(grant, "--seconds 0"), late = Run(grant, "--seconds 0");
  Slot(grant, [](const json& slot) { return slot["processes"].size() == 2; });
  kubelet_apis_.SetPod("a", {{"rondo/memory", "3Gi"},
                             {"rondo/weight", "2.5"},
                             {"rondo/class", "latency"},
                             {"rondo/limit", "0.5"}});
  json slot = SlotWithWeight(grant, 2.5);
  EXPECT_EQ(slot["weight"], 2.5);
  EXPECT_EQ(slot["class"], "latency");
  EXPECT_EQ(slot["timeLimit"], 0.5);
  EXPECT_EQ(slot["memoryLimitBytes"], 3 * kGiB);
  EXPECT_EQ(slot["pod"], (json{{"namespace", "default"},
                               {"name", "a"},
                               {"uid", "a-uid"},
                               {"container", "main"}}));
  EXPECT_EQ(Pods("pods-api")["holdersKnown"], true);
  EXPECT_THAT(Get("/metrics"),
              HasSubstr(absl::StrCat(
                  "\nrondo_slot_weight{slot=\"", grant.device_ids.at(0),
                  "\",namespace=\"default\",pod=\"a\",container=\"main\","
                  "class=\"latency\"} 2.5\n")));
  early->Begin();
  early->Finish();
  EXPECT_EQ(early->Number("total_bytes"), 3.0 * kGiB) << "told to the program";

  kubelet_apis_.SetPod("a", {});
  slot = SlotWithWeight(grant, 1);
  EXPECT_EQ(slot["weight"], 1);
  EXPECT_EQ(slot["class"], "standard");
  EXPECT_EQ(slot["timeLimit"], 1);
  EXPECT_EQ(slot["memoryLimitBytes"], 2 * kGiB);
  late->Begin();
  late->Finish();
  EXPECT_EQ(late->Number("total_bytes"), 2.0 * kGiB);
}

TEST_F(PodsTest, ABadValueIsAnEventOnceAndTheDefault) {
  kubelet_apis_.ServeHolders(true);
  kubelet_apis_.ServePods(true);
  StartAgent(/*with_api_server=*/true);
  const demo::Grant grant = Place("a");
  kubelet_apis_.SetPod("a", {{"rondo/weight", "many"}, {"rondo/limit", "0.5"}});
  const auto event = api_.NextEvent();
  ASSERT_TRUE(event) << "no event";
  EXPECT_EQ((*event)["type"], "Warning");
  EXPECT_EQ((*event)["reason"], "RondoAnnotationInvalid");
  EXPECT_EQ((*event)["involvedObject"], (json{{"apiVersion", "v1"},
                                              {"kind", "Pod"},
                                              {"namespace", "default"},
                                              {"name", "a"},
                                              {"uid", "a-uid"}}));
  EXPECT_EQ((*event)["source"]["host"], "n1");
  for (const char* text : {"rondo/weight", "many", "from 0.001 to 1000"})
    EXPECT_THAT((*event)["message"].get<std::string>(), HasSubstr(text));
  const json slot =
      Slot(grant, [](const json& slot) { return slot["timeLimit"] == 0.5; });
  EXPECT_EQ(slot["timeLimit"], 0.5) << "the good one is in force";
  EXPECT_EQ(slot["weight"], 1);
  EXPECT_EQ(Sharing()["pods"]["invalidAnnotations"][0]["key"], "rondo/weight");
  EXPECT_THAT(Get("/metrics"), HasSubstr("\nrondo_annotations_invalid 1\n"));

  // Another edit of the pod: only what is new is told.
  kubelet_apis_.SetPod("a", {{"rondo/weight", "many"}, {"rondo/limit", "2"}});
  const auto second = api_.NextEvent();
  ASSERT_TRUE(second);
  EXPECT_THAT((*second)["message"].get<std::string>(),
              HasSubstr("rondo/limit: \"2\""));
  EXPECT_NE((*second)["metadata"]["name"], (*event)["metadata"]["name"]);
  kubelet_apis_.SetPod("a", {{"rondo/weight", "4"}});
  EXPECT_EQ(SlotWithWeight(grant, 4)["weight"], 4);
  EXPECT_TRUE(Sharing()["pods"]["invalidAnnotations"].empty());
}

TEST_F(PodsTest, WithoutThePodsApiTheApiServerIsWatchedUntilItIsThere) {
  kubelet_apis_.ServeHolders(true);
  api_.SetPod("a", {{"rondo/weight", "2"}});
  StartAgent(/*with_api_server=*/true);
  const demo::Grant grant = Place("a");
  EXPECT_EQ(SlotWithWeight(grant, 2)["weight"], 2);
  EXPECT_EQ(Pods("api-server")["annotationSource"], "api-server");
  EXPECT_THAT(api_.queries(), testing::Each("spec.nodeName=n1"));
  EXPECT_TRUE(agent_->NextLineWith("read from the API server").ok());
  api_.SetPod("a", {{"rondo/weight", "3"}});
  EXPECT_EQ(SlotWithWeight(grant, 3)["weight"], 3);
  api_.EndWatches();
  api_.SetPod("a", {{"rondo/weight", "4"}});
  EXPECT_EQ(SlotWithWeight(grant, 4)["weight"], 4);
  // What was known stays in force while the server is away.
  api_.Fail(503);
  EXPECT_TRUE(agent_->NextLineWith("as last read from the API server").ok());
  EXPECT_EQ(SlotWithWeight(grant, 4)["weight"], 4);

  kubelet_apis_.SetPod("a", {{"rondo/weight", "5"}});
  kubelet_apis_.SetReady(false);
  kubelet_apis_.ServePods(true);
  EXPECT_EQ(SlotWithWeight(grant, 4)["weight"], 4) << "not ready";
  kubelet_apis_.SetReady(true);
  EXPECT_EQ(SlotWithWeight(grant, 5)["weight"], 5);
  EXPECT_EQ(Pods("pods-api")["annotationSource"], "pods-api");
  EXPECT_TRUE(agent_->NextLineWith("read from kubelet's Pods API").ok());
  api_.Fail(0);
  kubelet_apis_.ServePods(false);
  EXPECT_EQ(SlotWithWeight(grant, 4)["weight"], 4) << "the API server's word";
}

TEST_F(PodsTest, WithoutAnySourceThereAreTheDefaultsAndAReason) {
  StartAgent(/*with_api_server=*/false);
  kubelet_apis_.SetPod("a", {{"rondo/weight", "2"}});
  const demo::Grant grant = Place("a");
  const json pods = Pods(nullptr);
  EXPECT_EQ(pods["holdersKnown"], false);
  EXPECT_THAT(pods["holdersProblem"].get<std::string>(),
              HasSubstr("pod-resources.sock"));
  EXPECT_THAT(pods["annotationProblem"].get<std::string>(),
              HasSubstr("pods-api.sock"));
  EXPECT_EQ(SlotWithWeight(grant, 1)["memoryLimitBytes"], 2 * kGiB);
  EXPECT_TRUE(agent_->NextLineWith("annotations cannot be read").ok());
  // kubelet is upgraded.
  kubelet_apis_.ServeHolders(true);
  kubelet_apis_.ServePods(true);
  EXPECT_EQ(SlotWithWeight(grant, 2)["weight"], 2);
}

// The stand-in's PodResources knows nothing of it, as kubelet's of an init
// container; its checkpoint does.
TEST_F(PodsTest, AnInitContainerHasItsPodsSettings) {
  kubelet_apis_.ServeHolders(true);
  kubelet_apis_.ServePods(true);
  StartAgent(/*with_api_server=*/false);
  kubelet_apis_.SetPod("a", {{"rondo/weight", "7"}, {"rondo/memory", "9Gi"}});
  const demo::Grant grant = Admit("a-uid");
  json slot = SlotWithWeight(grant, 7);
  EXPECT_EQ(slot["memoryLimitBytes"], 9 * kGiB);
  EXPECT_EQ(slot["pod"], (json{{"namespace", "default"},
                               {"name", "a"},
                               {"uid", "a-uid"},
                               {"container", "c"}}));
  kubelet_apis_.SetPod("a", {{"rondo/weight", "8"}});
  EXPECT_EQ(SlotWithWeight(grant, 8)["memoryLimitBytes"], 2 * kGiB);
  kubelet_apis_.End("a");
  slot = SlotWithWeight(grant, 1);
  EXPECT_EQ(slot["weight"], 1);
  EXPECT_TRUE(slot["pod"].is_null());
}

TEST_F(PodsTest, ASlotThatChangesHandsTakesNothingAlong) {
  kubelet_apis_.ServeHolders(true);
  kubelet_apis_.ServePods(true);
  StartAgent(/*with_api_server=*/false);
  kubelet_apis_.SetPod("a", {{"rondo/weight", "7"}, {"rondo/memory", "9Gi"}});
  const demo::Grant first = Place("a");
  for (int i = 1; i < 8; ++i) Admit(absl::StrCat("other", i));
  ASSERT_EQ(SlotWithWeight(first, 7)["memoryLimitBytes"], 9 * kGiB);
  // kubelet tells nothing more: the last word stays in force...
  kubelet_apis_.ServeHolders(false);
  kubelet_apis_.ServePods(false);
  ASSERT_TRUE(agent_->NextLineWith("is not known, so annotations").ok());
  EXPECT_EQ(SlotWithWeight(first, 7)["memoryLimitBytes"], 9 * kGiB);
  // ... until the slot is handed to another pod.
  kubelet_.Remove("a");
  kubelet_apis_.Remove("a");
  const demo::Grant second = Admit("b");
  ASSERT_EQ(second.device_ids, first.device_ids) << "the only free one";
  json slot = SlotWithWeight(second, 1);
  EXPECT_EQ(slot["weight"], 1);
  EXPECT_EQ(slot["memoryLimitBytes"], 2 * kGiB);
  EXPECT_TRUE(slot["pod"].is_null());
  kubelet_apis_.SetPod("b", {{"rondo/class", "batch"}});
  kubelet_apis_.Hold("b", second.device_ids);
  kubelet_apis_.ServeHolders(true);
  kubelet_apis_.ServePods(true);
  slot = Slot(second, [](const json& s) { return s["class"] == "batch"; });
  EXPECT_EQ(slot["class"], "batch");
  EXPECT_EQ(slot["weight"], 1);
  EXPECT_EQ(slot["pod"]["name"], "b");
}

}  // namespace
}  // namespace rondo::agent
