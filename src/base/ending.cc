// SPDX-License-Identifier: Apache-2.0
#include "base/ending.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"

namespace rondo {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

std::string Seconds(MonotonicTime time) {
  return absl::StrCat(
      static_cast<double>(duration_cast<milliseconds>(time).count()) / 1000,
      " s");
}

}  // namespace

Ending::Ending(const CallsInFlight& calls, UniqueFd signals, OnSignal on_signal,
               milliseconds patience)
    : calls_(calls),
      signals_(std::move(signals)),
      on_signal_(std::move(on_signal)),
      patience_(patience),
      wake_(eventfd(0, EFD_CLOEXEC)) {
  if (!wake_.ok()) abort();  // as EventLoop does
  thread_ = std::thread([this] { Main(); });
}

Ending::~Ending() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

void Ending::Begin(int exit_code) {
  {
    const std::lock_guard lock(mutex_);
    if (began_) return;
    began_ = RealClock().Now();
    exit_code_ = exit_code;
  }
  eventfd_write(wake_.get(), 1);
}

void Ending::Main() {
  for (;;) {
    std::optional<MonotonicTime> began;
    {
      const std::lock_guard lock(mutex_);
      if (over_) return;
      began = began_;
    }
    int timeout_ms = -1;
    if (began) {
      const MonotonicTime left = *began + patience_ - RealClock().Now();
      if (left <= MonotonicTime(0)) Leave();
      timeout_ms = static_cast<int>(duration_cast<milliseconds>(left).count());
      ++timeout_ms;  // not before
    }
    pollfd fds[] = {
        {.fd = wake_.get(), .events = POLLIN, .revents = 0},
        {.fd = began ? -1 : signals_.get(), .events = POLLIN, .revents = 0}};
    poll(fds, 2, timeout_ms);
    if (eventfd_t value; fds[0].revents != 0) eventfd_read(wake_.get(), &value);
    if (fds[1].revents != 0) TakeSignals();
  }
}

void Ending::TakeSignals() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof(info)) == sizeof(info))
    if (const auto code = on_signal_(static_cast<int>(info.ssi_signo))) {
      Begin(*code);
      return;
    }
}

void Ending::Leave() {
  // Who was not told to stop yet goes on with calls that return.
  const MonotonicTime now = RealClock().Now();
  std::vector<std::string> waited;
  for (const CallsInFlight::Call& call : calls_.Since(now - patience_ / 3))
    waited.push_back(
        absl::StrCat(call.what, " (for ", Seconds(now - call.since), ")"));
  LogError("ending without having waited for ",
           waited.empty() ? "all threads" : absl::StrJoin(waited, ", "));
  const std::lock_guard lock(mutex_);
  _exit(exit_code_);
}

}  // namespace rondo
