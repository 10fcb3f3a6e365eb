// SPDX-License-Identifier: Apache-2.0
#include "base/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace rondo {

absl::StatusOr<UniqueFd> ConnectUnix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return absl::InvalidArgumentError(absl::StrCat("socket path longer than ",
                                                   sizeof(address.sun_path) - 1,
                                                   " bytes: ", path));
  memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
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

}  // namespace rondo
