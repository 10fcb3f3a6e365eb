// SPDX-License-Identifier: Apache-2.0
#include "base/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/log.h"

namespace rondo {

EventLoop::EventLoop(const Clock& clock)
    : clock_(clock),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const absl::Status status = Watch(wake_.get(), [this] {
    uint64_t count;
    // Non-blocking; an empty counter just means that another wake-up was read
    // already.
    [[maybe_unused]] ssize_t n = read(wake_.get(), &count, sizeof(count));
  });
  if (!status.ok()) {
    LogError("event loop: ", status.message());
    abort();
  }
}

EventLoop::~EventLoop() = default;

absl::Status EventLoop::Watch(int fd, Task on_readable) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return ErrnoStatus("epoll_ctl");
  watches_[fd] = std::make_shared<Task>(std::move(on_readable));
  return absl::OkStatus();
}

void EventLoop::Unwatch(int fd) {
  if (watches_.erase(fd) > 0)
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

EventLoop::TimerId EventLoop::RunAfter(MonotonicTime delay, Task task) {
  const TimerId id = ++last_timer_;
  timers_.emplace(std::pair(clock_.Now() + delay, id), std::move(task));
  return id;
}

void EventLoop::CancelTimer(TimerId id) {
  std::erase_if(timers_,
                [id](const auto& timer) { return timer.first.second == id; });
}

void EventLoop::Post(Task task) {
  {
    std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(task));
  }
  const uint64_t one = 1;
  // Fails only when the counter is full, and then the loop is awake anyway.
  [[maybe_unused]] ssize_t n = write(wake_.get(), &one, sizeof(one));
}

void EventLoop::Run() {
  stop_ = false;
  while (!stop_) RunOnce(std::chrono::hours(1));
}

void EventLoop::Stop() {
  Post([this] { stop_ = true; });
}

void EventLoop::RunOnce(MonotonicTime max_wait) {
  epoll_event events[16];
  const int n = epoll_wait(epoll_.get(), events, 16, PollTimeoutMs(max_wait));
  for (int i = 0; i < n; ++i) {
    const auto watch = watches_.find(events[i].data.fd);
    if (watch == watches_.end()) continue;  // removed by an earlier callback
    const std::shared_ptr<Task> task = watch->second;
    (*task)();
  }
  RunPosted();
  RunTimers();
}

void EventLoop::RunPosted() {
  std::vector<Task> tasks;
  {
    std::lock_guard lock(posted_mutex_);
    tasks.swap(posted_);
  }
  for (Task& task : tasks) task();
}

void EventLoop::RunTimers() {
  // Only those due at the start: a timer that re-arms itself with no delay must
  // not starve the descriptors.
  const MonotonicTime now = clock_.Now();
  const TimerId newest = last_timer_;
  while (!timers_.empty()) {
    auto first = timers_.begin();
    if (first->first.first > now || first->first.second > newest) return;
    Task task = std::move(first->second);
    timers_.erase(first);
    task();
  }
}

int EventLoop::PollTimeoutMs(MonotonicTime max_wait) const {
  if (!timers_.empty())
    max_wait = std::min(max_wait, timers_.begin()->first.first - clock_.Now());
  if (max_wait.count() <= 0) return 0;
  // Rounded up, so that a timer is due when epoll returns.
  return static_cast<int>((max_wait.count() + 999'999) / 1'000'000);
}

}  // namespace rondo
