// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/directory_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <set>
#include <utility>

#include "base/file.h"
#include "base/log.h"

namespace rondo::deviceplugin {
namespace {

constexpr std::chrono::seconds kRetry(1);

}  // namespace

DirectoryWatch::DirectoryWatch(EventLoop& loop, std::string directory,
                               std::function<void(absl::string_view)> on_change)
    : loop_(loop),
      directory_(std::move(directory)),
      on_change_(std::move(on_change)) {
  Start();
}

DirectoryWatch::~DirectoryWatch() { Stop(); }

void DirectoryWatch::Stop() {
  loop_.CancelTimer(retry_);
  retry_ = 0;
  if (inotify_.ok()) loop_.Unwatch(inotify_.get());
  inotify_.Reset();
}

void DirectoryWatch::Start() {
  Stop();
  absl::Status status = absl::OkStatus();
  inotify_ = UniqueFd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify_.ok()) {
    status = ErrnoStatus("inotify");
  } else if (inotify_add_watch(inotify_.get(), directory_.c_str(),
                               IN_CREATE | IN_MOVED_TO | IN_DELETE |
                                   IN_MOVED_FROM | IN_DELETE_SELF |
                                   IN_MOVE_SELF | IN_ONLYDIR) < 0) {
    status = ErrnoStatus("watch " + directory_);
    inotify_.Reset();
  } else {
    status = loop_.Watch(inotify_.get(), [this] { Read(); });
  }
  if (status.ok()) {
    if (std::exchange(complained_, false)) on_change_("");
    return;
  }
  if (!std::exchange(complained_, true))
    LogWarning(status.message(), "; trying once a second");
  retry_ = loop_.RunAfter(kRetry, [this] { Start(); });
}

void DirectoryWatch::Read() {
  alignas(inotify_event) char buffer[4096];
  std::set<std::string> names;
  bool restart = false;
  while (true) {
    const ssize_t n = read(inotify_.get(), buffer, sizeof(buffer));
    if (n <= 0) break;
    for (ssize_t at = 0; at < n;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      if (event->mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF))
        restart = true;
      else if (event->mask & IN_Q_OVERFLOW)
        names.insert("");
      else if (event->len > 0)
        names.insert(event->name);
    }
  }
  if (restart) {
    complained_ = true;
    Start();
    return;
  }
  for (const std::string& name : names) on_change_(name);
}

}  // namespace rondo::deviceplugin
