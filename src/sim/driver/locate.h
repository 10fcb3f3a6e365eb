// SPDX-License-Identifier: Apache-2.0
//
// Where the simulated node is, for the libraries that programs load: the folder
// that this copy of the library was staged in, else the one that the
// environment names. Any thread; no heap. Header-only, libc only.

#ifndef RONDO_SIM_DRIVER_LOCATE_H_
#define RONDO_SIM_DRIVER_LOCATE_H_

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>

namespace rondo::sim::driver {

inline constexpr char kStateFile[] = "rondo-sim.state";

inline bool HasState(const char* folder) {
  char path[PATH_MAX + 32];
  snprintf(path, sizeof(path), "%s/%s", folder, kStateFile);
  return access(path, R_OK) == 0;
}

// symbol: an address within the library. False: there is no node.
inline bool FindNodeFolder(const void* symbol, char (&folder)[PATH_MAX]) {
  Dl_info info;
  if (dladdr(symbol, &info) != 0 &&
      realpath(info.dli_fname, folder) != nullptr) {
    if (char* const slash = strrchr(folder, '/')) *slash = '\0';
    if (HasState(folder)) return true;
  }
  const char* const named = getenv("RONDO_SIM_STATE");
  if (named == nullptr || *named == '\0') return false;
  for (const char* const format : {"%s", "%s/usr/lib64"}) {
    snprintf(folder, sizeof(folder), format, named);
    if (HasState(folder)) return true;
  }
  return false;
}

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_LOCATE_H_
