// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace rondo {

absl::Status ErrnoStatus(absl::string_view what) {
  const int error = errno;
  const std::string text =
      absl::StrCat(what, ": ", std::generic_category().message(error));
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(text);
    default:
      return absl::InternalError(text);
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     size_t max_bytes) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.ok()) return ErrnoStatus(absl::StrCat("open ", path));
  std::string text;
  char buffer[16384];
  while (true) {
    const ssize_t n = read(fd.get(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(absl::StrCat("read ", path));
    if (n == 0) return text;
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > max_bytes)
      return absl::ResourceExhaustedError(
          absl::StrCat("read ", path, ": larger than ", max_bytes, " bytes"));
  }
}

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view text, int mode) {
  std::string temporary = absl::StrCat(path, ".tmp.XXXXXX");
  UniqueFd fd(mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.ok()) return ErrnoStatus(absl::StrCat("create ", temporary));
  auto fail = [&](absl::string_view what) {
    absl::Status status = ErrnoStatus(absl::StrCat(what, " ", path));
    unlink(temporary.c_str());
    return status;
  };
  while (!text.empty()) {
    const ssize_t n = write(fd.get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail("write");
    text.remove_prefix(static_cast<size_t>(n));
  }
  if (fchmod(fd.get(), static_cast<mode_t>(mode)) != 0) return fail("chmod");
  if (rename(temporary.c_str(), path.c_str()) != 0) return fail("rename to");
  return absl::OkStatus();
}

absl::Status LinkAtomically(const std::string& target,
                            const std::string& path) {
  const std::string temporary = absl::StrCat(path, ".tmp.", getpid());
  // One of a process that was killed before its rename, with our number.
  unlink(temporary.c_str());
  if (symlink(target.c_str(), temporary.c_str()) != 0)
    return ErrnoStatus(absl::StrCat("link ", temporary));
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    absl::Status status = ErrnoStatus(absl::StrCat("rename to ", path));
    unlink(temporary.c_str());
    return status;
  }
  return absl::OkStatus();
}

absl::Status MakeDirectories(const std::string& path, int mode) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (mkdir(part.c_str(), static_cast<mode_t>(mode)) != 0 && errno != EEXIST)
      return ErrnoStatus(absl::StrCat("mkdir ", part));
    if (slash == std::string::npos) break;
  }
  return absl::OkStatus();
}

std::string PathUnder(absl::string_view root, absl::string_view path) {
  while (absl::EndsWith(root, "/")) root.remove_suffix(1);
  if (!absl::StartsWith(path, "/")) return absl::StrCat(root, "/", path);
  return absl::StrCat(root, path);
}

size_t AllowDescriptors(size_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  if (limit.rlim_cur < wanted) {
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted);
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  return limit.rlim_cur;
}

absl::StatusOr<TempDir> TempDir::Create(absl::string_view prefix) {
  const char* base = getenv("TMPDIR");
  std::string path = absl::StrCat(
      base != nullptr && *base != '\0' ? base : "/tmp", "/", prefix, ".XXXXXX");
  if (mkdtemp(path.data()) == nullptr)
    return ErrnoStatus(absl::StrCat("mkdtemp ", path));
  return TempDir(std::move(path));
}

TempDir::TempDir(TempDir&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

TempDir::~TempDir() {
  if (path_.empty()) return;
  std::error_code ignored;  // nothing useful can be done about it here
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace rondo
