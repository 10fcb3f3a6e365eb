// SPDX-License-Identifier: Apache-2.0
#include "nvml/library.h"

#include <stdlib.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace rondo::nvml {

std::string FindLibrary(absl::string_view driver_root) {
  constexpr char kName[] = "libnvidia-ml.so.1";
  if (driver_root.empty() || driver_root == "/") return kName;
  for (const char* folder :
       {"usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu",
        "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"}) {
    const std::string path =
        PathUnder(driver_root, absl::StrCat(folder, "/", kName));
    const std::unique_ptr<char, decltype(&free)> real(
        realpath(path.c_str(), nullptr), &free);
    if (real != nullptr) return real.get();
  }
  return kName;
}

}  // namespace rondo::nvml
