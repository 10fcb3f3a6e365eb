// SPDX-License-Identifier: Apache-2.0
#include "base/signals.h"

#include <signal.h>
#include <sys/signalfd.h>

#include "base/file.h"

namespace rondo {

absl::StatusOr<UniqueFd> WatchedSignals(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.ok()) return ErrnoStatus("signalfd");
  return fd;
}

}  // namespace rondo
