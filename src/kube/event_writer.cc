// SPDX-License-Identifier: Apache-2.0
#include "kube/event_writer.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

namespace rondo::kube {
namespace {

using nlohmann::json;

constexpr size_t kMostWaiting = 256;
// The API server takes no more.
constexpr size_t kMostMessage = 1024;
constexpr size_t kMostPodName = 200;

// The front of the event's name: a part of the pod's that is a name itself.
std::string NameOf(const std::string& pod) {
  std::string name = pod.substr(0, kMostPodName);
  while (!name.empty() && !absl::ascii_isalnum(name.back())) name.pop_back();
  return name;
}

// FNV-1a: the same on every machine and in every version.
uint64_t Hash(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

}  // namespace

std::string EventJson(const PodWarning& warning, const std::string& node_name,
                      int64_t unix_seconds) {
  const std::string time = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ",
                                            absl::FromUnixSeconds(unix_seconds),
                                            absl::UTCTimeZone());
  const uint64_t hash = Hash(
      absl::StrCat(warning.uid, "\n", warning.reason, "\n", warning.message));
  const json event = {
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata",
       {{"name", absl::StrFormat("%s.%016x", NameOf(warning.pod), hash)},
        {"namespace", warning.name_space}}},
      {"involvedObject",
       {{"apiVersion", "v1"},
        {"kind", "Pod"},
        {"namespace", warning.name_space},
        {"name", warning.pod},
        {"uid", warning.uid}}},
      {"type", "Warning"},
      {"reason", warning.reason},
      {"message", warning.message.substr(0, kMostMessage)},
      {"source", {{"component", "rondo"}, {"host", node_name}}},
      {"reportingComponent", "rondo"},
      {"reportingInstance", node_name},
      {"firstTimestamp", time},
      {"lastTimestamp", time},
      {"count", 1}};
  // Annotations are somebody's bytes: what is not UTF-8 is replaced.
  return event.dump(-1, ' ', false, json::error_handler_t::replace);
}

EventWriter::EventWriter(std::unique_ptr<ApiClient> client, Options options,
                         OnError on_error)
    : client_(std::move(client)),
      options_(std::move(options)),
      on_error_(std::move(on_error)),
      thread_([this] { Run(); }) {}

EventWriter::~EventWriter() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  client_->Cancel();
  changed_.notify_all();
  thread_.join();
}

void EventWriter::Add(PodWarning warning) {
  std::lock_guard lock(mutex_);
  if (waiting_.size() >= kMostWaiting) waiting_.pop_front();
  waiting_.push_back(std::move(warning));
  changed_.notify_all();
}

bool EventWriter::Pause(std::chrono::milliseconds pause) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, pause, [this] { return stop_; });
}

bool EventWriter::Write(const PodWarning& warning) {
  const std::string path =
      absl::StrCat("/api/v1/namespaces/", warning.name_space, "/events");
  const std::string body =
      EventJson(warning, options_.node_name, time(nullptr));
  std::chrono::milliseconds pause = options_.first_pause;
  absl::Status status;
  for (int attempt = 1;; ++attempt) {
    status = client_->Post(path, body);
    if (absl::IsCancelled(status)) return false;
    if (status.ok() || absl::IsAlreadyExists(status)) {
      last_error_.clear();
      return true;
    }
    if (!absl::IsUnavailable(status) || attempt >= options_.attempts) break;
    if (!Pause(pause)) return false;
    pause = std::min(pause * 2, options_.longest_pause);
  }
  if (std::string text(status.message()); text != last_error_) {
    last_error_ = std::move(text);
    on_error_(status);
  }
  return true;
}

void EventWriter::Run() {
  while (true) {
    PodWarning warning;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
      if (stop_) return;
      warning = std::move(waiting_.front());
      waiting_.pop_front();
    }
    if (!Write(warning)) return;
  }
}

}  // namespace rondo::kube
