// SPDX-License-Identifier: Apache-2.0
//
// What one resource looks like at one moment: its devices, which ids of them
// are advertised, and which are healthy. Immutable once built, so that gRPC
// threads read it without a lock. Ids are kept as runs: 8000 replicas are 8
// runs and no heap object each.

#ifndef RONDO_DEVICEPLUGIN_VIEW_H_
#define RONDO_DEVICEPLUGIN_VIEW_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "deviceplugin/device.h"

namespace rondo::deviceplugin {

// Consecutive replicas [begin, end) of one device, or the device itself.
struct Run {
  int device = 0;  // index into View::devices()
  uint32_t begin = 0;
  uint32_t end = 1;
  bool is_replica = false;
  bool healthy = true;
  bool retired = false;  // not configured any more; never healthy

  uint32_t size() const { return end - begin; }
  bool operator==(const Run&) const = default;
};

class View {
 public:
  // runs: in the order in which kubelet shall see them; those of one device
  // are neighbours. devices: each uuid once.
  View(std::string name, std::vector<Device> devices, std::vector<Run> runs);
  // Holds views into its own strings.
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  const std::string& name() const { return name_; }
  const std::vector<Device>& devices() const { return devices_; }
  const std::vector<Run>& runs() const { return runs_; }

  // The device of an advertised id, retired ones included; -1 if unknown.
  int Find(const DeviceId& id) const;
  // Advertised ids of a device, whatever their health.
  uint32_t Total(int device) const { return totals_[device]; }
  bool any_mig() const { return any_mig_; }

  // kubelet would see no difference.
  bool SameList(const View& other) const;

  // The v1beta1.ListAndWatchResponse message of this view, encoded.
  std::string EncodeList() const;
  // Its size without the encoding; kubelet takes at most 4 MiB.
  size_t EncodedSize() const;

 private:
  std::string name_;
  std::vector<Device> devices_;
  std::vector<Run> runs_;
  std::vector<uint32_t> totals_;
  absl::flat_hash_map<absl::string_view, int> by_uuid_;
  std::vector<size_t> first_run_;  // of each device, index into runs_
  bool any_mig_ = false;
};

// The view of a resource with all replicas. healthy: one flag a device.
// retired: ids that are no longer part of the resource, with their devices.
View MakeView(const Resource& resource, const std::vector<bool>& healthy,
              const std::map<std::string, Device>& retired);

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_VIEW_H_
