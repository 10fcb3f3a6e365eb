// SPDX-License-Identifier: Apache-2.0
//
// The thread of a watcher of the API server: a list, then a watch from the
// list's version on, and again when that ends. The watchers (node_watcher.h,
// pod_watcher.h) say what is asked and read what comes; all callbacks are from
// the thread, which the destructor ends and joins.
//
// Failure: never gives up. An error is told by on_error, once until its text
// changes or a list was good again, and tried again after a pause, which
// doubles until a watch lasts longer than it. That the server ends a watch, or
// calls it too old, is no error.

#ifndef RONDO_KUBE_WATCH_THREAD_H_
#define RONDO_KUBE_WATCH_THREAD_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/api_client.h"

namespace rondo::kube {

// Reads one list, as it comes.
class ListReader {
 public:
  virtual ~ListReader() = default;
  virtual absl::Status Add(absl::string_view bytes) = 0;  // an error ends it
  // All of it is there. Returns its resourceVersion.
  virtual absl::StatusOr<std::string> Finish() = 0;
};

class WatchThread {
 public:
  struct Options {
    std::string list_path;   // "/api/v1/nodes/n1"
    std::string watch_path;  // "/api/v1/nodes?watch=1": the version is appended
    std::chrono::milliseconds first_pause{1000};
    std::chrono::milliseconds longest_pause{30'000};
  };
  using OnList = std::function<std::unique_ptr<ListReader>()>;
  // Of a list that is one object (ApiClient::kMostObject): called with all of
  // it; returns its resourceVersion.
  using OnBody =
      std::function<absl::StatusOr<std::string>(absl::string_view body)>;
  static OnList WholeBody(OnBody on_body);
  // A line of the watch, never an empty one. An error ends the watch: what the
  // line said is not known, and a new list tells it. OutOfRange where the watch
  // is too old.
  using OnLine = std::function<absl::Status(absl::string_view line)>;
  using OnError = std::function<void(const absl::Status&)>;

  WatchThread(std::unique_ptr<ApiClient> client, Options options,
              OnList on_list, OnLine on_line, OnError on_error);
  ~WatchThread();
  WatchThread(const WatchThread&) = delete;
  WatchThread& operator=(const WatchThread&) = delete;

 private:
  void Run();
  absl::Status ListAndWatch();

  const std::unique_ptr<ApiClient> client_;
  const Options options_;
  const OnList on_list_;
  const OnLine on_line_;
  const OnError on_error_;
  std::string told_;  // the error; of thread_ only

  std::mutex mutex_;
  std::condition_variable stop_changed_;
  bool stop_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace rondo::kube

#endif  // RONDO_KUBE_WATCH_THREAD_H_
