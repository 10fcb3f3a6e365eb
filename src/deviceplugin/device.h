// SPDX-License-Identifier: Apache-2.0
//
// The devices behind an advertised resource, and the ids that kubelet sees.
// Plain values; any thread.
//
// A device that is not shared is advertised under its NVML UUID. A shared one
// is advertised as <UUID>::<n>, n from 0, decimal, no padding: dcgm-exporter
// and others parse this form, so it is a contract. A device object stands for
// all of its replicas: thousands of them cost nothing.

#ifndef RONDO_DEVICEPLUGIN_DEVICE_H_
#define RONDO_DEVICEPLUGIN_DEVICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace rondo::deviceplugin {

struct Device {
  std::string uuid;      // "GPU-..." or "MIG-..."
  std::string gpu_uuid;  // of the whole GPU; equals uuid unless mig
  std::string index;     // NVML index, "0"; MIG "0:1"
  std::string name;      // product name
  int gpu_index = 0;
  bool mig = false;
  int gpu_instance = 0;      // mig only
  int compute_instance = 0;  // mig only
  // Device nodes, below the dev root.
  std::vector<std::string> paths;
  std::optional<int> numa_node;
  std::optional<uint64_t> memory_bytes;
  // What programs can have of it.
  std::optional<uint64_t> usable_bytes;
  int compute_major = 0;
  int compute_minor = 0;
  // 0: not shared, advertised under its UUID. Otherwise the number of replicas.
  int replicas = 0;
};

// One resource that kubelet is told of, e.g. "nvidia.com/gpu.shared".
struct Resource {
  std::string name;
  std::string original_name;    // before rename, "nvidia.com/gpu"
  std::vector<Device> devices;  // by GPU index, then MIG slot
};

// An id taken apart at its first "::". Views into the id.
struct DeviceId {
  absl::string_view uuid;
  uint32_t replica = 0;
  bool is_replica = false;
};

// Total: an id without "::" is a device of its own. nullopt where what follows
// "::" is not a plain decimal number.
std::optional<DeviceId> ParseDeviceId(absl::string_view id);

std::string ReplicaId(absl::string_view uuid, uint32_t replica);

// "nvidia.com/gpu.shared" -> "nvidia-gpu.shared.sock": the base name of the
// resource's socket, as NVIDIA's plugin names it.
std::string SocketName(absl::string_view resource);

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_DEVICE_H_
