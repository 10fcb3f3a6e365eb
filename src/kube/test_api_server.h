// SPDX-License-Identifier: Apache-2.0
//
// As much of the API server as the agent uses for pods: lists and watches the
// pods of one node, and takes events. Plain HTTP on loopback.

#ifndef RONDO_KUBE_TEST_API_SERVER_H_
#define RONDO_KUBE_TEST_API_SERVER_H_

#include <microhttpd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace rondo::kube {

class TestApiServer {
 public:
  TestApiServer() {
    daemon_ = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD, 0,
        nullptr, nullptr, &TestApiServer::OnRequest, this, MHD_OPTION_END);
  }
  ~TestApiServer() {
    {
      std::lock_guard lock(mutex_);
      ending_ = true;
      changed_.notify_all();
    }
    MHD_stop_daemon(daemon_);
  }

  std::string url() const {
    return absl::StrCat(
        "http://127.0.0.1:",
        MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT)->port);
  }

  // Adds or changes a pod of the namespace "default".
  void SetPod(const std::string& name,
              const std::map<std::string, std::string>& annotations) {
    std::lock_guard lock(mutex_);
    pods_[name] = {{"metadata",
                    {{"name", name},
                     {"namespace", "default"},
                     {"uid", name + "-uid"},
                     {"creationTimestamp", "2026-01-02T03:04:05Z"},
                     {"annotations", annotations}}}};
    Log("MODIFIED", pods_[name]);
  }
  void Remove(const std::string& name) {
    std::lock_guard lock(mutex_);
    Log("DELETED", pods_[name]);
    pods_.erase(name);
  }
  // Code of every answer from now on; 0: as a healthy server.
  void Fail(int code) {
    std::lock_guard lock(mutex_);
    code_ = code;
    ++watches_ended_;  // and of the watches that are open
    changed_.notify_all();
  }
  // Ends the open watches, as a server does now and then.
  void EndWatches() { Fail(0); }

  // The next event that was posted; empty after 10 s.
  std::optional<nlohmann::json> NextEvent() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60),
                      [this] { return !events_.empty(); });
    if (events_.empty()) return std::nullopt;
    const std::string body = std::move(events_.front());
    events_.pop_front();
    return nlohmann::json::parse(body, nullptr, false);
  }
  // Paths of the GETs so far.
  std::vector<std::string> queries() const {
    std::lock_guard lock(mutex_);
    return queries_;
  }

 private:
  struct Watch {
    TestApiServer* server;
    size_t next;
    int ended;
  };

  void Log(const char* type, const nlohmann::json& pod) {
    log_.push_back(nlohmann::json({{"type", type}, {"object", pod}}).dump() +
                   "\n");
    changed_.notify_all();
  }

  static ssize_t StreamWatch(void* cls, uint64_t, char* out, size_t max) {
    auto* watch = static_cast<Watch*>(cls);
    TestApiServer& server = *watch->server;
    std::unique_lock lock(server.mutex_);
    server.changed_.wait(lock, [&] {
      return server.ending_ || watch->ended != server.watches_ended_ ||
             watch->next < server.log_.size();
    });
    if (server.ending_ || watch->ended != server.watches_ended_)
      return MHD_CONTENT_READER_END_OF_STREAM;
    const std::string& line = server.log_[watch->next++];
    if (line.size() > max) return MHD_CONTENT_READER_END_WITH_ERROR;
    memcpy(out, line.data(), line.size());
    return static_cast<ssize_t>(line.size());
  }

  MHD_Response* Respond(MHD_Connection* connection, bool* watch) {
    const char* version = MHD_lookup_connection_value(
        connection, MHD_GET_ARGUMENT_KIND, "resourceVersion");
    *watch = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND,
                                         "watch") != nullptr;
    const char* field = MHD_lookup_connection_value(
        connection, MHD_GET_ARGUMENT_KIND, "fieldSelector");
    queries_.push_back(field != nullptr ? field : "");
    if (*watch) {
      auto* state = new Watch{
          this, version != nullptr ? strtoul(version, nullptr, 10) : 0,
          watches_ended_};
      return MHD_create_response_from_callback(
          MHD_SIZE_UNKNOWN, 65536, &StreamWatch, state,
          [](void* cls) { delete static_cast<Watch*>(cls); });
    }
    nlohmann::json items = nlohmann::json::array();
    for (const auto& [name, pod] : pods_) items.push_back(pod);
    return Text(
        nlohmann::json(
            {{"metadata", {{"resourceVersion", absl::StrCat(log_.size())}}},
             {"items", items}})
            .dump());
  }

  static MHD_Response* Text(const std::string& body) {
    return MHD_create_response_from_buffer(
        body.size(), const_cast<char*>(body.data()), MHD_RESPMEM_MUST_COPY);
  }

  static MHD_Result OnRequest(void* cls, MHD_Connection* connection,
                              const char* url, const char* method, const char*,
                              const char* data, size_t* size, void** state) {
    auto* self = static_cast<TestApiServer*>(cls);
    const bool post = strcmp(method, "POST") == 0;
    if (*state == nullptr) {
      *state = new std::string;
      return MHD_YES;
    }
    auto* body = static_cast<std::string*>(*state);
    if (*size > 0) {
      body->append(data, *size);
      *size = 0;
      return MHD_YES;
    }
    const std::unique_ptr<std::string> owned(body);
    *state = nullptr;
    int code = post ? 201 : 200;
    MHD_Response* response;
    {
      std::lock_guard lock(self->mutex_);
      bool watch = false;
      if (self->code_ != 0) {
        code = self->code_;
        response = Text("no");
      } else if (post) {
        if (strcmp(url, "/api/v1/namespaces/default/events") != 0) code = 404;
        self->events_.push_back(*owned);
        self->changed_.notify_all();
        response = Text("{}");
      } else if (strcmp(url, "/api/v1/pods") == 0) {
        response = self->Respond(connection, &watch);
      } else {
        code = 404;
        response = Text("no such path");
      }
    }
    const MHD_Result result =
        MHD_queue_response(connection, static_cast<unsigned>(code), response);
    MHD_destroy_response(response);
    return result;
  }

  MHD_Daemon* daemon_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  int code_ = 0;
  int watches_ended_ = 0;
  std::map<std::string, nlohmann::json> pods_;
  std::vector<std::string> log_;  // of watch lines; a version is a length of it
  std::deque<std::string> events_;
  std::vector<std::string> queries_;
};

}  // namespace rondo::kube

#endif  // RONDO_KUBE_TEST_API_SERVER_H_
