// SPDX-License-Identifier: Apache-2.0
//
// One simulated GPU: memory, the compute engine, the pages through which
// programs launch work and wait for it, and the subscribers of its
// context-switch log. Moves in simulated time by AdvanceTo.
//
// Threads: the caller serialises (Server holds one lock for the whole node).
// Failure: false or null where the card is full or an id is not there.

#ifndef RONDO_SIM_DRIVER_CARD_H_
#define RONDO_SIM_DRIVER_CARD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/driver/engine.h"
#include "sim/driver/group_page.h"
#include "sim/driver/shared_memory.h"
#include "sim/driver/switch_log.h"

namespace rondo::sim::driver {

struct CardOptions {
  std::string uuid;
  uint64_t total_kib = 0;
  uint64_t heap_kib = 0;  // total less what the driver keeps for itself
};

// What happened on a card: how often another group came onto the engine, and
// what was asked of it from outside.
struct CardCounts {
  uint64_t switches = 0;
  uint64_t slices = 0;                   // changed, compute groups only
  uint64_t least_slice_us = UINT64_MAX;  // of those
  uint64_t most_slice_us = 0;
  uint64_t suspensions = 0, resumptions = 0;  // calls
};

class Card : public Engine::Observer {
 public:
  explicit Card(CardOptions options) : options_(std::move(options)) {}

  const CardOptions& options() const { return options_; }
  uint64_t used_bytes() const { return used_; }
  // False: the card is full.
  bool TakeMemory(uint64_t bytes);
  void GiveMemory(uint64_t bytes) { used_ -= bytes; }

  // A channel group on the compute engine. page holds a GroupPage.
  GroupId AddGroup(uint32_t pid, uint32_t uid, int64_t slice_ns,
                   std::shared_ptr<SharedMemory> page);
  // Whoever waits there stays asleep: its process is gone.
  void RemoveGroup(GroupId group);
  Engine* engine() { return &engine_; }
  // The channel starts anew: what it had is lost.
  void ResetChannel(GroupId group, uint32_t channel);

  CardCounts* counts() { return &counts_; }

  void AddLog(const std::shared_ptr<SwitchLog>& log) { logs_.push_back(log); }
  void DrainLogs();

  // wall = simulated + offset, nanoseconds since 1970.
  void SetWallOffset(int64_t offset_ns) { wall_offset_ns_ = offset_ns; }

  // Takes new work and wakes whoever need not wait. coupled_only: of groups
  // where a thread lives in simulated time.
  void Poll(bool coupled_only);
  // A thread that lives in simulated time is awake: time must stand still.
  bool Holding() const;
  // Stops waiting for those that hold, but for those of processes in `spared`.
  void GiveUpHolders(const std::function<bool(uint32_t pid)>& spared);
  int64_t NextEvent() const;
  void AdvanceTo(int64_t time_ns);
  int64_t now() const { return engine_.now(); }

  // Nanoseconds of kernels done by the groups of each process.
  std::map<uint32_t, int64_t> ProgressByPid() const;

  void OnDone(GroupId group, uint32_t channel, uint64_t tag, uint64_t done,
              int64_t at_ns) override;
  void OnSwitch(GroupId group, bool starts, int64_t at_ns) override;

 private:
  struct Group {
    uint32_t pid = 0, uid = 0;
    std::shared_ptr<SharedMemory> memory;
    GroupPage* page = nullptr;
    uint64_t taken[kRings] = {};  // entries; the page's own count is for show
  };
  void TakeEntries(GroupId id, Group* group, uint32_t ring);
  void WakeWaiters(Group* group);

  const CardOptions options_;
  uint64_t used_ = 0;
  CardCounts counts_;
  Engine engine_{this};
  std::map<GroupId, Group> groups_;
  GroupId last_group_ = kNoGroup;
  std::vector<std::weak_ptr<SwitchLog>> logs_;
  int64_t wall_offset_ns_ = 0;
  int64_t next_drain_ns_ = 0;
};

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_CARD_H_
