// SPDX-License-Identifier: Apache-2.0
#include "base/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace rondo {

namespace {

absl::StatusOr<sockaddr_un> Address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return absl::InvalidArgumentError(absl::StrCat("socket path longer than ",
                                                   sizeof(address.sun_path) - 1,
                                                   " bytes: ", path));
  memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace

absl::StatusOr<UniqueFd> ConnectUnix(const std::string& path, int type) {
  RONDO_ASSIGN_OR_RETURN(const sockaddr_un address, Address(path));
  UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (!fd.ok()) return ErrnoStatus("socket");
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    if (errno == ECONNREFUSED)
      return absl::UnavailableError(
          absl::StrCat("connect ", path, ": nobody listens"));
    return ErrnoStatus(absl::StrCat("connect ", path));
  }
  return fd;
}

absl::StatusOr<UniqueFd> ListenUnix(const std::string& path, int type,
                                    mode_t mode) {
  RONDO_ASSIGN_OR_RETURN(const sockaddr_un address, Address(path));
  UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.ok()) return ErrnoStatus("socket");
  unlink(path.c_str());
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
           sizeof(address)) != 0)
    return ErrnoStatus(absl::StrCat("bind ", path));
  if (chmod(path.c_str(), mode) != 0)
    return ErrnoStatus(absl::StrCat("chmod ", path));
  if (listen(fd.get(), SOMAXCONN) != 0)
    return ErrnoStatus(absl::StrCat("listen ", path));
  return fd;
}

}  // namespace rondo
