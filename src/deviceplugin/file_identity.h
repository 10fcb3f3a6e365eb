// SPDX-License-Identifier: Apache-2.0
//
// Tells one incarnation of a file from the next one at the same path. Plain
// value; any thread.

#ifndef RONDO_DEVICEPLUGIN_FILE_IDENTITY_H_
#define RONDO_DEVICEPLUGIN_FILE_IDENTITY_H_

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace rondo::deviceplugin {

struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  // Inode numbers are used again at once on some file systems.
  int64_t changed_s = 0;
  int64_t changed_ns = 0;

  bool exists() const { return inode != 0; }
  bool operator==(const FileIdentity&) const = default;

  // exists() is false where there is no such file.
  static FileIdentity Of(const std::string& path) {
    struct stat status;
    if (stat(path.c_str(), &status) != 0) return {};
    return {status.st_dev, status.st_ino, status.st_ctim.tv_sec,
            status.st_ctim.tv_nsec};
  }
};

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_FILE_IDENTITY_H_
