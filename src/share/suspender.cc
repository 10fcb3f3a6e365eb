// SPDX-License-Identifier: Apache-2.0
#include "share/suspender.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace rondo::share {
namespace {

constexpr MonotonicTime kRetryOpen = std::chrono::seconds(10);

}  // namespace

Suspender::Suspender(EventLoop& loop, rm::System& system, std::string dev_dir,
                     ReadyChanged on_ready)
    : loop_(loop),
      system_(system),
      dev_dir_(std::move(dev_dir)),
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

absl::Status Suspender::Ensure() {
  if (client_ != nullptr) return absl::OkStatus();
  const MonotonicTime now = RealClock().Now();
  if (told_ && now - tried_ < kRetryOpen) return open_status_;
  tried_ = now;
  absl::StatusOr<std::unique_ptr<rm::Client>> client =
      rm::Client::Open(system_, dev_dir_);
  absl::Status status = client.status();
  if (status.ok()) {
    absl::StatusOr<std::vector<rm::Gpu>> gpus = rm::ListGpus(**client);
    status = gpus.status();
    if (status.ok()) {
      gpus_ = *std::move(gpus);
      client_ = *std::move(client);
    }
  }
  if (!told_ || status != open_status_)
    Answer([this, status] { on_ready_(status); });
  told_ = true;
  open_status_ = status;
  return status;
}

absl::StatusOr<const rm::Gpu*> Suspender::FindGpu(const std::string& uuid) {
  if (absl::Status status = Ensure(); !status.ok()) return status;
  const auto gpu =
      std::find_if(gpus_.begin(), gpus_.end(),
                   [&](const rm::Gpu& g) { return g.uuid == uuid; });
  if (gpu == gpus_.end())
    return absl::NotFoundError(
        absl::StrCat("the driver's client sees no GPU ", uuid));
  return &*gpu;
}

std::map<ProcessId, absl::Status> Suspender::SwitchAll(
    const std::string& gpu_uuid, bool suspend, const Channels& channels) {
  const absl::StatusOr<const rm::Gpu*> gpu = FindGpu(gpu_uuid);
  if (gpu.ok())
    return suspensions_.Switch(
        suspend, channels, [&](bool off, const std::vector<rm::Channel>& list) {
          return rm::SwitchChannels(*client_, **gpu, off, list);
        });
  std::map<ProcessId, absl::Status> results;
  for (const auto& [process, list] : channels) results[process] = gpu.status();
  return results;
}

void Suspender::Switch(const std::string& gpu_uuid, bool suspend,
                       Channels channels, SwitchDone done) {
  Enqueue([this, gpu_uuid, suspend, channels = std::move(channels),
           done = std::move(done)] {
    auto results = SwitchAll(gpu_uuid, suspend, channels);
    Answer([done, results = std::move(results)] { done(results); });
  });
}

void Suspender::Forget(ProcessId process) {
  Enqueue([this, process] { suspensions_.Forget(process); });
}

void Suspender::ReadBytes(const std::string& gpu_uuid,
                          std::vector<uint32_t> pids, BytesDone done) {
  Enqueue([this, gpu_uuid, pids = std::move(pids), done = std::move(done)] {
    const absl::StatusOr<const rm::Gpu*> gpu = FindGpu(gpu_uuid);
    using Bytes = absl::StatusOr<std::map<uint32_t, uint64_t>>;
    Bytes bytes =
        gpu.ok() ? rm::PidBytes(*client_, **gpu, pids) : Bytes(gpu.status());
    Answer([done, bytes = std::move(bytes)] { done(bytes); });
  });
}

}  // namespace rondo::share
