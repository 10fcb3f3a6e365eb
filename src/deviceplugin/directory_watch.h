// SPDX-License-Identifier: Apache-2.0
//
// Tells when names come to and go from one directory. Survives the directory's
// own removal: it is then looked for once a second. On the loop's thread only.

#ifndef RONDO_DEVICEPLUGIN_DIRECTORY_WATCH_H_
#define RONDO_DEVICEPLUGIN_DIRECTORY_WATCH_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "base/event_loop.h"
#include "base/unique_fd.h"

namespace rondo::deviceplugin {

class DirectoryWatch {
 public:
  // on_change(name): the name was created, replaced or removed; look which.
  // name is empty when anything may have happened (events lost, directory
  // made anew).
  DirectoryWatch(EventLoop& loop, std::string directory,
                 std::function<void(absl::string_view name)> on_change);
  ~DirectoryWatch();
  DirectoryWatch(const DirectoryWatch&) = delete;
  DirectoryWatch& operator=(const DirectoryWatch&) = delete;

 private:
  void Start();
  void Stop();
  void Read();

  EventLoop& loop_;
  const std::string directory_;
  const std::function<void(absl::string_view)> on_change_;
  UniqueFd inotify_;
  EventLoop::TimerId retry_ = 0;
  bool complained_ = false;
};

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_DIRECTORY_WATCH_H_
