// SPDX-License-Identifier: Apache-2.0
//
// Pods and events on the API server.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/event_writer.h"
#include "kube/pod_watcher.h"
#include "kube/test_api_server.h"
#include "kube/test_node_server.h"

namespace rondo::kube {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

TEST(ParsePodList, TakesWhatWasAskedFor) {
  const auto list = ParsePodList(
      R"({"metadata":{"resourceVersion":"7"},"items":[{"metadata":{
          "name":"a","namespace":"n","uid":"u",
          "creationTimestamp":"1970-01-01T00:01:00Z",
          "annotations":{"rondo/weight":"3","other":"x","rondo/limit":1}},
          "status":{"phase":"Succeeded"}}]})",
      "rondo/");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->resource_version, "7");
  ASSERT_THAT(list->pods, SizeIs(1));
  const Pod& pod = list->pods[0];
  EXPECT_EQ(pod.name_space, "n");
  EXPECT_EQ(pod.name, "a");
  EXPECT_EQ(pod.uid, "u");
  EXPECT_TRUE(pod.ended);
  EXPECT_EQ(pod.created_unix_seconds, 60);
  EXPECT_THAT(pod.annotations, ElementsAre(Pair("rondo/weight", "3")));
  EXPECT_THAT(ParsePodList(R"({"metadata":{},"items":null})", "")->pods,
              IsEmpty());
}

TEST(CutText, NeverCutsACharacter) {
  EXPECT_EQ(CutText("abc", 3), "abc");
  EXPECT_EQ(CutText("abcd", 3), "abc...");
  EXPECT_EQ(CutText("ab\u00e4", 3), "ab...");
  EXPECT_EQ(CutText("a\u20ac\u20ac", 6), "a\u20ac...");
  EXPECT_EQ(CutText(std::string(9, '\x80'), 3), "...") << "no text at all";
}

TEST(ParsePodList, KeepsNoMoreThanARightValueNeeds) {
  nlohmann::json annotations = {{"rondo/weight", std::string(250 << 10, '3')}};
  for (int i = 0; i < 10'000; ++i)
    annotations["rondo/" + std::to_string(i)] = "x";
  const nlohmann::json list = {
      {"metadata", {{"resourceVersion", "7"}}},
      {"items",
       {{{"metadata", {{"uid", "u"}, {"annotations", annotations}}}}}}};
  const Pod pod = ParsePodList(list.dump(), "rondo/")->pods.at(0);
  EXPECT_THAT(pod.annotations, SizeIs(kMostAnnotations));
  Pod one, other;
  for (int i = 0; i < 100; ++i) {
    KeepAnnotation(absl::StrCat("rondo/", i), "x", "rondo/", one);
    KeepAnnotation(absl::StrCat("rondo/", 99 - i), "x", "rondo/", other);
  }
  EXPECT_EQ(one, other) << "whatever the order";
  one = {};
  KeepAnnotation("rondo/" + std::string(300, 'x'), "3", "rondo/", one);
  EXPECT_THAT(one.annotations, IsEmpty());
  KeepAnnotation("rondo/weight", std::string(250 << 10, '3'), "rondo/", one);
  EXPECT_EQ(one.annotations["rondo/weight"],
            std::string(kLongestText, '3') + "...");
}

TEST(PodListReader, ReadsPiecesOfAnySize) {
  const std::string text = R"( {"kind" : "items", "spec": {"items": [{"a":1}]},
      "items" : [ {"metadata":{"uid":"a{\"[\\","annotations":{"rondo/a":"]}"}},
                   "spec":{"containers":[{"name":"items"},{}]}} ,
                  {"spec":[[{}]],"metadata":{"uid":"b"}}
      ],"metadata":{"continue":"","resourceVersion":"8"}} )";
  for (size_t size = 1; size <= text.size(); ++size) {
    PodListReader reader("rondo/");
    for (size_t from = 0; from < text.size(); from += size)
      ASSERT_TRUE(reader.Add(absl::string_view(text).substr(from, size)).ok());
    const auto list = reader.Finish();
    ASSERT_TRUE(list.ok()) << size << ": " << list.status();
    EXPECT_EQ(list->resource_version, "8");
    ASSERT_THAT(list->pods, SizeIs(2));
    EXPECT_EQ(list->pods[0].uid, "a{\"[\\");
    EXPECT_THAT(list->pods[0].annotations, ElementsAre(Pair("rondo/a", "]}")));
    EXPECT_EQ(list->pods[1].uid, "b");
  }
}

TEST(ParsePodList, RefusesWhatIsNotOne) {
  for (const char* text :
       {"", "[]", "{}", R"({"metadata":{}})", R"({"metadata":{},"items":{}})",
        R"({"metadata":{},"items":[1]})",
        R"({"metadata":{},"items":[[{"metadata":{"uid":"u"}}]]})",
        R"({"metadata":{},"items":[{"metadata":{"uid":"u"}])",
        R"({"metadata":{},"items":[{"metadata":{"uid":"u"}}]}})",
        R"({"metadata":{},"items":[{"metadata":{"uid":"u"}]]})",
        R"({"metadata":{},"items":[{"metadata":{"name":"a"}}]})"})
    EXPECT_TRUE(absl::IsInvalidArgument(ParsePodList(text, "").status()))
        << text;
}

TEST(ParsePodEvent, KnowsTheKinds) {
  const std::string pod = R"({"metadata":{"uid":"u"}})";
  const auto parse = [&](const std::string& type, const std::string& object) {
    return ParsePodEvent(
        absl::StrCat(R"({"type":")", type, R"(","object":)", object, "}"), "");
  };
  EXPECT_EQ(parse("ADDED", pod)->type, PodEvent::Type::kChanged);
  EXPECT_EQ(parse("MODIFIED", pod)->type, PodEvent::Type::kChanged);
  EXPECT_EQ(parse("DELETED", pod)->type, PodEvent::Type::kDeleted);
  EXPECT_EQ(parse("BOOKMARK", R"({"metadata":{"resourceVersion":"8"}})")
                ->resource_version,
            "8");
  EXPECT_TRUE(absl::IsOutOfRange(parse("ERROR", R"({"code":410})").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(parse("ADDED", "{}").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(parse("", pod).status()));
}

TEST(PodWatcher, DeliversChangesAndAgainAfterAnError) {
  TestApiServer server;
  server.SetPod("a", {{"rondo/weight", "1"}});
  Queue<std::vector<Pod>> pods;
  Queue<absl::Status> errors;
  PodWatcher watcher(
      *ApiClient::Create(
          {.base_url = server.url(), .token_file = "", .ca_file = ""}),
      {.node_name = "n1",
       .annotation_prefix = "rondo/",
       .first_pause = milliseconds(1),
       .longest_pause = milliseconds(4)},
      [&](const std::vector<Pod>& now) { pods.Push(now); },
      [&](const absl::Status& error) { errors.Push(error); });
  const auto weights = [&] {
    std::vector<std::string> values;
    if (const auto now = pods.Pop())
      for (const Pod& pod : *now)
        values.push_back(pod.annotations.at("rondo/weight"));
    return values;
  };
  EXPECT_THAT(weights(), ElementsAre("1"));
  server.SetPod("a", {{"rondo/weight", "2"}, {"other", "x"}});
  EXPECT_THAT(weights(), ElementsAre("2"));
  server.EndWatches();  // no error, and nothing new
  server.SetPod("b", {{"rondo/weight", "3"}});
  EXPECT_THAT(weights(), ElementsAre("2", "3"));
  server.Remove("b");
  EXPECT_THAT(weights(), ElementsAre("2"));
  server.Fail(503);
  const auto error = errors.Pop();
  ASSERT_TRUE(error);
  EXPECT_TRUE(absl::IsUnavailable(*error));
  server.Fail(0);
  EXPECT_THAT(weights(), ElementsAre("2")) << "it is known again";
}

TEST(PodWatcher, NobodysPodsHideTheOthers) {
  TestApiServer server;
  server.SetPod("mine", {{"rondo/weight", "1"}});
  for (int i = 0; i < 80; ++i)
    server.SetPod(absl::StrCat("b", i),
                  {{"other", std::string(256 << 10, 'x')}});
  Queue<std::vector<Pod>> pods;
  PodWatcher watcher(
      *ApiClient::Create(
          {.base_url = server.url(), .token_file = "", .ca_file = ""}),
      {.node_name = "n1", .annotation_prefix = "rondo/"},
      [&](const std::vector<Pod>& now) { pods.Push(now); },
      [&](const absl::Status& error) { ADD_FAILURE() << error; });
  const auto now = pods.Pop();
  ASSERT_TRUE(now);
  ASSERT_THAT(*now, SizeIs(81));
  EXPECT_THAT(now->back().annotations, ElementsAre(Pair("rondo/weight", "1")));
}

PodWarning Warning(const std::string& message) {
  return {.name_space = "default",
          .pod = "a",
          .uid = "u",
          .reason = "Why",
          .message = message};
}

TEST(EventJson, HasANameForWhatItSays) {
  const auto name = [](const PodWarning& warning, int64_t time) {
    return nlohmann::json::parse(
               EventJson(warning, "n1", time))["metadata"]["name"]
        .get<std::string>();
  };
  EXPECT_EQ(name(Warning("x"), 1), name(Warning("x"), 2));
  EXPECT_NE(name(Warning("x"), 1), name(Warning("y"), 1));
  const auto event =
      nlohmann::json::parse(EventJson(Warning("\xff"), "n1", 60));
  EXPECT_EQ(event["firstTimestamp"], "1970-01-01T00:01:00Z");
  EXPECT_EQ(event["metadata"]["namespace"], "default");
  PodWarning cut = Warning("x");
  cut.pod = std::string(199, 'a') + "-" + std::string(50, 'b');
  EXPECT_EQ(name(cut, 1).substr(198, 2), "a.") << "no name ends with a dash";
  EXPECT_LT(name(cut, 1).size(), 253u);
}

class EventWriterTest : public testing::Test {
 protected:
  void Start() {
    writer_.emplace(
        *ApiClient::Create(
            {.base_url = server_.url(), .token_file = "", .ca_file = ""}),
        EventWriter::Options{.node_name = "n1",
                             .first_pause = milliseconds(1),
                             .longest_pause = milliseconds(4),
                             .attempts = 100'000},
        [this](const absl::Status& status) {
          std::lock_guard lock(mutex_);
          error_ = status;
          changed_.notify_all();
        });
  }
  absl::Status NextError() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60),
                      [this] { return !error_.ok(); });
    return error_;
  }

  TestApiServer server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  absl::Status error_;
  std::optional<EventWriter> writer_;
};

TEST_F(EventWriterTest, WritesInOrderAndWaitsForTheServer) {
  server_.Fail(503);
  Start();
  writer_->Add(Warning("one"));
  writer_->Add(Warning("two"));
  server_.Fail(0);
  EXPECT_EQ((*server_.NextEvent())["message"], "one");
  EXPECT_EQ((*server_.NextEvent())["message"], "two");
}

TEST_F(EventWriterTest, TellsOfAServerThatRefusesAndGoesOn) {
  server_.Fail(403);
  Start();
  writer_->Add(Warning("one"));
  EXPECT_TRUE(absl::IsPermissionDenied(NextError()));
  server_.Fail(409);  // it is there already
  writer_->Add(Warning("two"));
  server_.Fail(0);
  writer_->Add(Warning("three"));
  std::string message;
  while (message != "three") {
    const auto event = server_.NextEvent();
    ASSERT_TRUE(event);
    message = (*event)["message"];
    EXPECT_NE(message, "one");
  }
}

}  // namespace
}  // namespace rondo::kube
