// SPDX-License-Identifier: Apache-2.0
//
// kubelet's checkpoint from a disk that may hold anything, and what is done
// with the ids in it.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "deviceplugin/checkpoint.h"
#include "deviceplugin/device.h"
#include "deviceplugin/retired.h"
#include "deviceplugin/view.h"

namespace dp = rondo::deviceplugin;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto held = dp::ParseCheckpoint(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!held.ok()) return 0;
  dp::Device device;
  device.uuid = device.gpu_uuid = "GPU-a";
  device.replicas = 2;
  dp::Resource resource;
  resource.name = "nvidia.com/gpu";
  resource.devices = {device};
  for (const auto& [name, ids] : *held) {
    dp::Retired retired;
    retired.AddHeld(ids, resource, {{"GPU-a", device}},
                    rondo::MonotonicTime(0));
    const dp::View view = MakeView(resource, {true}, retired.devices());
    // Every retired id is listed, and the list is as long as it says.
    if (view.EncodeList().size() != view.EncodedSize()) abort();
    for (const auto& [id, unused] : retired.devices()) {
      if (view.Find(*dp::ParseDeviceId(id)) < 0) abort();
    }
  }
  return 0;
}
