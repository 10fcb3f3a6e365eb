// SPDX-License-Identifier: Apache-2.0
//
// Where libnvidia-ml.so.1 is. Any thread.

#ifndef RONDO_NVML_LIBRARY_H_
#define RONDO_NVML_LIBRARY_H_

#include <string>

#include "absl/strings/string_view.h"

namespace rondo::nvml {

// The path for dlopen: the library under the driver's root as this container
// sees it (symbolic links resolved), in the folders that NVIDIA's device plugin
// searches, in its order; the bare name, for the system's loader to find, where
// root is "" or "/" or holds none.
std::string FindLibrary(absl::string_view driver_root);

}  // namespace rondo::nvml

#endif  // RONDO_NVML_LIBRARY_H_
