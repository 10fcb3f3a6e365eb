// SPDX-License-Identifier: Apache-2.0
//
// Unix-domain stream connections, as far as programs of the node need them. Any
// thread; blocking.

#ifndef RONDO_BASE_UNIX_SOCKET_H_
#define RONDO_BASE_UNIX_SOCKET_H_

#include <sys/socket.h>
#include <sys/stat.h>

#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace rondo {

// A connected socket of the type (SOCK_STREAM or SOCK_SEQPACKET). NotFound
// where the path does not exist; InvalidArgument where it is longer than
// sockaddr_un takes (107 bytes); Unavailable where nobody listens.
absl::StatusOr<UniqueFd> ConnectUnix(const std::string& path,
                                     int type = SOCK_STREAM);

// A listening, non-blocking socket at path with the mode; what is there is
// removed first.
absl::StatusOr<UniqueFd> ListenUnix(const std::string& path, int type,
                                    mode_t mode);

}  // namespace rondo

#endif  // RONDO_BASE_UNIX_SOCKET_H_
