// SPDX-License-Identifier: Apache-2.0
//
// A Backend that a test holds in its hand. Thread-safe.

#ifndef RONDO_NVML_TEST_BACKEND_H_
#define RONDO_NVML_TEST_BACKEND_H_

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nvml/backend.h"

namespace rondo::nvml {

class FakeBackend : public Backend {
 public:
  // What the test says.
  void SendXid(const std::string& uuid, uint64_t xid) {
    XidEvent event;
    event.uuid = uuid;
    event.xid = xid;
    std::lock_guard<std::mutex> lock(mutex_);
    events_.push_back(event);
    changed_.notify_all();
  }
  // An Unavailable GPU does not answer anything; another error is one that only
  // Probe tells of.
  void SetProbe(const std::string& uuid, absl::Status status) {
    std::lock_guard<std::mutex> lock(mutex_);
    probes_[uuid] = std::move(status);
  }
  void SetRegister(const std::string& uuid, absl::Status status) {
    std::lock_guard<std::mutex> lock(mutex_);
    register_[uuid] = std::move(status);
  }
  // Every wait fails like this until it is ok again.
  void SetWait(absl::Status status) {
    std::lock_guard<std::mutex> lock(mutex_);
    wait_ = std::move(status);
    changed_.notify_all();
  }
  // All that the driver keeps; without any the GPU does not tell.
  void SetSamples(const std::string& uuid, std::vector<ProcessSample> samples) {
    std::lock_guard<std::mutex> lock(mutex_);
    samples_[uuid] = std::move(samples);
  }
  void SetLink(int a, int b, Link link) {
    std::lock_guard<std::mutex> lock(mutex_);
    links_[{a, b}] = link;
  }
  // Until `count` registrations of this GPU have succeeded.
  bool WaitForRegistrations(const std::string& uuid, int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10),
                             [&] { return registered_[uuid] >= count; });
  }
  int waits() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return waits_;
  }

  absl::StatusOr<std::string> DriverVersion() override { return "550.54.15"; }
  absl::StatusOr<int> CudaDriverVersion() override { return 12040; }
  absl::StatusOr<std::vector<absl::StatusOr<Gpu>>> ListGpus() override {
    return absl::UnimplementedError("tests pass their GPUs to Apply");
  }
  absl::StatusOr<Link> LinkBetween(const Gpu& a, const Gpu& b) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto link = links_.find({a.index, b.index});
    if (link == links_.end()) return absl::UnimplementedError("no link");
    return link->second;
  }
  absl::StatusOr<Memory> MemoryInfo(absl::string_view uuid) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const absl::Status status = probes_[std::string(uuid)];
    if (absl::IsUnavailable(status)) return status;
    return Memory();
  }
  absl::StatusOr<Utilization> UtilizationRates(absl::string_view) override {
    return absl::UnimplementedError("not used");
  }
  absl::StatusOr<std::vector<Process>> ComputeProcesses(
      absl::string_view) override {
    return absl::UnimplementedError("not used");
  }
  absl::StatusOr<std::vector<ProcessSample>> ProcessSamples(
      absl::string_view uuid, uint64_t since_us) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = samples_.find(std::string(uuid));
    if (found == samples_.end()) return absl::UnimplementedError("no samples");
    std::vector<ProcessSample> newer;
    for (const ProcessSample& sample : found->second)
      if (sample.time_us > since_us) newer.push_back(sample);
    return newer;
  }
  absl::Status Probe(absl::string_view uuid) override {
    std::lock_guard<std::mutex> lock(mutex_);
    return probes_[std::string(uuid)];
  }
  absl::Status RegisterXidEvents(absl::string_view uuid) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const absl::Status status = register_[std::string(uuid)];
    if (status.ok()) ++registered_[std::string(uuid)];
    changed_.notify_all();
    return status;
  }
  absl::StatusOr<std::optional<XidEvent>> WaitForEvent(
      std::chrono::milliseconds timeout) override {
    std::unique_lock<std::mutex> lock(mutex_);
    ++waits_;
    changed_.wait_for(lock, timeout,
                      [&] { return !events_.empty() || !wait_.ok(); });
    if (!wait_.ok()) return wait_;
    if (events_.empty()) return std::optional<XidEvent>();
    const XidEvent event = events_.front();
    events_.pop_front();
    return std::optional<XidEvent>(event);
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<XidEvent> events_;
  std::map<std::string, std::vector<ProcessSample>> samples_;
  std::map<std::string, absl::Status> probes_;
  std::map<std::string, absl::Status> register_;
  std::map<std::string, int> registered_;
  std::map<std::pair<int, int>, Link> links_;
  absl::Status wait_ = absl::OkStatus();
  int waits_ = 0;
};

}  // namespace rondo::nvml

#endif  // RONDO_NVML_TEST_BACKEND_H_
