// SPDX-License-Identifier: Apache-2.0
#include "kube/node_watcher.h"

#include <cstring>
#include <optional>

#include "base/file.h"
#include "gtest/gtest.h"
#include "kube/test_node_server.h"

namespace rondo::kube {
namespace {

class NodeWatcherTest : public testing::Test {
 protected:
  void Start(std::string token_file = "") {
    auto client = ApiClient::Create({.base_url = server_.url(),
                                     .token_file = std::move(token_file),
                                     .ca_file = ""});
    ASSERT_TRUE(client.ok()) << client.status();
    watcher_.emplace(
        *std::move(client),
        NodeWatcher::Options{.node_name = "n1",
                             .first_pause = std::chrono::milliseconds(1),
                             .longest_pause = std::chrono::milliseconds(4)},
        [this](const Labels& labels) { labels_.Push(labels); },
        [this](const absl::Status& status) { errors_.Push(status); });
  }
  std::string NextLabel() {
    const auto labels = labels_.Pop();
    if (!labels) return "(nothing came)";
    const auto it = labels->find("nvidia.com/device-plugin.config");
    return it == labels->end() ? "(no label)" : it->second;
  }

  TestNodeServer server_;
  Queue<Labels> labels_;
  Queue<absl::Status> errors_;
  std::optional<NodeWatcher> watcher_;
};

TEST_F(NodeWatcherTest, DeliversTheFirstStateAndEveryChangeOfLabels) {
  server_.Answer(200, NodeJson("a", 1));
  Start();
  EXPECT_EQ(NextLabel(), "a");
  server_.Send(Event("MODIFIED", NodeJson("a", 2)));  // a heartbeat: no call
  server_.Send(Event("MODIFIED", NodeJson("b", 3)));
  EXPECT_EQ(NextLabel(), "b");
}

TEST_F(NodeWatcherTest, ListsAgainWhenTheWatchEndsOrIsTooOld) {
  server_.Answer(200, NodeJson("a", 1));
  server_.Answer(200, NodeJson("b", 2));
  server_.Answer(200, NodeJson("c", 3));
  Start();
  EXPECT_EQ(NextLabel(), "a");
  server_.Send("");
  EXPECT_EQ(NextLabel(), "b");
  server_.Send(Event("ERROR", R"({"kind":"Status","code":410})"));
  server_.Send("");
  EXPECT_EQ(NextLabel(), "c");
}

TEST_F(NodeWatcherTest, ReportsAnErrorOnceAndTriesAgain) {
  server_.Answer(403, "no");
  server_.Answer(403, "no");
  server_.Answer(500, "oops");
  server_.Answer(200, "[]");
  server_.Answer(200, NodeJson("a", 1));
  Start();
  EXPECT_TRUE(absl::IsPermissionDenied(*errors_.Pop()));
  EXPECT_TRUE(absl::IsUnavailable(*errors_.Pop()));
  EXPECT_TRUE(absl::IsInvalidArgument(*errors_.Pop()));
  EXPECT_EQ(NextLabel(), "a");
}

TEST_F(NodeWatcherTest, ReportsAnErrorThatComesBack) {
  server_.Answer(200, NodeJson("a", 1));
  server_.Answer(200, NodeJson("b", 2));
  Start();
  EXPECT_EQ(NextLabel(), "a");
  server_.Send("{\n");
  server_.Send("");
  EXPECT_TRUE(absl::IsInvalidArgument(*errors_.Pop()));
  EXPECT_EQ(NextLabel(), "b");
  server_.Send("{\n");
  server_.Send("");
  const auto error = errors_.Pop();
  ASSERT_TRUE(error);
  EXPECT_TRUE(absl::IsInvalidArgument(*error));
}

TEST_F(NodeWatcherTest, ReadsTheTokenForEachRequest) {
  auto dir = TempDir::Create();
  ASSERT_TRUE(dir.ok());
  const std::string token = dir->path() + "/token";
  ASSERT_TRUE(WriteFileAtomically(token, "one\n").ok());
  server_.Answer(200, NodeJson("a", 1));
  Start(token);
  EXPECT_EQ(NextLabel(), "a");
  EXPECT_EQ(server_.NextToken(), "Bearer one");
  ASSERT_TRUE(WriteFileAtomically(token, "two\n").ok());
  server_.Send("");
  EXPECT_EQ(server_.NextToken(), "Bearer two");
}

TEST(ApiClient, FindsItsClusterInTheEnvironment) {
  auto env = [](const char* name) -> const char* {
    return strcmp(name, "KUBERNETES_SERVICE_HOST") == 0 ? "fd00::1" : "443";
  };
  const auto options = ApiClient::InCluster(env, "/root");
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->base_url, "https://[fd00::1]:443");
  EXPECT_EQ(options->token_file,
            "/root/var/run/secrets/kubernetes.io/serviceaccount/token");
  EXPECT_TRUE(
      absl::IsNotFound(ApiClient::InCluster([](const char*) -> const char* {
                         return nullptr;
                       }).status()));
}

TEST(ParseNodeEvent, RefusesWhatIsNotOne) {
  for (const char* line :
       {"", "{", "[]", "{}", R"({"type":"ADDED"})", R"({"type":1,"object":{}})",
        R"({"type":"ADDED","object":{}})",
        R"({"type":"ADDED","object":{"metadata":[]}})"})
    EXPECT_TRUE(absl::IsInvalidArgument(ParseNodeEvent(line).status())) << line;
  EXPECT_TRUE(absl::IsNotFound(
      ParseNodeEvent(R"({"type":"DELETED","object":{}})").status()));
}

}  // namespace
}  // namespace rondo::kube
