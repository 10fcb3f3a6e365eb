// SPDX-License-Identifier: Apache-2.0
//
// The flags that a config file, the environment and the command line share, in
// one table: the decoder, the merger and the agent's command line all read it.
// Names and defaults are those of NVIDIA's device plugin 0.20.

#ifndef RONDO_CONFIG_FLAG_TABLE_H_
#define RONDO_CONFIG_FLAG_TABLE_H_

#include <array>
#include <cstddef>

#include "absl/strings/string_view.h"

namespace rondo::config {

enum class FlagType {
  kString,
  kBool,        // 1 0 t f T F true false TRUE FALSE True False
  kStringList,  // split on commas in the environment and on the command line
  kIntList,     // the same
  kDuration,    // Go duration, or "infinite"
};

struct FlagInfo {
  // Path under `flags:` ("plugin.passDeviceSpecs"); for flags that the file
  // cannot hold or holds elsewhere, a name of the same form. It is the key in
  // Overrides::command_line.
  const char* key;
  FlagType type;
  bool in_file;  // a key under `flags:`
  // Without the dashes; first is the main name. Unused entries are empty.
  std::array<const char*, 2> names;
  std::array<const char*, 2> environment;  // the first that is set counts
  const char* help;
};

// clang-format off
inline constexpr FlagInfo kFlags[] = {
    {"migStrategy", FlagType::kString, true, {"mig-strategy"}, {"MIG_STRATEGY"}, "none | single | mixed; default: none"},
    {"failOnInitError", FlagType::kBool, true, {"fail-on-init-error"}, {"FAIL_ON_INIT_ERROR"}, "stop when NVML cannot be initialised, else wait; default: true"},
    {"mpsRoot", FlagType::kString, true, {"mps-root"}, {"MPS_ROOT"}, "accepted for compatibility; default: none"},
    {"nvidiaDriverRoot", FlagType::kString, true, {"driver-root", "nvidia-driver-root"}, {"NVIDIA_DRIVER_ROOT"}, "root of the driver installation on the host; default: /"},
    {"nvidiaDevRoot", FlagType::kString, true, {"dev-root", "nvidia-dev-root"}, {"NVIDIA_DEV_ROOT"}, "root of the device nodes on the host; default: the driver root"},
    {"gdrcopyEnabled", FlagType::kBool, true, {"gdrcopy-enabled"}, {"GDRCOPY_ENABLED"}, "containers get GDRCopy; default: false"},
    {"gdsEnabled", FlagType::kBool, true, {"gds-enabled"}, {"GDS_ENABLED"}, "containers get GPUDirect Storage; default: false"},
    {"mofedEnabled", FlagType::kBool, true, {"mofed-enabled"}, {"MOFED_ENABLED"}, "containers get MOFED; default: false"},
    {"useNodeFeatureAPI", FlagType::kBool, true, {"use-node-feature-api"}, {"USE_NODE_FEATURE_API"}, "accepted for compatibility; default: true"},
    {"deviceDiscoveryStrategy", FlagType::kString, true, {"device-discovery-strategy"}, {"DEVICE_DISCOVERY_STRATEGY"}, "auto | nvml | tegra; default: auto"},
    {"plugin.passDeviceSpecs", FlagType::kBool, true, {"pass-device-specs"}, {"PASS_DEVICE_SPECS"}, "name the device nodes in the answer to Allocate; default: false"},
    {"plugin.deviceListStrategy", FlagType::kStringList, true, {"device-list-strategy"}, {"DEVICE_LIST_STRATEGY"}, "envvar | volume-mounts | cdi-annotations | cdi-cri, or several; default: envvar"},
    {"plugin.deviceIDStrategy", FlagType::kString, true, {"device-id-strategy"}, {"DEVICE_ID_STRATEGY"}, "uuid | index; default: uuid"},
    {"plugin.cdiAnnotationPrefix", FlagType::kString, true, {"cdi-annotation-prefix"}, {"CDI_ANNOTATION_PREFIX"}, "prefix of CDI annotation keys; default: cdi.k8s.io/"},
    {"plugin.nvidiaCTKPath", FlagType::kString, true, {"nvidia-cdi-hook-path", "nvidia-ctk-path"}, {"NVIDIA_CDI_HOOK_PATH", "NVIDIA_CTK_PATH"}, "CDI hook program on the host; default: /usr/bin/nvidia-ctk"},
    {"plugin.containerDriverRoot", FlagType::kString, true, {"driver-root-ctr-path", "container-driver-root"}, {"DRIVER_ROOT_CTR_PATH", "CONTAINER_DRIVER_ROOT"}, "where the driver root is mounted in this container; default: /driver-root"},
    {"plugin.sharedDevicesAllocationPolicy", FlagType::kString, true, {"shared-devices-allocation-policy"}, {"SHARED_DEVICES_ALLOCATION_POLICY"}, "distributed | packed | spread; default: distributed"},
    {"imex.channelIDs", FlagType::kIntList, false, {"imex-channel-ids"}, {"IMEX_CHANNEL_IDS"}, "IMEX channels to inject: nothing or 0; default: none"},
    {"imex.required", FlagType::kBool, false, {"imex-required"}, {"IMEX_REQUIRED"}, "stop when the IMEX channel is missing; default: false"},
    {"configFile", FlagType::kString, false, {"config-file"}, {"CONFIG_FILE"}, "config file (NVIDIA's v1 format); default: none"},
    {"kubeletSocket", FlagType::kString, false, {"kubelet-socket"}, {"KUBELET_SOCKET"}, "kubelet's registration socket; empty: do not register; default: /var/lib/kubelet/device-plugins/kubelet.sock"},
    {"cdiFeatureFlags", FlagType::kStringList, false, {"cdi-feature-flags"}, {"CDI_FEATURE_FLAGS"}, "feature flags of the CDI specification; default: none"},
    {"cdiDisableHooks", FlagType::kStringList, false, {"cdi-disable-hooks"}, {"CDI_DISABLE_HOOKS"}, "CDI hooks to leave out, or all; default: none"},
};
// clang-format on

// The entry with the key, or null.
constexpr const FlagInfo* FindFlag(absl::string_view key) {
  for (const FlagInfo& flag : kFlags) {
    if (key == flag.key) return &flag;
  }
  return nullptr;
}

}  // namespace rondo::config

#endif  // RONDO_CONFIG_FLAG_TABLE_H_
