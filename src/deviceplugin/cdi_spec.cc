// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/cdi_spec.h"

#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"

namespace rondo::deviceplugin {
namespace {

using nlohmann::ordered_json;

constexpr absl::string_view kVendor = "k8s.device-plugin.nvidia.com";

ordered_json DeviceNodes(const config::Flags& flags,
                         const std::vector<std::string>& paths) {
  ordered_json nodes = ordered_json::array();
  for (const std::string& path : paths) {
    ordered_json node = {{"path", path}};
    const std::string host = PathUnder(flags.nvidia_dev_root, path);
    if (host != path) node["hostPath"] = host;
    nodes.push_back(std::move(node));
  }
  return nodes;
}

ordered_json BindMount(const config::Flags& flags, const std::string& path,
                       const std::string& container_path,
                       std::vector<std::string> options) {
  options.insert(options.end(), {"nosuid", "nodev", "rbind", "rprivate"});
  return {{"hostPath", PathUnder(flags.nvidia_driver_root, path)},
          {"containerPath", container_path},
          {"options", options}};
}

bool HooksDisabled(const config::Flags& flags, absl::string_view name) {
  for (const absl::string_view word :
       absl::StrSplit(flags.cdi_disable_hooks, ',')) {
    if (word == "all" || word == name) return true;
  }
  return flags.nvidia_cdi_hook_path.empty();
}

ordered_json Hook(const config::Flags& flags, absl::string_view name,
                  const std::vector<std::string>& options) {
  const std::string& path = flags.nvidia_cdi_hook_path;
  const std::string program = path.substr(path.rfind('/') + 1);
  std::vector<std::string> args = {program};
  // nvidia-ctk has the hooks as subcommands of "hook"; nvidia-cdi-hook is
  // nothing else.
  if (program == "nvidia-ctk") args.push_back("hook");
  args.push_back(std::string(name));
  args.insert(args.end(), options.begin(), options.end());
  return {{"hookName", "createContainer"}, {"path", path}, {"args", args}};
}

std::string Folder(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

ordered_json DriverEdits(const config::Flags& flags,
                         const std::vector<std::string>& control_devices,
                         const DriverFiles& driver) {
  ordered_json edits;
  // The runtime's own hook must not add devices a second time.
  edits["env"] = {"NVIDIA_VISIBLE_DEVICES=void"};
  edits["deviceNodes"] = DeviceNodes(flags, control_devices);
  ordered_json mounts = ordered_json::array();
  const auto mount = [&](const std::vector<std::string>& paths,
                         const std::vector<std::string>& options) {
    for (const std::string& path : paths)
      mounts.push_back(BindMount(flags, path, path, options));
  };
  mount(driver.libraries, {"ro"});
  mount(driver.binaries, {"ro"});
  mount(driver.firmware, {"ro"});
  mount(driver.sockets, {"noexec"});

  ordered_json hooks = ordered_json::array();
  if (!HooksDisabled(flags, "create-symlinks")) {
    std::vector<std::string> links;
    for (const auto& [name, target] : driver.links) {
      links.push_back("--link");
      links.push_back(absl::StrCat(target, "::", name));
    }
    if (!links.empty()) hooks.push_back(Hook(flags, "create-symlinks", links));
  } else {
    // Without the hook the loader must still find the names that programs ask
    // for: mount the file under each.
    for (const auto& [name, target] : driver.links)
      mounts.push_back(BindMount(flags, name, name, {"ro"}));
  }
  if (!HooksDisabled(flags, "update-ldcache")) {
    std::vector<std::string> folders;
    for (const std::string& library : driver.libraries) {
      const std::string folder = Folder(library);
      if (std::find(folders.begin(), folders.end(), folder) != folders.end())
        continue;
      folders.push_back("--folder");
      folders.push_back(folder);
    }
    if (!folders.empty())
      hooks.push_back(Hook(flags, "update-ldcache", folders));
  }
  if (!mounts.empty()) edits["mounts"] = std::move(mounts);
  if (!hooks.empty()) edits["hooks"] = std::move(hooks);
  return edits;
}

ordered_json Spec(absl::string_view cdi_class) {
  return {{"cdiVersion", "0.5.0"},
          {"kind", absl::StrCat(kVendor, "/", cdi_class)},
          {"devices", ordered_json::array()}};
}

bool Exists(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

std::vector<std::string> Existing(const std::string& dev_root,
                                  const std::vector<std::string>& paths) {
  std::vector<std::string> found;
  for (const std::string& path : paths) {
    if (Exists(PathUnder(dev_root, path))) found.push_back(path);
  }
  return found;
}

}  // namespace

std::string GpuCdiSpec(const config::Flags& flags,
                       const std::vector<Device>& devices,
                       const std::vector<std::string>& control_devices,
                       const DriverFiles& driver) {
  ordered_json spec = Spec("gpu");
  std::vector<std::string> all;
  const auto add = [&](const std::string& name,
                       const std::vector<std::string>& paths) {
    spec["devices"].push_back(
        {{"name", name},
         {"containerEdits", {{"deviceNodes", DeviceNodes(flags, paths)}}}});
  };
  for (const Device& device : devices) {
    add(flags.device_id_strategy == config::DeviceIdStrategy::kIndex
            ? device.index
            : device.uuid,
        device.paths);
    for (const std::string& path : device.paths) {
      if (std::find(all.begin(), all.end(), path) == all.end())
        all.push_back(path);
    }
  }
  if (!all.empty()) add("all", all);
  spec["containerEdits"] = DriverEdits(flags, control_devices, driver);
  return spec.dump(2) + "\n";
}

std::string NodesCdiSpec(
    const std::string& cdi_class, const config::Flags& flags,
    const std::vector<std::pair<std::string, std::vector<std::string>>>&
        devices) {
  ordered_json spec = Spec(cdi_class);
  for (const auto& [name, paths] : devices)
    spec["devices"].push_back(
        {{"name", name},
         {"containerEdits", {{"deviceNodes", DeviceNodes(flags, paths)}}}});
  return spec.dump(2) + "\n";
}

absl::StatusOr<std::vector<std::string>> WriteCdiSpecs(
    const config::Flags& flags, const std::vector<Device>& devices,
    const AllocateSettings& settings, const std::string& root,
    const std::string& cdi_dir) {
  RONDO_RETURN_IF_ERROR(MakeDirectories(cdi_dir));
  const auto write = [&](const std::string& cdi_class,
                         const std::string& text) {
    return WriteFileAtomically(
        PathUnder(cdi_dir, absl::StrCat(kVendor, "-", cdi_class, ".json")),
        text);
  };
  RONDO_RETURN_IF_ERROR(write(
      "gpu", GpuCdiSpec(flags, devices, settings.control_devices,
                        FindDriverFiles(VisibleDriverRoot(flags, root)))));
  std::vector<std::pair<std::string, std::vector<std::string>>> channels;
  for (const int channel : settings.imex_channels)
    channels.push_back(
        {absl::StrCat(channel),
         {absl::StrCat("/dev/nvidia-caps-imex-channels/channel", channel)}});
  if (!channels.empty())
    RONDO_RETURN_IF_ERROR(
        write("imex-channel", NodesCdiSpec("imex-channel", flags, channels)));

  const std::string dev_root = VisibleDevRoot(flags, root);
  std::vector<std::string> written;
  const auto optional = [&](bool enabled, const std::string& cdi_class,
                            const std::vector<std::string>& paths) {
    const std::vector<std::string> present = Existing(dev_root, paths);
    if (!enabled || present.empty()) return absl::OkStatus();
    written.push_back(cdi_class);
    return write(cdi_class, NodesCdiSpec(cdi_class, flags, {{"all", present}}));
  };
  RONDO_RETURN_IF_ERROR(
      optional(flags.gdrcopy_enabled, "gdrcopy", {"/dev/gdrdrv"}));
  RONDO_RETURN_IF_ERROR(optional(flags.gds_enabled, "gds",
                                 NodesLike(dev_root, "/dev/nvidia-fs")));
  RONDO_RETURN_IF_ERROR(optional(flags.mofed_enabled, "mofed",
                                 NodesLike(dev_root, "/dev/infiniband/")));
  return written;
}

}  // namespace rondo::deviceplugin
