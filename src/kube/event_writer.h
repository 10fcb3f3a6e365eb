// SPDX-License-Identifier: Apache-2.0
//
// Tells users about their pods where they look: Warning events, as `kubectl
// describe pod` shows them. Has a thread of its own; calls back from it.
//
// One occurrence makes one event: its name is made of what it says, so that
// neither another Add nor a restart of the agent makes a second one while the
// first one lives (an hour, as clusters are set up). Failure: a server that
// cannot be reached is tried again, for some minutes; an event that cannot be
// written is reported by on_error, once per change of text, and dropped.

#ifndef RONDO_KUBE_EVENT_WRITER_H_
#define RONDO_KUBE_EVENT_WRITER_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "kube/api_client.h"

namespace rondo::kube {

struct PodWarning {
  std::string name_space;
  std::string pod;
  std::string uid;
  std::string reason;  // one word, "RondoAnnotationInvalid"
  std::string message;
};

// The Event object, as JSON, seen at unix_seconds.
std::string EventJson(const PodWarning& warning, const std::string& node_name,
                      int64_t unix_seconds);

class EventWriter {
 public:
  struct Options {
    std::string node_name;
    std::chrono::milliseconds first_pause{1000};
    std::chrono::milliseconds longest_pause{30'000};
    int attempts = 10;
  };
  using OnError = std::function<void(const absl::Status&)>;

  EventWriter(std::unique_ptr<ApiClient> client, Options options,
              OnError on_error);
  ~EventWriter();

  // Any thread. Of more than 256 that wait, the oldest are dropped.
  void Add(PodWarning warning);

 private:
  void Run();
  // Posts the event, with attempts and pauses; false: the writer is ending.
  bool Write(const PodWarning& warning);
  bool Pause(std::chrono::milliseconds pause);

  const std::unique_ptr<ApiClient> client_;
  const Options options_;
  const OnError on_error_;
  std::string last_error_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;               // guarded by mutex_
  std::deque<PodWarning> waiting_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace rondo::kube

#endif  // RONDO_KUBE_EVENT_WRITER_H_
