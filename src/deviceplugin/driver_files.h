// SPDX-License-Identifier: Apache-2.0
//
// Where the NVIDIA driver's user-space files lie below a root. Blocking file
// work, any thread. What is not there is left out: a node with half a driver
// gets half a list, not an error.

#ifndef RONDO_DEVICEPLUGIN_DRIVER_FILES_H_
#define RONDO_DEVICEPLUGIN_DRIVER_FILES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "config/plan.h"

namespace rondo::deviceplugin {

// What a container needs of the driver. Paths as the container sees them, which
// is also where they lie below the driver root. Each list is sorted.
struct DriverFiles {
  std::string version;  // from libcuda.so.<version>; empty without a driver
  std::vector<std::string> libraries;  // real files
  // name -> target, e.g. ".../libcuda.so.1" -> "libcuda.so.550.54.15"
  std::vector<std::pair<std::string, std::string>> links;
  std::vector<std::string> binaries;
  std::vector<std::string> sockets;
  std::vector<std::string> firmware;
};

// Looks below driver_root, as this process sees it.
DriverFiles FindDriverFiles(const std::string& driver_root);

// Where the driver's files lie for this process: the container driver root if
// libcuda is below it, else root.
std::string VisibleDriverRoot(const config::Flags& flags,
                              const std::string& root);

// Paths below dev_root that begin with `prefix`, e.g. "/dev/nvidia-fs".
std::vector<std::string> NodesLike(const std::string& dev_root,
                                   absl::string_view prefix);

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_DRIVER_FILES_H_
