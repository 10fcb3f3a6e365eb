// SPDX-License-Identifier: Apache-2.0
#include "kube/node_watcher.h"

#include <microhttpd.h>

#include <cstring>
#include <deque>
#include <optional>

#include "base/file.h"
#include "gtest/gtest.h"

namespace rondo::kube {
namespace {

std::string NodeJson(const std::string& label, int version) {
  return absl::StrCat(R"({"kind":"Node","metadata":{"name":"n1",)",
                      R"("resourceVersion":")", version,
                      R"(","labels":{"nvidia.com/device-plugin.config":")",
                      label, R"("}}})");
}

std::string Event(const std::string& type, const std::string& object) {
  return absl::StrCat(R"({"type":")", type, R"(","object":)", object, "}\n");
}

// A queue that a test fills and a thread of the code under test empties, or the
// other way round.
template <typename T>
class Queue {
 public:
  void Push(T value) {
    std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  // Empty after 10 s or Close.
  std::optional<T> Pop() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10),
                      [this] { return closed_ || !values_.empty(); });
    if (values_.empty()) return std::nullopt;
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }
  void Close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;
  bool closed_ = false;
};

// Speaks as much of the API server as the watcher uses, over plain HTTP on
// loopback.
class FakeApiServer {
 public:
  FakeApiServer() {
    daemon_ = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD, 0,
        nullptr, nullptr, &FakeApiServer::OnRequest, this, MHD_OPTION_END);
  }
  ~FakeApiServer() {
    watch_.Close();
    MHD_stop_daemon(daemon_);
  }

  std::string url() const {
    return absl::StrCat(
        "http://127.0.0.1:",
        MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT)->port);
  }
  // Answers to the next GETs of the node; the last one stays.
  void Answer(int code, std::string body) {
    std::lock_guard lock(mutex_);
    answers_.push_back({code, std::move(body)});
  }
  // Sends a line on the open watch; an empty one ends it.
  void Send(std::string line) { watch_.Push(std::move(line)); }
  std::optional<std::string> NextToken() { return tokens_.Pop(); }

 private:
  static ssize_t StreamWatch(void* self, uint64_t, char* out, size_t max) {
    const auto line = static_cast<FakeApiServer*>(self)->watch_.Pop();
    if (!line || line->empty() || line->size() > max)
      return MHD_CONTENT_READER_END_OF_STREAM;
    memcpy(out, line->data(), line->size());
    return static_cast<ssize_t>(line->size());
  }

  static MHD_Result OnRequest(void* cls, MHD_Connection* connection,
                              const char* url, const char*, const char*,
                              const char*, size_t*, void**) {
    auto* self = static_cast<FakeApiServer*>(cls);
    MHD_Response* response;
    int code = 200;
    if (strcmp(url, "/api/v1/nodes") == 0) {
      response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 65536,
                                                   &StreamWatch, self, nullptr);
    } else {
      const char* token = MHD_lookup_connection_value(
          connection, MHD_HEADER_KIND, "Authorization");
      self->tokens_.Push(token != nullptr ? token : "");
      std::lock_guard lock(self->mutex_);
      std::string body;
      std::tie(code, body) = self->answers_.front();
      if (self->answers_.size() > 1) self->answers_.pop_front();
      response = MHD_create_response_from_buffer(body.size(), body.data(),
                                                 MHD_RESPMEM_MUST_COPY);
    }
    const MHD_Result result =
        MHD_queue_response(connection, static_cast<unsigned>(code), response);
    MHD_destroy_response(response);
    return result;
  }

  MHD_Daemon* daemon_;
  std::mutex mutex_;
  std::deque<std::pair<int, std::string>> answers_;
  Queue<std::string> watch_;
  Queue<std::string> tokens_;
};

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

  FakeApiServer server_;
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
