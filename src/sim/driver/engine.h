// SPDX-License-Identifier: Apache-2.0
//
// The compute engine of one simulated GPU under the hardware scheduler's rules:
// a discrete-event machine. Channel groups take turns, each for its time slice;
// groups without work are skipped; a change of the group on the engine costs a
// context switch. Time is simulated nanoseconds and moves only by AdvanceTo, so
// every figure is exact and repeatable.
//
// Threads: none of its own; the caller serialises. Failure: none; unknown ids
// are programming errors and are ignored. Numbers: rm/facts.h;
// docs/sim-driver.md says which figure each explains.

#ifndef RONDO_SIM_DRIVER_ENGINE_H_
#define RONDO_SIM_DRIVER_ENGINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <vector>

#include "rm/facts.h"

namespace rondo::sim::driver {

using GroupId = uint64_t;
inline constexpr GroupId kNoGroup = 0;
inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
inline constexpr uint32_t kChannels = 8;  // of one group

struct EngineTiming {
  // From one group's last moment on the engine to the next one's first.
  int64_t switch_ns = rm::kContextSwitchUs * 1000;
  // What a group that comes back needs, inside its slice, before its kernels
  // make progress. A slice below it makes none: the livelock of tiny slices.
  int64_t refill_ns = rm::kRefillUs * 1000;
  // Between two kernels of one channel.
  int64_t launch_gap_ns = rm::kLaunchGapNs;
};

// One entry of a channel, done in order.
struct Work {
  int64_t duration_ns = 0;  // 0: takes no time, not even the launch gap
  uint64_t tag = 0;         // given back when it is done
  // Not before this channel of the group has done so many entries; the
  // channel's own number = no condition.
  uint32_t wait_channel = 0;
  uint64_t wait_done = 0;
};

class Engine {
 public:
  // Told during the Engine's own calls; must not call back into it.
  class Observer {
   public:
    virtual ~Observer() = default;
    // done: entries that the channel has finished, this one included.
    virtual void OnDone(GroupId group, uint32_t channel, uint64_t tag,
                        uint64_t done, int64_t at_ns) = 0;
    // The group comes onto the engine, or leaves it.
    virtual void OnSwitch(GroupId group, bool starts, int64_t at_ns) = 0;
  };

  explicit Engine(Observer* observer, EngineTiming timing = {})
      : observer_(observer), timing_(timing) {}

  // Groups take turns in the order of their adding.
  void AddGroup(GroupId group, int64_t slice_ns);
  // Its work is lost.
  void RemoveGroup(GroupId group);
  // Takes the group off the engine and starts the round anew, as the driver
  // does for each change.
  void SetSlice(GroupId group, int64_t slice_ns);
  // Ends the group's slice now.
  void Preempt(GroupId group);
  // at_slice_end: a group that runs keeps running until its slice ends.
  void SetEnabled(GroupId group, uint32_t channel, bool enabled,
                  bool at_slice_end = false);

  void Submit(GroupId group, uint32_t channel, const Work& work);
  // Empties the channel and counts its entries from 0 again.
  void ResetChannel(GroupId group, uint32_t channel);

  int64_t now() const { return now_; }
  // When the next thing happens by itself; kNever when all is idle.
  int64_t NextEvent() const;
  // Does what happens until then, in order. Never moves back.
  void AdvanceTo(int64_t time_ns);

  // Nanoseconds of kernels done, whole or in part.
  int64_t Progress(GroupId group) const;
  int64_t Slice(GroupId group) const;
  bool Runnable(GroupId group) const;

 private:
  struct Channel {
    std::deque<Work> queue;
    int suspensions = 0;  // counted, as the card's driver does
    uint64_t done = 0;
    // Of the first entry, once begun: what is left of it, launch gap included,
    // and how much of that is the gap.
    int64_t left_ns = 0;
    int64_t gap_ns = 0;
  };
  struct Group {
    int64_t slice_ns = 0;
    std::array<Channel, kChannels> channels;
    // The channel whose kernel is on the engine, or was when the group left it.
    uint32_t channel = 0;
    int64_t progress_ns = 0;
  };
  enum class Phase { kIdle, kSwitching, kRefilling, kRunning };

  bool Ready(const Group& group, uint32_t channel) const;
  bool HasWork(const Group& group) const;
  bool OthersRunnable() const;
  GroupId PickNext();
  // The group on the engine leaves it; the next one that has work comes.
  void Leave();
  void SwitchToNext();
  void Arrive();
  void Wake();  // something became runnable
  void Account(int64_t to_ns);
  // Goes on with the kernel that was cut off, or takes the next one; finishes
  // entries that take no time. False: the group has no work.
  bool LoadKernel();
  void Finish(Group* group);
  void RunOrIdle();
  int64_t SliceEnd() const;
  void Step();

  Observer* const observer_;
  const EngineTiming timing_;
  int64_t now_ = 0;
  std::map<GroupId, Group> groups_;
  std::vector<GroupId> ring_;
  size_t ring_next_ = 0;

  Phase phase_ = Phase::kIdle;
  // On the engine, or (kSwitching) coming. While kIdle: whose context is still
  // there, so that it goes on at once.
  GroupId current_ = kNoGroup;
  bool leave_at_slice_end_ = false;
  int64_t phase_end_ = kNever;  // of kSwitching and kRefilling
  int64_t slice_start_ = 0;
};

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_ENGINE_H_
