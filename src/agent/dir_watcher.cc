// SPDX-License-Identifier: Apache-2.0
#include "agent/dir_watcher.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"

namespace rondo::agent {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kQuiet{20};
constexpr milliseconds kLongest{100};
constexpr uint32_t kMask = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE |
                           IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB |
                           IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

std::string Parent(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DirWatcher>> DirWatcher::Create(
    EventLoop& loop, std::string directory, std::function<void()> on_change) {
  std::unique_ptr<DirWatcher> watcher(
      new DirWatcher(loop, std::move(directory), std::move(on_change)));
  if (!watcher->inotify_.ok())
    return absl::InternalError(
        absl::StrCat(ErrnoStatus("inotify_init1").message(),
                     " (raise fs.inotify.max_user_instances)"));
  RONDO_RETURN_IF_ERROR(loop.Watch(watcher->inotify_.get(),
                                   [w = watcher.get()] { w->OnReadable(); }));
  watcher->Rewatch();
  return watcher;
}

DirWatcher::DirWatcher(EventLoop& loop, std::string directory,
                       std::function<void()> on_change)
    : loop_(loop),
      directory_(std::move(directory)),
      on_change_(std::move(on_change)),
      inotify_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

DirWatcher::~DirWatcher() {
  loop_.CancelTimer(timer_);
  if (inotify_.ok()) loop_.Unwatch(inotify_.get());
}

void DirWatcher::Rewatch() {
  std::string path = directory_;
  while (true) {
    const int watch = inotify_add_watch(inotify_.get(), path.c_str(), kMask);
    if (watch >= 0) {
      if (watch_ >= 0 && watch_ != watch)
        inotify_rm_watch(inotify_.get(), watch_);
      watch_ = watch;
      watched_ = path;
      return;
    }
    if (path == "/") break;
    path = Parent(path);
  }
  LogError(ErrnoStatus(absl::StrCat("watch ", directory_)).message(),
           "; changes there will not be seen");
}

void DirWatcher::OnReadable() {
  alignas(inotify_event) char buffer[4096];
  bool changed = false;
  while (read(inotify_.get(), buffer, sizeof(buffer)) > 0) changed = true;
  if (changed) Arm();
}

void DirWatcher::Arm() {
  const MonotonicTime now = RealClock().Now();
  if (timer_ == 0)
    first_event_ = now;
  else
    loop_.CancelTimer(timer_);
  const MonotonicTime delay = std::clamp<MonotonicTime>(
      first_event_ + kLongest - now, milliseconds(0), kQuiet);
  timer_ = loop_.RunAfter(delay, [this] {
    timer_ = 0;
    Rewatch();
    on_change_();
  });
}

}  // namespace rondo::agent
