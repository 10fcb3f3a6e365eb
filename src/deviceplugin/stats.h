// SPDX-License-Identifier: Apache-2.0
//
// What the device plugin has counted: a self-consistent copy for metrics and
// the node API. Plain values. Counters only grow while the process lives.

#ifndef RONDO_DEVICEPLUGIN_STATS_H_
#define RONDO_DEVICEPLUGIN_STATS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rondo::deviceplugin {

// Upper bounds of the duration histogram's buckets, in seconds; one more
// bucket counts what is above the last.
inline constexpr std::array<double, 12> kDurationBounds = {
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025,
    0.005,   0.01,   0.025,   0.1,    0.5,   2.5};

struct DurationHistogram {
  // Not cumulative: each call is counted in exactly one bucket.
  std::array<uint64_t, kDurationBounds.size() + 1> buckets{};
  uint64_t count = 0;
  double sum_seconds = 0;

  void Observe(double seconds) {
    size_t i = 0;
    while (i < kDurationBounds.size() && seconds > kDurationBounds[i]) ++i;
    ++buckets[i];
    ++count;
    sum_seconds += seconds;
  }
};

struct RpcStats {
  DurationHistogram durations;  // failed calls included
  uint64_t errors = 0;
};

struct DeviceStats {
  std::string uuid;
  std::string gpu_uuid;
  std::string index;
  std::string name;
  int replicas = 0;  // 0: not shared
  bool healthy = true;
  std::string unhealthy_reason;  // empty when healthy
};

struct ResourceStats {
  std::string name;
  std::string original_name;
  std::string socket;  // path
  // Ids in the list as last published; healthy + unhealthy is kubelet's
  // capacity, healthy its allocatable.
  uint64_t healthy = 0;
  uint64_t unhealthy = 0;  // includes retired
  uint64_t retired = 0;    // no longer configured, kept for running pods
  bool registered = false;
  bool watched = false;  // kubelet has a ListAndWatch stream open
  uint64_t registrations = 0;
  uint64_t registration_failures = 0;
  uint64_t lists_sent = 0;
  uint64_t devices_allocated = 0;  // ids in successful Allocate answers
  RpcStats allocate;
  RpcStats preferred_allocation;
  std::vector<DeviceStats> devices;
};

struct Stats {
  std::vector<ResourceStats> resources;  // by name
  uint64_t kubelet_restarts = 0;         // kubelet.sock seen anew
  uint64_t xid_events = 0;               // that counted, ignored ones excluded
  uint64_t recoveries = 0;               // GPUs healthy again after a fault
  uint64_t nvml_wait_errors = 0;
};

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_STATS_H_
