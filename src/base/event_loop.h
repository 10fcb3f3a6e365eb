// SPDX-License-Identifier: Apache-2.0
//
// One thread's loop over file descriptors, timers and tasks from other threads.
// The agent has exactly one: it owns the agent's state, and every other thread
// only posts to it.
//
// Threads: Post and Stop may be called from any thread; everything else only
// from the loop's own thread (or before Run). Callbacks run on the loop's
// thread, one at a time, and may add or remove watches and timers. Failure: the
// constructor aborts if the kernel gives no epoll or eventfd descriptor (the
// process cannot work then).

#ifndef RONDO_BASE_EVENT_LOOP_H_
#define RONDO_BASE_EVENT_LOOP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace rondo {

class EventLoop {
 public:
  using Task = std::function<void()>;
  using TimerId = uint64_t;

  explicit EventLoop(const Clock& clock = RealClock());
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Calls on_readable while fd has input, hang-up or error. The caller keeps fd
  // open until Unwatch.
  absl::Status Watch(int fd, Task on_readable);
  void Unwatch(int fd);

  // Runs task once, after at least delay. 0 is never a valid id.
  TimerId RunAfter(MonotonicTime delay, Task task);
  void CancelTimer(TimerId id);

  // Runs task soon. Tasks of one thread run in the order of their posting;
  // those left when Run returns never run.
  void Post(Task task);

  // Runs until Stop.
  void Run();
  void Stop();

  // Runs what is ready now, waiting at most max_wait for the first thing. For
  // tests and short programs.
  void RunOnce(MonotonicTime max_wait);

 private:
  void RunPosted();
  void RunTimers();
  int PollTimeoutMs(MonotonicTime max_wait) const;

  const Clock& clock_;
  UniqueFd epoll_;
  UniqueFd wake_;
  bool stop_ = false;
  // shared_ptr: a callback may unwatch its own descriptor while it runs.
  std::map<int, std::shared_ptr<Task>> watches_;
  std::map<std::pair<MonotonicTime, TimerId>, Task> timers_;
  TimerId last_timer_ = 0;

  std::mutex posted_mutex_;
  std::vector<Task> posted_;  // guarded by posted_mutex_
};

}  // namespace rondo

#endif  // RONDO_BASE_EVENT_LOOP_H_
