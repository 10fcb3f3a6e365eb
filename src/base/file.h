// SPDX-License-Identifier: Apache-2.0
//
// Whole-file reads and writes, and links. All may be called from any thread;
// all block. Errors: NotFound, PermissionDenied, or Internal, always with the
// path and the system's reason in the message.

#ifndef RONDO_BASE_FILE_H_
#define RONDO_BASE_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rondo {

// Reads at most max_bytes; a longer file is ResourceExhausted, never a cut one.
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     size_t max_bytes = 16 << 20);

// Writes a temporary file beside the target and renames it over: a reader sees
// the old text or the new one.
absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view text, int mode = 0644);

// Makes path a symbolic link to target, in place of the file or link that is
// there: a reader finds the old one or the new one. A folder there is an error.
absl::Status LinkAtomically(const std::string& target, const std::string& path);

// mkdir -p.
absl::Status MakeDirectories(const std::string& path, int mode = 0755);

// root + path with exactly one slash between; an empty root or "/" gives path
// itself.
std::string PathUnder(absl::string_view root, absl::string_view path);

// The system error as a Status, e.g. ErrnoStatus("open /x").
absl::Status ErrnoStatus(absl::string_view what);

// Lets this process have that many descriptors, or as many as its hard limit
// allows: soft limits are low for programs that use select(2). Returns how many
// it may have then.
size_t AllowDescriptors(size_t wanted);

// A directory of its own under $TMPDIR, removed with all that is in it when the
// object goes.
class TempDir {
 public:
  static absl::StatusOr<TempDir> Create(absl::string_view prefix = "rondo");
  TempDir(TempDir&& other) noexcept;
  TempDir& operator=(TempDir&&) = delete;
  ~TempDir();
  const std::string& path() const { return path_; }

 private:
  explicit TempDir(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace rondo

#endif  // RONDO_BASE_FILE_H_
