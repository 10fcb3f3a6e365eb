// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/driver_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace rondo::deviceplugin {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kLibraryFolders[] = {
    "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
    "/lib64",     "/lib/x86_64-linux-gnu",     "/lib/aarch64-linux-gnu"};
// Names of driver libraries, up to ".so". libnvidia-container belongs to the
// container toolkit, not to the driver.
constexpr absl::string_view kLibraryPrefixes[] = {
    "libcuda.so", "libcudadebugger.so", "libnvcuvid.so", "libnvoptix.so",
    "libnvidia-"};
constexpr absl::string_view kNotDriver = "libnvidia-container";
constexpr absl::string_view kBinaries[] = {
    "/usr/bin/nvidia-smi", "/usr/bin/nvidia-debugdump",
    "/usr/bin/nvidia-persistenced", "/usr/bin/nvidia-cuda-mps-control",
    "/usr/bin/nvidia-cuda-mps-server"};
constexpr absl::string_view kSockets[] = {"/run/nvidia-persistenced/socket",
                                          "/run/nvidia-fabricmanager/socket"};

std::vector<fs::directory_entry> Entries(const std::string& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error))
    entries.push_back(*at);
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool IsDriverLibrary(absl::string_view name) {
  if (!absl::StrContains(name, ".so") || absl::StartsWith(name, kNotDriver))
    return false;
  return std::any_of(
      std::begin(kLibraryPrefixes), std::end(kLibraryPrefixes),
      [&](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
}

void AddFolder(const std::string& driver_root, absl::string_view folder,
               DriverFiles& files) {
  std::error_code error;
  for (const fs::directory_entry& entry :
       Entries(PathUnder(driver_root, folder))) {
    const std::string name = entry.path().filename();
    if (!IsDriverLibrary(name)) continue;
    const std::string path = absl::StrCat(folder, "/", name);
    if (entry.is_symlink(error)) {
      const std::string target = fs::read_symlink(entry.path(), error);
      // A link that leaves the folder means nothing inside a container.
      if (!error && !absl::StrContains(target, "/"))
        files.links.emplace_back(path, target);
    } else if (entry.is_regular_file(error)) {
      files.libraries.push_back(path);
      if (absl::StartsWith(name, "libcuda.so.") && files.version.empty())
        files.version = name.substr(std::string("libcuda.so.").size());
    }
  }
}

}  // namespace

DriverFiles FindDriverFiles(const std::string& driver_root) {
  DriverFiles files;
  std::vector<fs::path> seen;
  std::error_code error;
  for (const absl::string_view folder : kLibraryFolders) {
    // /lib is /usr/lib on most systems: take each real folder once.
    const fs::path real =
        fs::weakly_canonical(PathUnder(driver_root, folder), error);
    if (error || std::find(seen.begin(), seen.end(), real) != seen.end())
      continue;
    seen.push_back(real);
    AddFolder(driver_root, folder, files);
  }
  for (const absl::string_view path : kBinaries) {
    if (fs::exists(PathUnder(driver_root, path), error))
      files.binaries.emplace_back(path);
  }
  for (const absl::string_view path : kSockets) {
    if (fs::exists(PathUnder(driver_root, path), error))
      files.sockets.emplace_back(path);
  }
  const std::string firmware =
      absl::StrCat("/lib/firmware/nvidia/", files.version);
  if (!files.version.empty()) {
    for (const fs::directory_entry& entry :
         Entries(PathUnder(driver_root, firmware))) {
      const std::string name = entry.path().filename();
      if (absl::StartsWith(name, "gsp"))
        files.firmware.push_back(absl::StrCat(firmware, "/", name));
    }
  }
  return files;
}

std::string VisibleDriverRoot(const config::Flags& flags,
                              const std::string& root) {
  if (flags.container_driver_root.empty()) return root;
  const std::string inside = PathUnder(root, flags.container_driver_root);
  return FindDriverFiles(inside).version.empty() ? root : inside;
}

std::vector<std::string> NodesLike(const std::string& dev_root,
                                   absl::string_view prefix) {
  const absl::string_view folder = prefix.substr(0, prefix.rfind('/'));
  std::vector<std::string> paths;
  for (const fs::directory_entry& entry :
       Entries(PathUnder(dev_root, folder))) {
    const std::string path =
        absl::StrCat(folder, "/", entry.path().filename().string());
    if (absl::StartsWith(path, prefix)) paths.push_back(path);
  }
  return paths;
}

}  // namespace rondo::deviceplugin
