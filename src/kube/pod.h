// SPDX-License-Identifier: Apache-2.0
//
// Pods of the node, as far as sharing needs them. Plain values; any thread.

#ifndef RONDO_KUBE_POD_H_
#define RONDO_KUBE_POD_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rondo::kube {

struct Pod {
  std::string name_space;
  std::string name;
  std::string uid;
  int64_t created_unix_seconds = 0;                // 0: not known
  std::map<std::string, std::string> annotations;  // those that were asked for
  bool operator==(const Pod&) const = default;
};

// Devices of one resource that a container holds.
struct DeviceHolder {
  std::string name_space;
  std::string pod;
  std::string container;
  std::string resource;
  std::vector<std::string> device_ids;
  bool operator==(const DeviceHolder&) const = default;
};

}  // namespace rondo::kube

#endif  // RONDO_KUBE_POD_H_
