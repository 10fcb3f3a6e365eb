// SPDX-License-Identifier: Apache-2.0
//
// A Backend that a test holds in its hand. Thread-safe.

#ifndef RONDO_DEVICEPLUGIN_TEST_BACKEND_H_
#define RONDO_DEVICEPLUGIN_TEST_BACKEND_H_

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nvml/backend.h"

namespace rondo::deviceplugin {

class FakeBackend : public nvml::Backend {
 public:
  // What the test says.
  void SendXid(const std::string& uuid, uint64_t xid) {
    nvml::XidEvent event;
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
  void SetSamples(const std::string& uuid,
                  std::vector<nvml::ProcessSample> samples) {
    std::lock_guard<std::mutex> lock(mutex_);
    samples_[uuid] = std::move(samples);
  }
  void SetLink(int a, int b, nvml::Link link) {
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
  absl::StatusOr<std::vector<absl::StatusOr<nvml::Gpu>>> ListGpus() override {
    return absl::UnimplementedError("tests pass their GPUs to Apply");
  }
  absl::StatusOr<nvml::Link> LinkBetween(const nvml::Gpu& a,
                                         const nvml::Gpu& b) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto link = links_.find({a.index, b.index});
    if (link == links_.end()) return absl::UnimplementedError("no link");
    return link->second;
  }
  absl::StatusOr<nvml::Memory> MemoryInfo(absl::string_view uuid) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const absl::Status status = probes_[std::string(uuid)];
    if (absl::IsUnavailable(status)) return status;
    return nvml::Memory();
  }
  absl::StatusOr<nvml::Utilization> UtilizationRates(
      absl::string_view) override {
    return absl::UnimplementedError("not used");
  }
  absl::StatusOr<std::vector<nvml::Process>> ComputeProcesses(
      absl::string_view) override {
    return absl::UnimplementedError("not used");
  }
  absl::StatusOr<std::vector<nvml::ProcessSample>> ProcessSamples(
      absl::string_view uuid, uint64_t since_us) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = samples_.find(std::string(uuid));
    if (found == samples_.end()) return absl::UnimplementedError("no samples");
    std::vector<nvml::ProcessSample> newer;
    for (const nvml::ProcessSample& sample : found->second)
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
  absl::StatusOr<std::optional<nvml::XidEvent>> WaitForEvent(
      std::chrono::milliseconds timeout) override {
    std::unique_lock<std::mutex> lock(mutex_);
    ++waits_;
    changed_.wait_for(lock, timeout,
                      [&] { return !events_.empty() || !wait_.ok(); });
    if (!wait_.ok()) return wait_;
    if (events_.empty()) return std::optional<nvml::XidEvent>();
    const nvml::XidEvent event = events_.front();
    events_.pop_front();
    return std::optional<nvml::XidEvent>(event);
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<nvml::XidEvent> events_;
  std::map<std::string, std::vector<nvml::ProcessSample>> samples_;
  std::map<std::string, absl::Status> probes_;
  std::map<std::string, absl::Status> register_;
  std::map<std::string, int> registered_;
  std::map<std::pair<int, int>, nvml::Link> links_;
  absl::Status wait_ = absl::OkStatus();
  int waits_ = 0;
};

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_TEST_BACKEND_H_
