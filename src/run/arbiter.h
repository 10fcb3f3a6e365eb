// SPDX-License-Identifier: Apache-2.0
//
// The arbiter of a workstation: what the node agent is to pods, for programs
// that `rondo run` starts. One a run folder, started by the first run, gone
// some seconds after the last.
//
// Failure: AlreadyExists where another one serves the folder. A lost client
// gives its slot back.

#ifndef RONDO_RUN_ARBITER_H_
#define RONDO_RUN_ARBITER_H_

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/event_loop.h"
#include "base/in_flight.h"
#include "base/ticker.h"
#include "base/unique_fd.h"
#include "rm/system.h"
#include "run/control.h"
#include "run/gpus.h"
#include "run/inherited.h"
#include "share/activity_bridge.h"
#include "share/share.h"

namespace rondo::run {

class Arbiter {
 public:
  struct Options {
    std::string run_dir;  // as environments of its programs name it
    // The same folder, as it makes and removes files there by.
    std::string home;
    // Where calls of NVML are noted; may be null.
    CallsInFlight* calls = nullptr;
    // How long it stays after the last client.
    std::chrono::milliseconds linger{1000};
    // How often a slot without a run is asked who may still come to it.
    std::chrono::milliseconds look{1000};
    // How often it looks whether programs are governed.
    std::chrono::milliseconds govern{500};
    // After one that died: see share::ShareOptions.
    std::chrono::milliseconds replay_window{500};
  };

  static absl::StatusOr<std::unique_ptr<Arbiter>> Create(EventLoop& loop,
                                                         rm::System& system,
                                                         Options options);
  ~Arbiter();

 private:
  struct Client {
    UniqueFd fd;
    std::string slot;  // empty until granted
    share::SlotSpec spec;
    bool asked = false;
    bool told = false;  // that its program is not governed
  };

  Arbiter(EventLoop& loop, Options options, UniqueFd lock, UniqueFd listener,
          std::unique_ptr<share::Share> share);
  absl::Status Listen();
  void OnConnection();
  void OnPacket(int fd);
  void Drop(int fd);
  // A slot that nobody holds, but somebody may still come to.
  void Leave(const share::SlotSpec& spec);
  void TakeOver();
  // Where what a slot was granted for is written down.
  std::string RequestFile(const share::SlotSpec& slot) const;
  bool InUse(const std::string& slot);
  void TellUngoverned();
  // inherited: what was found by a look that began then.
  void OnLooked(MonotonicTime began, const Inherited& inherited);
  absl::StatusOr<std::string> Grant(Client& client, const Request& request);
  absl::Status Configure();
  void StopWhenUnused();

  EventLoop& loop_;
  const Options options_;
  const UniqueFd lock_;  // held as long as this arbiter serves the folder
  const UniqueFd kept_;  // the folder, so that its age does not count
  const UniqueFd listener_;
  std::unique_ptr<share::Share> share_;
  std::unique_ptr<share::ActivityBridge> feed_;
  std::map<int, Client> clients_;
  // Slots whose run has ended, which processes that it started use or may come
  // to, as daemons do. They keep their limit, and nobody else has them.
  struct Left {
    share::SlotSpec spec;
    MonotonicTime since;
  };
  std::vector<Left> left_;
  std::unique_ptr<Ticker>
      looks_;  // while there are some; off the loop's thread
  // Of the arbiter that died here: for the runs that come back for them, also
  // where it could not write down what they asked for.
  std::set<std::string> old_slots_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  Gpus gpus_;
  EventLoop::TimerId linger_ = 0, accept_timer_ = 0, govern_timer_ = 0;
  // Who only asks for the status does not count as use.
  std::optional<MonotonicTime> unused_since_;
  bool served_ = true;  // false: the last to ask was refused
};

}  // namespace rondo::run

#endif  // RONDO_RUN_ARBITER_H_
