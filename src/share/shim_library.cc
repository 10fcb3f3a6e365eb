// SPDX-License-Identifier: Apache-2.0
#include "share/shim_library.h"

#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/status.h"

extern "C" const char rondo_shim_begin[];
extern "C" const char rondo_shim_end[];

namespace rondo::share {

absl::Status InstallShim(const std::string& dir) {
  const absl::string_view library(
      rondo_shim_begin, static_cast<size_t>(rondo_shim_end - rondo_shim_begin));
  const std::string path = dir + "/" + kShimName;
  if (const auto there = ReadFile(path); there.ok() && *there == library)
    return absl::OkStatus();
  RONDO_RETURN_IF_ERROR(MakeDirectories(dir));
  return WriteFileAtomically(path, library, 0755);
}

}  // namespace rondo::share
