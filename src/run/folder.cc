// SPDX-License-Identifier: Apache-2.0
#include "run/folder.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"

namespace rondo::run {
namespace {

// What stands behind it in the longest path of a slot's socket (unix(7)).
constexpr char kLongestSocket[] =
    "/GPU-00000000-0000-0000-0000-000000000000-4096/agent.sock";
constexpr size_t kLongestRunDir =
    sizeof(sockaddr_un::sun_path) - sizeof(kLongestSocket);

// Whether the loader would refuse to map librondo.so from there. The program
// would run all the same, without its limit.
bool IsNoexec(const std::string& dir) {
  struct statvfs fs {};
  return statvfs(dir.c_str(), &fs) == 0 && (fs.f_flag & ST_NOEXEC) != 0;
}

// Of a folder that may not be there yet.
bool WouldBeNoexec(const std::string& dir) {
  // A link there is refused later; where it leads says nothing.
  struct stat st {};
  if (lstat(dir.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return IsNoexec(dir);
  return IsNoexec(dir.substr(0, dir.rfind('/')));
}

// Not $XDG_RUNTIME_DIR: it goes when the user logs out, and whatever a program
// that goes on starts then would run without librondo.so.
absl::StatusOr<std::string> OwnFolder() {
  const std::string name = absl::StrCat("rondo-run-", getuid());
  // Stock Debian and Ubuntu mount /run with noexec.
  const std::vector<std::string> places =
      getuid() == 0
          ? std::vector<std::string>{"/run/rondo-run", "/var/lib/rondo-run"}
          : std::vector<std::string>{"/tmp/" + name, "/var/tmp/" + name};
  for (const std::string& place : places)
    if (!WouldBeNoexec(place)) return place;
  return absl::InvalidArgumentError(
      absl::StrCat(absl::StrJoin(places, " and "),
                   " are on file systems mounted with noexec, from which no "
                   "program can load librondo.so; give a --run-dir elsewhere"));
}

}  // namespace

absl::StatusOr<std::string> RunFolder(const std::string& given) {
  std::string dir = given;
  if (dir.empty()) {
    RONDO_ASSIGN_OR_RETURN(dir, OwnFolder());
  }
  RONDO_RETURN_IF_ERROR(MakeDirectories(dir, 0700));
  struct stat st {};
  if (lstat(dir.c_str(), &st) != 0) return ErrnoStatus(dir);
  if (!S_ISDIR(st.st_mode) || st.st_uid != getuid())
    return absl::PermissionDeniedError(
        absl::StrCat(dir, " is not a folder of yours; give another --run-dir"));
  if ((st.st_mode & S_IWOTH) != 0)
    return absl::PermissionDeniedError(
        absl::StrCat(dir,
                     " is a folder that everybody may write to; give another "
                     "--run-dir"));
  // The program may go to another folder and start others from there.
  const std::unique_ptr<char, decltype(&free)> absolute(
      realpath(dir.c_str(), nullptr), free);
  if (absolute == nullptr) return ErrnoStatus(dir);
  dir = absolute.get();
  // A dollar may begin $LIB or $ORIGIN, which the loader puts something else
  // for.
  if (dir.find_first_of(" :$") != std::string::npos)
    return absl::InvalidArgumentError(
        absl::StrCat("\"", dir,
                     "\" has a space, a colon or a dollar sign, which "
                     "LD_PRELOAD cannot name; give another --run-dir"));
  if (dir.size() > kLongestRunDir)
    return absl::InvalidArgumentError(
        absl::StrCat(dir, " is longer than ", kLongestRunDir,
                     " bytes, too long for the sockets in it; give another "
                     "--run-dir"));
  if (IsNoexec(dir))
    return absl::InvalidArgumentError(
        absl::StrCat(dir,
                     " is on a file system mounted with noexec, from which no "
                     "program can load librondo.so; give another --run-dir"));
  return dir;
}

}  // namespace rondo::run
