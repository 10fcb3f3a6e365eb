// SPDX-License-Identifier: Apache-2.0
#include "rm/gpu.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "rm/abi.h"
#include "rm/control.h"

namespace rondo::rm {
namespace {

constexpr uint32_t kMostDevices = 64;
constexpr size_t kMostPids = std::size(PidInfoParams{}.list);

// NV0080_ALLOC_PARAMETERS: only the first field is ours, the rest is zero.
struct DeviceParams {
  uint32_t device_id;
  uint32_t zero[13];
};
static_assert(sizeof(DeviceParams) == 56);

absl::StatusOr<Gpu> OpenGpu(Client& client, uint32_t instance) {
  Gpu gpu;
  const DeviceParams device{.device_id = instance, .zero = {}};
  RONDO_ASSIGN_OR_RETURN(gpu.device, client.Alloc(client.handle(), kClassDevice,
                                                  &device, sizeof(device)));
  const uint32_t subdevice_id = 0;
  RONDO_ASSIGN_OR_RETURN(
      gpu.subdevice, client.Alloc(gpu.device, kClassSubdevice, &subdevice_id,
                                  sizeof(subdevice_id)));
  GidParams gid{};
  gid.flags = kGidText;
  RONDO_RETURN_IF_ERROR(
      client.Control(gpu.subdevice, kCtrlGetGid, &gid, sizeof(gid)));
  gid.data[sizeof(gid.data) - 1] = '\0';
  gpu.uuid = gid.data;
  return gpu;
}

}  // namespace

absl::StatusOr<std::vector<Gpu>> ListGpus(Client& client) {
  std::vector<Gpu> gpus;
  absl::Status last = absl::NotFoundError("the driver has no GPU attached");
  // Instances are dense but for GPUs that left.
  for (uint32_t i = 0; i < kMostDevices; ++i) {
    absl::StatusOr<Gpu> gpu = OpenGpu(client, i);
    if (gpu.ok())
      gpus.push_back(*std::move(gpu));
    else if (i == 0)
      last = gpu.status();
  }
  if (gpus.empty()) return Annotate(last, "list GPUs");
  return gpus;
}

absl::StatusOr<Gpu> FindGpu(Client& client, absl::string_view uuid) {
  RONDO_ASSIGN_OR_RETURN(const std::vector<Gpu> gpus, ListGpus(client));
  const Gpu* found = nullptr;
  for (const Gpu& gpu : gpus) {
    if (gpu.uuid == uuid)
      found = &gpu;
    else  // its subdevice goes with it
      RONDO_RETURN_IF_ERROR(client.Free(client.handle(), gpu.device));
  }
  if (found == nullptr)
    return absl::NotFoundError(
        absl::StrCat("the driver's client sees no GPU ", uuid));
  return *found;
}

absl::Status SwitchChannels(Client& client, const Gpu& gpu, bool suspend,
                            const std::vector<Channel>& channels) {
  if (channels.empty()) return absl::OkStatus();
  if (channels.size() > kMostChannels)
    return absl::InvalidArgumentError("more channels than one call takes");
  DisableChannelsParams params{};
  params.disable = suspend ? 1 : 0;
  params.count = static_cast<uint32_t>(channels.size());
  for (size_t i = 0; i < channels.size(); ++i) {
    params.clients[i] = channels[i].client;
    params.channels[i] = channels[i].handle;
  }
  return client.Control(gpu.subdevice, kCtrlDisableChannels, &params,
                        sizeof(params));
}

absl::StatusOr<std::map<uint32_t, uint64_t>> PidBytes(
    Client& client, const Gpu& gpu, const std::vector<uint32_t>& pids) {
  std::map<uint32_t, uint64_t> bytes;
  const auto params = std::make_unique<PidInfoParams>();
  for (size_t from = 0; from < pids.size(); from += kMostPids) {
    *params = {};
    params->count =
        static_cast<uint32_t>(std::min(kMostPids, pids.size() - from));
    for (uint32_t i = 0; i < params->count; ++i)
      params->list[i].pid = pids[from + i];
    RONDO_RETURN_IF_ERROR(client.Control(gpu.subdevice, kCtrlPidInfo,
                                         params.get(), sizeof(*params)));
    for (uint32_t i = 0; i < params->count; ++i) {
      const PidInfo& info = params->list[i];
      bytes[info.pid] =
          info.result == kOk ? info.private_bytes + info.owned_bytes : 0;
    }
  }
  return bytes;
}

}  // namespace rondo::rm
