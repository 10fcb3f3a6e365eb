// SPDX-License-Identifier: Apache-2.0
//
// A listening unix socket that can be opened anew without disturbing the
// connections it has brought: kubelet removes every socket of its folder when
// it starts. On the loop's thread only.

#ifndef RONDO_DEVICEPLUGIN_LISTENER_H_
#define RONDO_DEVICEPLUGIN_LISTENER_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "base/event_loop.h"
#include "base/unique_fd.h"
#include "deviceplugin/file_identity.h"

namespace rondo::deviceplugin {

class Listener {
 public:
  // on_accept gets each connection, non-blocking.
  Listener(EventLoop& loop, std::string path,
           std::function<void(UniqueFd)> on_accept);
  // Removes the socket if it is still ours.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Binds and listens; what else lies at the path is removed first. May be
  // called again. InvalidArgument for a path longer than a socket may have.
  absl::Status Open();
  // The file at the path is the socket that Open made.
  bool Present() const;
  const std::string& path() const { return path_; }

 private:
  void Accept();
  void Close();

  EventLoop& loop_;
  const std::string path_;
  const std::function<void(UniqueFd)> on_accept_;
  UniqueFd socket_;
  FileIdentity identity_;
};

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_LISTENER_H_
