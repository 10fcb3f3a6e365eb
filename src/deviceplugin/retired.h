// SPDX-License-Identifier: Apache-2.0
//
// Ids that a new plan no longer has but kubelet may still need. Pure; not
// thread-safe.
//
// kubelet drops a device from the list as soon as a new list lacks it, whoever
// holds it: the pod's status then shows it as healthy for ever, and a device
// that vanishes between kubelet's choice and our Allocate answer crashes
// kubelet (it reads the topology of a device it no longer has). So an id first
// becomes unhealthy, which takes it from the node's allocatable at once, and
// leaves the list when no pod holds it.

#ifndef RONDO_DEVICEPLUGIN_RETIRED_H_
#define RONDO_DEVICEPLUGIN_RETIRED_H_

#include <map>
#include <set>
#include <string>

#include "base/clock.h"
#include "deviceplugin/device.h"

namespace rondo::deviceplugin {

class Retired {
 public:
  // The resource changes from one form to the other: what is only in `before`
  // retires, what is in `after` is back. Health of a device does not matter.
  void OnChange(const Resource& before, const Resource& after,
                MonotonicTime now);

  // Ids that pods hold of this resource and that neither `current` nor the
  // retired list has: pods outlive agents. Only those of known devices (by
  // UUID): other plugins use the prefix nvidia.com/ too.
  void AddHeld(const std::set<std::string>& held, const Resource& current,
               const std::map<std::string, Device>& known, MonotonicTime now);

  // Forgets ids that nobody holds and that have retired at least `min` ago.
  // Returns whether there were any.
  bool Prune(const std::set<std::string>& held, MonotonicTime now,
             MonotonicTime min);

  // id -> its device
  const std::map<std::string, Device>& devices() const { return devices_; }
  bool empty() const { return devices_.empty(); }

 private:
  std::map<std::string, Device> devices_;
  std::map<std::string, MonotonicTime> since_;
};

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_RETIRED_H_
