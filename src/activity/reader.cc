// SPDX-License-Identifier: Apache-2.0
#include "activity/reader.h"

#include <algorithm>
#include <utility>

#include "rm/gpu.h"

namespace rondo::activity {
namespace {

using std::chrono::microseconds;

constexpr microseconds kShortest{1'000};
constexpr microseconds kLongest{1'000'000};
constexpr uint64_t kForgetNs = 3'600'000'000'000;

}  // namespace

Reader::Reader(rm::System& system, Options options, OnReport on_report)
    : system_(system),
      options_(std::move(options)),
      on_report_(std::move(on_report)),
      thread_([this] { Main(); }) {}

Reader::~Reader() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
  logs_.clear();
}

void Reader::SetInterval(const std::string& gpu_uuid, microseconds interval) {
  {
    std::lock_guard lock(mutex_);
    intervals_[gpu_uuid] = std::clamp(interval, kShortest, kLongest);
    changed_ = true;
  }
  wake_.notify_all();
}

microseconds Reader::IntervalOf(const std::string& uuid) const {
  std::lock_guard lock(mutex_);
  const auto found = intervals_.find(uuid);
  return found == intervals_.end() ? options_.interval : found->second;
}

void Reader::Main() {
  Time open_at{};
  std::unique_lock lock(mutex_);
  while (!stop_) {
    changed_ = false;
    lock.unlock();
    const Time now = std::chrono::steady_clock::now();
    if (logs_.empty() && now >= open_at) {
      Open();
      open_at = now + options_.retry_open;
    }
    const Time due = logs_.empty() ? open_at : DrainDue(now);
    lock.lock();
    wake_.wait_until(lock, due, [this] { return stop_ || changed_; });
  }
}

void Reader::Open() {
  AccountStats stats;
  std::vector<rm::Gpu> gpus;
  absl::StatusOr<std::unique_ptr<rm::Client>> client =
      options_.unusable.empty()
          ? rm::Client::Open(system_, options_.dev_dir)
          : absl::FailedPreconditionError(options_.unusable);
  absl::Status opened = client.status();
  if (client.ok()) {
    client_ = *std::move(client);
    absl::StatusOr<std::vector<rm::Gpu>> listed = rm::ListGpus(*client_);
    opened = listed.status();
    if (listed.ok()) gpus = *std::move(listed);
  }
  const Time now = std::chrono::steady_clock::now();
  for (const rm::Gpu& gpu : gpus) {
    GpuAccount& account = stats.gpus[gpu.uuid];
    auto log = SwitchLog::Open(*client_, gpu, options_.log);
    account.ready = log.ok();
    account.problem = std::string(log.status().message());
    // A failing bind destroys the drain timer that all readers of the node
    // share (545 and newer): after a first no, the other GPUs are not tried.
    if (!log.ok()) break;
    logs_[gpu.uuid] = {*std::move(log), now};
  }
  std::lock_guard lock(mutex_);
  tried_ = true;
  opened_ = opened;
  for (auto& [uuid, account] : stats.gpus) {
    GpuAccount& kept = stats_.gpus[uuid];
    kept.ready = account.ready;
    kept.problem = account.problem;
  }
}

// Drains what is due; returns when the next is.
Reader::Time Reader::DrainDue(Time now) {
  Time next = now + kLongest;
  for (auto entry = logs_.begin(); entry != logs_.end();) {
    const std::string uuid = entry->first;
    Log& log = entry->second;
    const microseconds interval = IntervalOf(uuid);
    // A rate that was raised takes effect at once.
    log.due = std::min(log.due, now + interval);
    if (log.due <= now) {
      log.due = now + interval;
      const absl::StatusOr<Report> report = log.log->Drain();
      if (!report.ok()) {
        std::lock_guard lock(mutex_);
        stats_.gpus[uuid].ready = false;
        stats_.gpus[uuid].problem = std::string(report.status().message());
        entry = logs_.erase(entry);
        continue;
      }
      Count(uuid, *log.log, *report);
      on_report_(uuid, *report);
    }
    next = std::min(next, log.due);
    ++entry;
  }
  return next;
}

void Reader::Count(const std::string& uuid, const SwitchLog& log,
                   const Report& report) {
  std::lock_guard lock(mutex_);
  GpuAccount& account = stats_.gpus[uuid];
  account.observed_ns += report.interval_ns;
  account.other_ns += report.other_ns;
  account.odd_records += report.odd_records;
  account.records = log.records();
  account.drops = log.drops();
  for (const Report::Process& process : report.processes) {
    ProcessTime& time = account.processes[process.pid];
    time.busy_ns += process.busy_ns;
    time.stays += process.stays;
    idle_ns_[process.pid] = 0;
  }
  std::erase_if(account.processes, [&](const auto& entry) {
    return (idle_ns_[entry.first] += report.interval_ns) > kForgetNs;
  });
  std::erase_if(idle_ns_,
                [](const auto& entry) { return entry.second > kForgetNs; });
}

Reader::LogState Reader::StateOf(const std::string& gpu_uuid) const {
  std::lock_guard lock(mutex_);
  LogState state{.tried = tried_};
  const auto gpu = stats_.gpus.find(gpu_uuid);
  if (gpu != stats_.gpus.end()) {
    state.ready = gpu->second.ready;
    state.problem = gpu->second.problem;
  } else {
    state.problem = opened_.ok() ? "another GPU's cannot be read"
                                 : std::string(opened_.message());
  }
  return state;
}

AccountStats Reader::Snapshot() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace rondo::activity
