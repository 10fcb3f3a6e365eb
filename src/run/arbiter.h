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
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/activity_feed.h"
#include "base/event_loop.h"
#include "base/unique_fd.h"
#include "rm/system.h"
#include "run/control.h"
#include "run/gpus.h"
#include "share/share.h"

namespace rondo::run {

class Arbiter {
 public:
  struct Options {
    std::string run_dir;
    // How long it stays after the last client.
    std::chrono::milliseconds linger{1000};
    // How often a slot without a run is asked for its processes.
    std::chrono::milliseconds look{1000};
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
  };

  Arbiter(EventLoop& loop, Options options, UniqueFd lock, UniqueFd listener,
          std::unique_ptr<share::Share> share);
  void OnConnection();
  void OnPacket(int fd);
  void Drop(int fd);
  bool InUse(const std::string& slot);
  void LookAtLeft();
  absl::StatusOr<std::string> Grant(Client& client, const Request& request);
  absl::Status Configure();
  void StopWhenUnused();

  EventLoop& loop_;
  const Options options_;
  const UniqueFd lock_;  // held as long as this arbiter serves the folder
  const UniqueFd listener_;
  std::unique_ptr<share::Share> share_;
  std::unique_ptr<agent::ActivityFeed> feed_;
  std::map<int, Client> clients_;
  // Slots whose keeper is gone while processes use them still, as where it was
  // killed. They keep their limit, and nobody else is charged with them.
  std::vector<share::SlotSpec> left_;
  EventLoop::TimerId left_timer_ = 0;
  // Where another arbiter died: until then its slots are for their runs only,
  // which come back for them. A new run in one would lock the old one out.
  MonotonicTime old_slots_until_{};
  Gpus gpus_;
  EventLoop::TimerId linger_ = 0;
  bool served_ = true;  // false: the last to ask was refused
};

}  // namespace rondo::run

#endif  // RONDO_RUN_ARBITER_H_
