// SPDX-License-Identifier: Apache-2.0
//
// As much of the API server as a watcher of one node uses, and what it says.
// Plain HTTP on loopback.

#ifndef RONDO_KUBE_TEST_NODE_SERVER_H_
#define RONDO_KUBE_TEST_NODE_SERVER_H_

#include <microhttpd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rondo::kube {

// A Node with the label nvidia.com/device-plugin.config.
inline std::string NodeJson(const std::string& label, int version) {
  return absl::StrCat(R"({"kind":"Node","metadata":{"name":"n1",)",
                      R"("resourceVersion":")", version,
                      R"(","labels":{"nvidia.com/device-plugin.config":")",
                      label, R"("}}})");
}

inline std::string Event(const std::string& type, const std::string& object) {
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
    changed_.wait_for(lock, std::chrono::seconds(60),
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
class TestNodeServer {
 public:
  TestNodeServer() {
    daemon_ = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD, 0,
        nullptr, nullptr, &TestNodeServer::OnRequest, this, MHD_OPTION_END);
  }
  ~TestNodeServer() {
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
  // The answer from now on, whatever stood in line.
  void AnswerOnly(int code, std::string body) {
    std::lock_guard lock(mutex_);
    answers_ = {{code, std::move(body)}};
  }
  // Sends a line on the open watch; an empty one ends it.
  void Send(std::string line) { watch_.Push(std::move(line)); }
  std::optional<std::string> NextToken() { return tokens_.Pop(); }

 private:
  static ssize_t StreamWatch(void* self, uint64_t, char* out, size_t max) {
    const auto line = static_cast<TestNodeServer*>(self)->watch_.Pop();
    if (!line || line->empty() || line->size() > max)
      return MHD_CONTENT_READER_END_OF_STREAM;
    memcpy(out, line->data(), line->size());
    return static_cast<ssize_t>(line->size());
  }

  static MHD_Result OnRequest(void* cls, MHD_Connection* connection,
                              const char* url, const char*, const char*,
                              const char*, size_t*, void**) {
    auto* self = static_cast<TestNodeServer*>(cls);
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

}  // namespace rondo::kube

#endif  // RONDO_KUBE_TEST_NODE_SERVER_H_
