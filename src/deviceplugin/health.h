// SPDX-License-Identifier: Apache-2.0
//
// Which devices are healthy: a pure state machine over Xid events, probes and
// NVML failures. No clock, thread or NVML of its own; not thread-safe.
//
// A critical Xid makes the GPU's devices unhealthy (all replicas; on MIG the
// device that the event names). NVIDIA's plugin leaves them so for ever; here a
// GPU comes back when it answers a probe and has stayed quiet for a hold-down,
// which doubles with each relapse.

#ifndef RONDO_DEVICEPLUGIN_HEALTH_H_
#define RONDO_DEVICEPLUGIN_HEALTH_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "deviceplugin/device.h"
#include "nvml/backend.h"

namespace rondo::deviceplugin {

// Which Xids count. From DP_DISABLE_HEALTHCHECKS and DP_ENABLE_HEALTHCHECKS:
// comma lists of numbers, any case, blanks trimmed; "all" or "xids" =
// everything; other words are skipped with a warning. What is enabled is never
// ignored, whatever else is said.
class XidFilter {
 public:
  XidFilter(absl::string_view disable, absl::string_view enable);
  bool Ignores(uint64_t xid) const;
  // No Xid can count: health need not be watched at all.
  bool IgnoresAll() const { return disable_all_ && enabled_.empty(); }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  bool disable_all_ = false;
  bool enable_all_ = false;
  std::set<uint64_t> ignored_;
  std::set<uint64_t> enabled_;
  std::vector<std::string> warnings_;
};

class Health {
 public:
  struct Options {
    MonotonicTime recovery_quiet = std::chrono::seconds(5);
    MonotonicTime probe_interval = std::chrono::seconds(15);
  };
  // At most this many doublings of recovery_quiet.
  static constexpr int kMaxRelapses = 5;

  Health(XidFilter filter, Options options)
      : filter_(std::move(filter)), options_(options) {}

  // The devices to watch from now on. Faults of GPUs that stay are kept.
  void SetDevices(const std::vector<Device>& devices, MonotonicTime now);

  // Each returns whether some device's health may have changed. OnXid: an event
  // without a UUID concerns every GPU; one that the filter ignores none.
  bool OnXid(const nvml::XidEvent& event, MonotonicTime now);
  // The answer to a probe.
  bool OnProbe(absl::string_view gpu_uuid, const absl::Status& status,
               MonotonicTime now);

  // Whether the GPU's events come. One that cannot be watched is not trusted.
  bool OnRegister(absl::string_view gpu_uuid, const absl::Status& status);

  // GPUs to ask now; each call counts as their probe being under way.
  struct Probe {
    std::string gpu_uuid;
    // It had an Xid: Backend::Probe must find it well. Otherwise it only has to
    // answer: a driver may wish for a reset of a GPU that works (a row of
    // memory to be remapped), which is no reason to take it away.
    bool after_xid = false;
  };
  std::vector<Probe> DueProbes(MonotonicTime now);
  // All GPUs are due at once: after a wait error, when NVML itself may be gone.
  void ProbeAllNow();

  // Empty: healthy. Of a device that is not watched: empty.
  std::string UnhealthyReason(absl::string_view device_uuid) const;

  uint64_t xid_events() const { return xid_events_; }
  uint64_t recoveries() const { return recoveries_; }

 private:
  struct Gpu {
    std::vector<Device> devices;
    std::map<std::string, std::string> xid_faults;  // device uuid -> reason
    std::string probe_fault;                        // empty: answers
    std::string register_fault;                     // empty: events come
    MonotonicTime last_event{0};
    MonotonicTime next_probe{0};
    MonotonicTime recovered_at{0};
    int relapses = 0;
  };

  bool Hit(Gpu& gpu, const nvml::XidEvent& event, MonotonicTime now);
  MonotonicTime Quiet(const Gpu& gpu) const;

  XidFilter filter_;
  Options options_;
  std::map<std::string, Gpu, std::less<>> gpus_;  // by GPU UUID
  uint64_t xid_events_ = 0;
  uint64_t recoveries_ = 0;
};

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_HEALTH_H_
