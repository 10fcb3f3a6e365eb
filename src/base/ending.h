// SPDX-License-Identifier: Apache-2.0
//
// Bounds how long a daemon takes to end. Its destructors wait for threads, and
// a thread, or the event loop itself, may be within a call that hangs. Once the
// end has begun, the process has some seconds; if this object is still there
// then, it says which calls were not waited for (those that last for a third of
// that time or longer), and the process ends with the exit status of its
// orderly end.
//
// A call that the kernel does not let go of (state D) holds the process all the
// same, as it does at SIGKILL.
//
// Threads: one of its own; Begin from any.

#ifndef RONDO_BASE_ENDING_H_
#define RONDO_BASE_ENDING_H_

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "base/in_flight.h"
#include "base/unique_fd.h"

namespace rondo {

class Ending {
 public:
  // Told of a signal on the object's thread, so that a loop that hangs has no
  // say: post it there. The exit status where it begins the end, after which no
  // signal is told.
  using OnSignal = std::function<std::optional<int>(int signal)>;

  static constexpr std::chrono::milliseconds kPatience{3000};

  // calls outlives it. signals: of WatchedSignals, or none.
  explicit Ending(const CallsInFlight& calls, UniqueFd signals = UniqueFd(),
                  OnSignal on_signal = nullptr,
                  std::chrono::milliseconds patience = kPatience);
  ~Ending();  // all that could hang is behind
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

  // The end has begun; the first to say so counts.
  void Begin(int exit_code);

 private:
  void Main();
  void TakeSignals();
  [[noreturn]] void Leave();

  const CallsInFlight& calls_;
  const UniqueFd signals_;
  const OnSignal on_signal_;
  const std::chrono::milliseconds patience_;
  const UniqueFd wake_;

  std::mutex mutex_;
  bool over_ = false;                   // guarded by mutex_, as are the next
  std::optional<MonotonicTime> began_;  // two
  int exit_code_ = 0;

  std::thread thread_;  // last: uses the above
};

}  // namespace rondo

#endif  // RONDO_BASE_ENDING_H_
