// SPDX-License-Identifier: Apache-2.0
//
// A config on a node: what the node would advertise, and what about the config
// does not suit the node. Works from numbers, not from a driver, so that it can
// be asked about a node elsewhere. Pure; any thread.

#ifndef RONDO_CONFIG_NODE_H_
#define RONDO_CONFIG_NODE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "config/plan.h"
#include "config/problem.h"

namespace rondo::config {

// Of one resource before sharing: "nvidia.com/gpu", "nvidia.com/mig-1g.5gb".
struct DeviceGroup {
  int count = 0;
  uint64_t memory_bytes = 0;  // of each device; 0 = not known
};
using DeviceGroups = std::map<std::string, DeviceGroup>;

struct Advertised {
  std::string resource;
  int64_t devices = 0;
};

// What kubelet would be told, by name. Each device is one, or its replicas;
// where two entries select one device under one name the larger number counts.
std::vector<Advertised> Advertise(const Plan& plan, const DeviceGroups& groups);

// The smallest node that the plan's entries fit: one device of each resource,
// or as many as `devices` names.
DeviceGroups SmallestNode(const Plan& plan);

// Entries for resources that the node does not have; `devices` that name more
// than it has; a device list too long for kubelet; too little memory a slot.
std::vector<Problem> CheckOnNode(const Plan& plan, const DeviceGroups& groups);

// slotMemory against a device that is given as `replicas` slots: an error at
// its place in the file where they need more than the memory_bytes that the
// device has. `device` names it ("a device", "GPU-…").
std::optional<Problem> CheckSlotMemory(const RondoOptions& options,
                                       int replicas, uint64_t memory_bytes,
                                       absl::string_view device);

// One thing that happens to running or new pods when `from` is replaced by
// `to`.
struct Change {
  std::string what;    // "nvidia.com/gpu: 4 -> 6 replicas of each device"
  std::string effect;  // "running pods stay; …"
};

// Empty if nothing changes for pods.
std::vector<Change> CompareForPods(const Plan& from, const Plan& to);

}  // namespace rondo::config

#endif  // RONDO_CONFIG_NODE_H_
