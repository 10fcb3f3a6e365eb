// SPDX-License-Identifier: Apache-2.0
#include "share/time/suspender.h"

#include "base/status.h"

namespace rondo::share {
namespace {

constexpr MonotonicTime kRetryOpen = std::chrono::seconds(10);

}  // namespace

Suspender::Suspender(EventLoop& loop, const Clock& clock, rm::System& system,
                     std::string dev_dir, std::string gpu_uuid,
                     ReadyChanged on_ready)
    : loop_(loop),
      clock_(clock),
      system_(system),
      dev_dir_(std::move(dev_dir)),
      gpu_uuid_(std::move(gpu_uuid)),
      on_ready_(std::move(on_ready)),
      thread_([this] { Main(); }) {
  Enqueue([this] { Ensure().IgnoreError(); });
}

Suspender::~Suspender() {
  *alive_ = false;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    jobs_.clear();
  }
  wake_.notify_all();
  thread_.join();
}

void Suspender::Enqueue(Job job) {
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

void Suspender::Main() {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
      if (stop_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

void Suspender::Answer(std::function<void()> task) {
  // alive_ is written and read on the loop's thread only.
  loop_.Post([alive = alive_, task = std::move(task)] {
    if (*alive) task();
  });
}

absl::Status Suspender::Open() {
  RONDO_ASSIGN_OR_RETURN(std::unique_ptr<rm::Client> client,
                         rm::Client::Open(system_, dev_dir_));
  RONDO_ASSIGN_OR_RETURN(gpu_, rm::FindGpu(*client, gpu_uuid_));
  client_ = std::move(client);
  return absl::OkStatus();
}

absl::Status Suspender::Ensure() {
  if (client_ != nullptr) return absl::OkStatus();
  const MonotonicTime now = RealClock().Now();
  if (told_ && now - tried_ < kRetryOpen) return open_status_;
  tried_ = now;
  const absl::Status status = Open();
  if (!told_ || status != open_status_)
    Answer([this, status] { on_ready_(status); });
  told_ = true;
  open_status_ = status;
  return status;
}

std::map<ProcessId, absl::Status> Suspender::SwitchAll(
    bool suspend, const Channels& channels, MonotonicTime not_after) {
  absl::Status ready = Ensure();
  if (ready.ok() && clock_.Now() > not_after)
    ready = absl::DeadlineExceededError("too late to begin");
  if (ready.ok())
    return suspensions_.Switch(
        suspend, channels, [&](bool off, const std::vector<rm::Channel>& list) {
          return rm::SwitchChannels(*client_, gpu_, off, list);
        });
  std::map<ProcessId, absl::Status> results;
  for (const auto& [process, list] : channels) results[process] = ready;
  return results;
}

void Suspender::Switch(bool suspend, Channels channels, MonotonicTime not_after,
                       SwitchDone done) {
  Enqueue([this, suspend, not_after, channels = std::move(channels),
           done = std::move(done)] {
    auto results = SwitchAll(suspend, channels, not_after);
    Answer([done, results = std::move(results)] { done(results); });
  });
}

void Suspender::Forget(ProcessId process) {
  Enqueue([this, process] { suspensions_.Forget(process); });
}

void Suspender::ReadBytes(std::vector<uint32_t> pids, BytesDone done) {
  Enqueue([this, pids = std::move(pids), done = std::move(done)] {
    const absl::Status ready = Ensure();
    using Bytes = absl::StatusOr<std::map<uint32_t, uint64_t>>;
    Bytes bytes =
        ready.ok() ? rm::PidBytes(*client_, gpu_, pids) : Bytes(ready);
    Answer([done, bytes = std::move(bytes)] { done(bytes); });
  });
}

}  // namespace rondo::share
