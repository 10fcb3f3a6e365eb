// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/listener.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"

namespace rondo::deviceplugin {

Listener::Listener(EventLoop& loop, std::string path,
                   std::function<void(UniqueFd)> on_accept)
    : loop_(loop), path_(std::move(path)), on_accept_(std::move(on_accept)) {}

Listener::~Listener() {
  if (Present()) unlink(path_.c_str());
  Close();
}

void Listener::Close() {
  if (socket_.ok()) loop_.Unwatch(socket_.get());
  socket_.Reset();
}

absl::Status Listener::Open() {
  Close();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof(address.sun_path))
    return absl::InvalidArgumentError(
        absl::StrCat("socket path too long: ", path_));
  memcpy(address.sun_path, path_.data(), path_.size());
  if (unlink(path_.c_str()) != 0 && errno != ENOENT)
    return ErrnoStatus(absl::StrCat("remove ", path_));
  UniqueFd socket(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.ok()) return ErrnoStatus("socket");
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address),
           sizeof(address)) != 0)
    return ErrnoStatus(absl::StrCat("bind ", path_));
  if (listen(socket.get(), 16) != 0)
    return ErrnoStatus(absl::StrCat("listen on ", path_));
  identity_ = FileIdentity::Of(path_);
  RONDO_RETURN_IF_ERROR(loop_.Watch(socket.get(), [this] { Accept(); }));
  socket_ = std::move(socket);
  return absl::OkStatus();
}

bool Listener::Present() const {
  return socket_.ok() && FileIdentity::Of(path_) == identity_;
}

void Listener::Accept() {
  while (true) {
    UniqueFd connection(
        accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.ok()) {
      on_accept_(std::move(connection));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
      LogWarning("accept on ", path_, ": ", strerror(errno));
    return;
  }
}

}  // namespace rondo::deviceplugin
