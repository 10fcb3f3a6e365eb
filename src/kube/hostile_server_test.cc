// SPDX-License-Identifier: Apache-2.0
//
// An API server that is slow, or sends what it should not: nobody hangs, spins
// or grows, and all goes on when it is well again.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/event_writer.h"
#include "kube/pod_watcher.h"
#include "kube/test_raw_server.h"

namespace rondo::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Answer = RawAnswer;

const std::string kOk = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
const std::string kList =
    kOk +
    R"({"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"uid":"u"}}]})";
constexpr milliseconds kSlow{5};

struct Case {
  const char* name;
  Answer to_list, to_watch;
};

class HostileServer : public testing::Test {
 protected:
  std::unique_ptr<ApiClient> Client() {
    return *ApiClient::Create({.base_url = server_.url(),
                               .token_file = "",
                               .ca_file = "",
                               .timeout_seconds = timeout_seconds_});
  }
  void Start(const Case& now) {
    server_.Say(now.to_list, now.to_watch);
    error_ = absl::OkStatus();
    pods_ = 0;
    watcher_ = std::make_unique<PodWatcher>(
        Client(),
        PodWatcher::Options{.node_name = "n1",
                            .annotation_prefix = "rondo/",
                            .first_pause = milliseconds(20)},
        [this](const std::vector<Pod>& pods) {
          std::lock_guard lock(mutex_);
          pods_ = pods.size();
          changed_.notify_all();
        },
        [this](const absl::Status& error) {
          std::lock_guard lock(mutex_);
          if (error_.ok()) error_ = error;
          changed_.notify_all();
        });
  }
  absl::Status Error() {  // the first one
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20),
                      [this] { return !error_.ok(); });
    return error_;
  }
  bool WaitForAPod() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [this] { return pods_ == 1; });
  }

  RawServer server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  absl::Status error_;
  size_t pods_ = 0;
  // Longer than any test: what ends, ends for another reason.
  int timeout_seconds_ = 600;
  std::unique_ptr<PodWatcher> watcher_;  // first to go: it calls back
};

TEST_F(HostileServer, ATrickleDoesNotHoldUpTheEnd) {
  const Answer header{"HTTP/1.1 200 OK\r\nX-Slow: ", "x", kSlow};
  const Answer body{kOk + "{\"a\":\"", "x", kSlow};
  for (const Case& now : {Case{"header", header, {}}, Case{"list", body, {}},
                          Case{"watch", {kList}, body}}) {
    SCOPED_TRACE(now.name);
    Start(now);
    EXPECT_TRUE(server_.WaitForPieces(5));
    const auto start = steady_clock::now();
    watcher_.reset();
    EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(5));
  }
  // Nor does an event that is being written.
  server_.Say(header);
  auto writer = std::make_unique<EventWriter>(
      Client(), EventWriter::Options{.node_name = "n1"},
      [](const absl::Status&) {});
  writer->Add({.name_space = "default", .pod = "a", .uid = "u"});
  EXPECT_TRUE(server_.WaitForPieces(5));
  const auto start = steady_clock::now();
  writer.reset();
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(HostileServer, IsWaitedForWhileTheListComes) {
  timeout_seconds_ = 1;
  // A trickle is no list that comes.
  Start({"trickle", {kOk + "{\"a\":\"", "x", kSlow}, {}});
  EXPECT_TRUE(absl::IsUnavailable(Error())) << Error();
  watcher_.reset();
  // This one takes longer than the timeout to be told, and is read to its end.
  std::string pods;
  for (int i = 0; i < 20; ++i)
    pods += R"({"metadata":{"uid":"u","annotations":{"rondo/a":"b"}}},)";
  Start({"long list", {kOk + "{\"items\":[", pods, kSlow}, {}});
  const auto start = steady_clock::now();
  EXPECT_TRUE(absl::IsResourceExhausted(Error())) << Error();
  EXPECT_GT(steady_clock::now() - start, std::chrono::seconds(1));
}

TEST_F(HostileServer, IsAskedEverLessOftenAndHeardWhenItIsWell) {
  std::string noise = "\x16\x03\x01";
  for (int i = 0; i < 5000; ++i) noise += static_cast<char>(i * 7 + i / 256);
  const Case cases[] = {
      {"closes at once", {}, {}},
      {"no HTTP", {noise}, {}},
      {"no JSON", {kOk + noise}, {}},
      {"half a list", {kOk + "{\"items\":["}, {}},
      {"no pod", {kOk + "{\"items\":[{]}"}, {}},
      {"an error", {"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno"}, {}},
      {"a watch that closes at once", {kList}, {}},
      {"a watch that is no HTTP", {kList}, {noise}},
      {"no event", {kList}, {kOk + "{}\n"}},
      {"noise without an end", {kList}, {kOk + noise + "\n", "x\n", kSlow}}};
  for (const Case& now : cases) {
    SCOPED_TRACE(now.name);
    const auto start = steady_clock::now();
    Start(now);
    // Four rounds, with pauses of 20, 40 and 80 ms between them.
    const int rounds = 4;
    const bool lists = now.to_list.once == kList;
    EXPECT_TRUE(server_.WaitForRequests(lists ? 2 * rounds : rounds));
    EXPECT_GE(steady_clock::now() - start, milliseconds(140));
    EXPECT_FALSE(Error().ok());
    server_.Say({kList}, {kOk});
    EXPECT_TRUE(WaitForAPod());
    watcher_.reset();
  }
}

TEST_F(HostileServer, WhatNeverEndsIsCutOff) {
  const std::string piece(64 << 10, 'x');
  std::string pods;
  for (int i = 0; i < 1000; ++i)
    pods += R"({"metadata":{"uid":"u","annotations":{"rondo/a":"b"}}},)";
  for (const Case& now :
       {Case{"a list without items", {kOk + "{\"metadata\":\"", piece}, {}},
        Case{"a pod", {kOk + "{\"items\":[{\"a\":\"", piece}, {}},
        Case{"pods", {kOk + "{\"items\":[", pods}, {}},
        Case{"an error", {"HTTP/1.1 500 No\r\n\r\n", piece}, {}},
        Case{"a line", {kList}, {kOk, piece}}}) {
    SCOPED_TRACE(now.name);
    Start(now);
    EXPECT_TRUE(absl::IsResourceExhausted(Error())) << Error();
    watcher_.reset();
  }
}

}  // namespace
}  // namespace rondo::kube
