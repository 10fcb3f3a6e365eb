// SPDX-License-Identifier: Apache-2.0
//
// Unix-domain stream connections, as far as programs of the node need them. Any
// thread; blocking.

#ifndef RONDO_BASE_UNIX_SOCKET_H_
#define RONDO_BASE_UNIX_SOCKET_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace rondo {

// A connected SOCK_STREAM socket. NotFound where the path does not exist;
// InvalidArgument where it is longer than sockaddr_un takes (107 bytes);
// Unavailable where nobody listens.
absl::StatusOr<UniqueFd> ConnectUnix(const std::string& path);

}  // namespace rondo

#endif  // RONDO_BASE_UNIX_SOCKET_H_
