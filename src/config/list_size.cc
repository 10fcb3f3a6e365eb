// SPDX-License-Identifier: Apache-2.0
//
// How long a device list may be. Kubelet's gRPC client refuses a message of
// more than 4 MiB (kubernetes #109304), and then the resource stays at 0 with
// nothing but a line in kubelet's log to say why.

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "config/compile.h"

namespace rondo::config {
namespace {

constexpr int64_t kKubeletLimit = 4 << 20;

int Digits(int64_t n) {
  int digits = 1;
  for (; n >= 10; n /= 10) ++digits;
  return digits;
}

// Encoded size of replica n of a device in ListAndWatchResponse, at its
// longest: v1beta1.Device{ID "GPU-<36>::<n>", health "Unhealthy", topology with
// one NUMA node above 0}. A list that fits only while all GPUs are well would
// be lost with the message that one is not.
int64_t DeviceBytes(int64_t n) {
  const int64_t id = 2 + 40 + 2 + Digits(n);
  const int64_t health = 2 + 9;
  const int64_t topology = 6;
  return 2 + id + health + topology;
}

// Sum over replicas 0 .. count-1.
int64_t ReplicasBytes(int64_t count) {
  int64_t total = 0;
  int64_t first = 0;
  for (int64_t next = 10; first < count; next *= 10) {
    const int64_t end = std::min(next, count);
    total += (end - first) * DeviceBytes(first);
    first = end;
  }
  return total;
}

}  // namespace

int MaxReplicasThatFit(int devices) {
  devices = std::max(devices, 1);
  int64_t low = 0;
  int64_t high = kKubeletLimit / DeviceBytes(0) + 1;
  while (low + 1 < high) {
    const int64_t middle = (low + high) / 2;
    (ReplicasBytes(middle) * devices <= kKubeletLimit ? low : high) = middle;
  }
  return static_cast<int>(low);
}

std::vector<Problem> CheckDeviceListSize(
    const Plan& plan, const std::map<std::string, int>& devices) {
  struct List {
    int64_t bytes = 0;
    int64_t devices = 0;
    const SharedResource* longest = nullptr;
  };
  std::map<std::string, List> lists;  // by advertised name
  for (const SharedResource& resource : plan.sharing.resources) {
    const auto it = devices.find(resource.name);
    if (it == devices.end() || it->second <= 0) continue;
    int64_t count = it->second;
    if (resource.devices.kind == DeviceSelector::Kind::kCount) {
      count = std::min<int64_t>(count, resource.devices.count);
    } else if (resource.devices.kind == DeviceSelector::Kind::kList) {
      count = std::min<int64_t>(count, resource.devices.list.size());
    }
    List& list =
        lists[resource.rename.empty() ? resource.name : resource.rename];
    list.bytes += ReplicasBytes(resource.replicas) * count;
    list.devices += count;
    if (!list.longest || list.longest->replicas < resource.replicas) {
      list.longest = &resource;
    }
  }
  std::vector<Problem> problems;
  for (const auto& [name, list] : lists) {
    if (list.bytes <= kKubeletLimit) continue;
    problems.push_back(MakeProblem(
        Code::kListTooLong, list.longest->line, list.longest->column,
        absl::StrCat(list.longest->replicas, " replicas on ", list.devices,
                     list.devices == 1 ? " device" : " devices", " make the ",
                     name,
                     " list longer than the 4 MiB that kubelet accepts: the "
                     "node would offer 0"),
        absl::StrCat("at most ", MaxReplicasThatFit(list.devices), " fit")));
  }
  return problems;
}

}  // namespace rondo::config
