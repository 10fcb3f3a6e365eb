// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/allocate.h"

#include <sys/stat.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/log.h"

namespace rondo::deviceplugin {
namespace {

using config::DeviceListStrategy;

constexpr absl::string_view kVisibleDevices = "NVIDIA_VISIBLE_DEVICES";
constexpr absl::string_view kImexChannels = "NVIDIA_IMEX_CHANNELS";
// Where NVIDIA's container runtime looks for mounts that name devices.
constexpr absl::string_view kVolumeMountRoot =
    "/var/run/nvidia-container-devices";
constexpr absl::string_view kCdiVendor = "k8s.device-plugin.nvidia.com";

bool Uses(const config::Flags& flags, DeviceListStrategy strategy) {
  const auto& chosen = flags.device_list_strategies;
  return std::find(chosen.begin(), chosen.end(), strategy) != chosen.end();
}

bool OnlyCdi(const config::Flags& flags) {
  return !Uses(flags, DeviceListStrategy::kEnvvar) &&
         !Uses(flags, DeviceListStrategy::kVolumeMounts);
}

bool IsCharDevice(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISCHR(status.st_mode);
}

bool Exists(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

template <typename T>
void PushOnce(std::vector<T>& list, T value) {
  if (std::find(list.begin(), list.end(), value) == list.end())
    list.push_back(std::move(value));
}

// The devices behind the ids, each once, in order of first mention.
absl::StatusOr<std::vector<const Device*>> Resolve(
    const View& view, const AllocateSettings& settings,
    const std::vector<std::string>& ids) {
  std::vector<const Device*> devices;
  bool replicated = false;
  for (const std::string& id : ids) {
    const std::optional<DeviceId> parsed = ParseDeviceId(id);
    const int device = parsed.has_value() ? view.Find(*parsed) : -1;
    if (device < 0)
      return absl::UnknownError(
          absl::StrCat("invalid allocation request for \"", view.name(),
                       "\": invalid request: unknown device: ", id));
    replicated |= parsed->is_replica;
    PushOnce(devices, &view.devices()[device]);
  }
  if (settings.sharing_active && replicated && ids.size() > 1 &&
      settings.fail_requests_greater_than_one)
    return absl::UnknownError(
        absl::StrCat("invalid allocation request for \"", view.name(),
                     "\": invalid request: maximum request size for shared "
                     "resources is 1; found ",
                     ids.size()));
  return devices;
}

void AddCdi(const AllocateSettings& settings,
            const std::vector<std::string>& device_ids,
            absl::string_view annotation_id, ContainerAnswer& answer) {
  const bool annotate =
      Uses(settings.flags, DeviceListStrategy::kCdiAnnotations);
  const bool cri = Uses(settings.flags, DeviceListStrategy::kCdiCri);
  if (!annotate && !cri) return;
  std::vector<std::string> names;
  for (const std::string& id : device_ids)
    names.push_back(absl::StrCat(kCdiVendor, "/gpu=", id));
  for (const int channel : settings.imex_channels)
    names.push_back(absl::StrCat(kCdiVendor, "/imex-channel=", channel));
  for (const std::string& cdi_class : settings.cdi_classes)
    names.push_back(absl::StrCat(kCdiVendor, "/", cdi_class, "=all"));
  if (annotate)
    answer.annotations[absl::StrCat(settings.flags.cdi_annotation_prefix,
                                    "nvidia-device-plugin_", annotation_id)] =
        absl::StrJoin(names, ",");
  if (cri) answer.cdi_devices = std::move(names);
}

void AddFeatureEnvs(const config::Flags& flags, ContainerAnswer& answer) {
  if (flags.gdrcopy_enabled) answer.envs["NVIDIA_GDRCOPY"] = "enabled";
  if (flags.gds_enabled) answer.envs["NVIDIA_GDS"] = "enabled";
  if (flags.mofed_enabled) answer.envs["NVIDIA_MOFED"] = "enabled";
}

void AddVolumeMounts(const AllocateSettings& settings,
                     const std::vector<std::string>& device_ids,
                     ContainerAnswer& answer) {
  answer.envs[std::string(kVisibleDevices)] = std::string(kVolumeMountRoot);
  const auto mount = [&](absl::string_view name) {
    answer.mounts.push_back(
        {absl::StrCat(kVolumeMountRoot, "/", name), "/dev/null", false});
  };
  for (const std::string& id : device_ids) mount(id);
  for (const int channel : settings.imex_channels)
    mount(absl::StrCat("imex/", channel));
}

// Where the devices are named: in the CRI's own field, or in the annotation for
// a runtime that knows no other way.
void AddCdiDevices(const AllocateSettings& settings,
                   const std::vector<std::string>& names,
                   ContainerAnswer& answer) {
  if (!Uses(settings.flags, DeviceListStrategy::kCdiAnnotations) ||
      Uses(settings.flags, DeviceListStrategy::kCdiCri)) {
    answer.cdi_devices.insert(answer.cdi_devices.end(), names.begin(),
                              names.end());
    return;
  }
  for (auto& [key, value] : answer.annotations)
    absl::StrAppend(&value, ",", absl::StrJoin(names, ","));
}

// Every mount is read-only: a container must not replace a socket or the
// library. Connecting to a socket writes nothing.
void Inject(const AllocateSettings& settings,
            const std::vector<std::string>& ids, ContainerAnswer& answer) {
  if (settings.injection == config::Injection::kNone ||
      settings.slot_dir.empty())
    return;
  std::vector<std::string> slots, cdi_devices;
  std::vector<Mount> sockets;
  for (const std::string& id : ids) {
    const std::optional<DeviceId> parsed = ParseDeviceId(id);
    if (!parsed.has_value() || !parsed->is_replica) continue;
    const std::string folder = SlotFolder(*parsed);
    const std::string slot = ReplicaId(parsed->uuid, parsed->replica);
    PushOnce(slots, slot);
    PushOnce(cdi_devices, absl::StrCat(kSlotCdiKind, "=", slot));
    PushOnce(sockets,
             Mount{absl::StrCat(kSlotsInContainer, "/", folder),
                   absl::StrCat(settings.slot_dir, "/", folder), true});
  }
  if (slots.empty()) return;
  const std::string library =
      absl::StrCat(settings.slot_dir, "/", kLibraryFolder);
  // Never by CDI: of several devices' values of one variable the last would
  // stand alone.
  answer.envs["RONDO_SLOTS"] = absl::StrJoin(slots, ",");
  if (settings.injection == config::Injection::kCdi)
    return AddCdiDevices(settings, cdi_devices, answer);
  answer.mounts.push_back({kLibraryInContainer, library, true});
  if (settings.injection == config::Injection::kFile)
    answer.mounts.push_back(
        {"/etc/ld.so.preload", absl::StrCat(library, "/", kPreloadFile), true});
  else
    answer.envs["LD_PRELOAD"] = kShimInContainer;
  answer.mounts.insert(answer.mounts.end(), sockets.begin(), sockets.end());
}

void AddDeviceSpecs(const AllocateSettings& settings,
                    const std::vector<const Device*>& devices,
                    ContainerAnswer& answer) {
  const auto add = [&](const std::string& path) {
    PushOnce(answer.devices,
             DeviceSpec{path, PathUnder(settings.flags.nvidia_dev_root, path),
                        "rw"});
  };
  for (const std::string& path : settings.control_devices) add(path);
  for (const Device* device : devices) {
    for (const std::string& path : device->paths) add(path);
  }
}

}  // namespace

std::string SlotFolder(const DeviceId& slot) {
  return absl::StrCat(slot.uuid, "-", slot.replica);
}

std::string VisibleDevRoot(const config::Flags& flags,
                           const std::string& root) {
  const std::string& driver = flags.container_driver_root;
  if (!driver.empty() && Exists(PathUnder(PathUnder(root, driver), "/dev")))
    return PathUnder(root, driver);
  return root;
}

absl::StatusOr<AllocateSettings> MakeAllocateSettings(const config::Plan& plan,
                                                      const std::string& root) {
  AllocateSettings settings;
  settings.flags = plan.flags;
  settings.injection = plan.rondo.injection;
  settings.sharing_active = !plan.sharing.resources.empty();
  settings.fail_requests_greater_than_one =
      plan.sharing.fail_requests_greater_than_one;
  const std::string dev_root = VisibleDevRoot(plan.flags, root);
  for (const char* path : {"/dev/nvidiactl", "/dev/nvidia-uvm",
                           "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"}) {
    if (Exists(PathUnder(dev_root, path)))
      settings.control_devices.push_back(path);
  }
  for (const int channel : plan.imex.channel_ids) {
    const std::string path =
        absl::StrCat("/dev/nvidia-caps-imex-channels/channel", channel);
    if (IsCharDevice(PathUnder(dev_root, path)) ||
        IsCharDevice(PathUnder(root, path))) {
      settings.imex_channels.push_back(channel);
    } else if (plan.imex.required) {
      return absl::FailedPreconditionError(
          absl::StrCat("IMEX channel ", channel, " is required, but ", path,
                       " is not a character device"));
    } else {
      LogWarning("IMEX channel ", channel, " is skipped: ", path,
                 " is not a character device");
    }
  }
  return settings;
}

absl::StatusOr<ContainerAnswer> Allocate(const View& view,
                                         const AllocateSettings& settings,
                                         const std::vector<std::string>& ids,
                                         absl::string_view annotation_id) {
  absl::StatusOr<std::vector<const Device*>> devices =
      Resolve(view, settings, ids);
  if (!devices.ok()) return devices.status();
  std::vector<std::string> device_ids;
  for (const Device* device : *devices)
    device_ids.push_back(settings.flags.device_id_strategy ==
                                 config::DeviceIdStrategy::kIndex
                             ? device->index
                             : device->uuid);
  ContainerAnswer answer;
  AddCdi(settings, device_ids, annotation_id, answer);
  AddFeatureEnvs(settings.flags, answer);
  Inject(settings, ids, answer);
  if (OnlyCdi(settings.flags)) return answer;

  if (Uses(settings.flags, DeviceListStrategy::kEnvvar))
    answer.envs[std::string(kVisibleDevices)] = absl::StrJoin(device_ids, ",");
  if (Uses(settings.flags, DeviceListStrategy::kEnvvar) &&
      !settings.imex_channels.empty())
    answer.envs[std::string(kImexChannels)] =
        absl::StrJoin(settings.imex_channels, ",");
  if (Uses(settings.flags, DeviceListStrategy::kVolumeMounts))
    AddVolumeMounts(settings, device_ids, answer);
  if (settings.flags.pass_device_specs)
    AddDeviceSpecs(settings, *devices, answer);
  return answer;
}

}  // namespace rondo::deviceplugin
