// SPDX-License-Identifier: Apache-2.0
//
// Tells when something in a directory changed: a file written, replaced,
// removed, or a ConfigMap's `..data` swapped. Bursts are folded: one call,
// quiet after the last event (20 ms), but at most 100 ms after the first.
//
// Runs on the event loop it was given. A directory that does not exist yet (or
// is removed and made again) is waited for by watching its nearest existing
// parent.

#ifndef RONDO_AGENT_DIR_WATCHER_H_
#define RONDO_AGENT_DIR_WATCHER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/event_loop.h"
#include "base/unique_fd.h"

namespace rondo::agent {

class DirWatcher {
 public:
  // Internal where the kernel gives no inotify instance
  // (fs.inotify.max_user_instances), with that remedy.
  static absl::StatusOr<std::unique_ptr<DirWatcher>> Create(
      EventLoop& loop, std::string directory, std::function<void()> on_change);
  ~DirWatcher();

 private:
  DirWatcher(EventLoop& loop, std::string directory,
             std::function<void()> on_change);
  void Rewatch();
  void OnReadable();
  void Arm();

  EventLoop& loop_;
  const std::string directory_;
  const std::function<void()> on_change_;
  UniqueFd inotify_;
  int watch_ = -1;
  std::string watched_;  // directory_ or its nearest existing parent
  MonotonicTime first_event_{0};
  EventLoop::TimerId timer_ = 0;
};

}  // namespace rondo::agent

#endif  // RONDO_AGENT_DIR_WATCHER_H_
