// SPDX-License-Identifier: Apache-2.0
//
// The thread that waits for Xid events and probes GPUs, around Health.
//
// Threads: all methods from any thread; NVML is called on the watcher's own
// thread only, so a driver that hangs stops nobody else. Failure: NVML errors
// are counted and lead to probes with a growing pause; the thread never gives
// up, so a driver that comes back is seen.

#ifndef RONDO_DEVICEPLUGIN_HEALTH_WATCHER_H_
#define RONDO_DEVICEPLUGIN_HEALTH_WATCHER_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "deviceplugin/health.h"
#include "nvml/backend.h"

namespace rondo::deviceplugin {

class HealthWatcher {
 public:
  // on_change runs on the watcher's thread. The filter that ignores all starts
  // no thread.
  HealthWatcher(nvml::Backend& backend, const Clock& clock, XidFilter filter,
                Health::Options options, std::function<void()> on_change);
  // Waits for the NVML call under way: kWait at most, if the driver answers.
  ~HealthWatcher();
  HealthWatcher(const HealthWatcher&) = delete;
  HealthWatcher& operator=(const HealthWatcher&) = delete;

  static constexpr std::chrono::milliseconds kWait{500};

  void SetDevices(const std::vector<Device>& devices);
  // Empty: healthy.
  std::string UnhealthyReason(absl::string_view device_uuid) const;

  struct Counters {
    uint64_t xid_events = 0;
    uint64_t recoveries = 0;
    uint64_t wait_errors = 0;
  };
  Counters counters() const;

 private:
  void Run();
  // Each returns whether some health may have changed.
  bool RegisterNew();
  bool WaitOnce();
  bool ProbeDue();
  // Sleeps, unless the watcher ends or gets new devices.
  void Pause(std::chrono::milliseconds time);

  nvml::Backend& backend_;
  const Clock& clock_;
  const std::function<void()> on_change_;
  const MonotonicTime register_retry_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  Health health_;                 // guarded by mutex_
  std::set<std::string> wanted_;  // GPU UUIDs; guarded by mutex_
  bool new_devices_ = false;      // guarded by mutex_
  bool stop_ = false;             // guarded by mutex_
  uint64_t wait_errors_ = 0;      // guarded by mutex_

  // Used by the thread only.
  std::set<std::string> listening_;  // GPUs whose events come
  std::set<std::string> without_;    // GPUs that have no events
  MonotonicTime next_register_{0};
  std::chrono::milliseconds backoff_{0};

  std::thread thread_;
};

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_HEALTH_WATCHER_H_
