// SPDX-License-Identifier: Apache-2.0
//
// What is believed to be in force on each process of one GPU, and the order in
// which it may be changed. The arbiter says what it wants; this emits the
// actions that lead there and are safe at every step. Pure: the arbiter is the
// only caller.
//
// The rule (measured, docs/arbiter.md): two or more runnable channel groups
// whose slices are below the cost of a switch make no progress at all. So at
// most ONE group may be possibly tiny and possibly runnable, judged by the
// worst case of everything unconfirmed: a slice that was sent may be in force
// or not; a process is suspended only while the driver's own answer says so.
// Raising a slice and suspending are always safe and go first; lowering to a
// tiny slice and resuming wait until the rest is confirmed. Death of anybody
// after any prefix of these actions leaves the rule intact.
//
// Lost answers are retried; a process that keeps refusing is reported broken
// and left on what it has.

#ifndef RONDO_SHARE_TIME_CONTROLS_H_
#define RONDO_SHARE_TIME_CONTROLS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "rm/facts.h"
#include "share/ids.h"
#include "share/time/action.h"
#include "wire/messages.h"

namespace rondo::share {

struct ControlOptions {
  // What libcuda sets on a compute group: in force until we say otherwise.
  uint32_t default_slice_us = rm::kDefaultComputeSliceUs;
  // Below this a slice is tiny.
  uint32_t floor_us = wire::kLeastSharedSliceUs;
  // Where a group goes that must leave a tiny slice at once.
  uint32_t safe_slice_us = rm::kDefaultComputeSliceUs;
  // Changes that nothing urgent asks for are this far apart, per process: each
  // takes the group off the GPU.
  int64_t slice_interval_us = 200'000;
  // ... and these: a slice much longer than it should be.
  int64_t urgent_interval_us = 20'000;
  // ... and wait while channels come and go, as when many programs start: then
  // every slice changes with each of them. Not for ever.
  int64_t settle_us = 200'000;
  int64_t longest_settle_us = 2'000'000;
  // A tiny process that may not be resumed beside another is raised after this.
  int64_t blocked_us = 20'000;
  int64_t retry_us = 250'000;        // no answer: ask again
  int64_t max_retry_us = 4'000'000;  // doubling up to here
};

class Controls {
 public:
  enum class Run : uint8_t { kRunning, kSuspended, kUnknown };

  explicit Controls(const ControlOptions& options) : options_(options) {}

  void Attach(ProcessId process);
  void Detach(int64_t now_us, ProcessId process);
  // Its channels changed; groups = compute channel groups now. New channels
  // are born runnable with the default slice, whatever was set before.
  void SetGroups(int64_t now_us, ProcessId process, int groups);

  // slice_us: the smallest slice in force on any of its groups. seq 0: told
  // unasked. ok false: not (all of) what was asked for is in force.
  void OnApplied(ProcessId process, uint32_t seq, uint32_t slice_us, bool ok);
  void OnSwitched(int64_t now_us, uint64_t op, ProcessId process, bool ok);
  // It came too late, and nothing was done.
  void OnLate(uint64_t op, ProcessId process);
  // It was on the GPU at that time. After a confirmed suspension that means
  // that somebody else resumed it: true then, once an escape.
  bool OnRan(int64_t at_us, ProcessId process);

  // Takes effect in the next Reconcile. slice_us 0: leave as it is.
  void Want(ProcessId process, bool runnable, uint32_t slice_us);

  // Emits what may be done now; suspensions are good until not_after_us.
  // Returns when to call again although nothing happened (INT64_MAX: never).
  int64_t Reconcile(int64_t now_us, int64_t not_after_us,
                    std::vector<Action>* actions);

  Run run(ProcessId process) const;
  // Since when a run state has been confirmed; INT64_MAX if it is unknown.
  int64_t run_since_us(ProcessId process) const;
  uint32_t slice_us(ProcessId process) const;  // last confirmed
  bool suspend_broken(ProcessId process) const;
  bool slice_broken(ProcessId process) const;

 private:
  struct Sent {
    uint32_t seq = 0;
    uint32_t slice_us = 0;
  };
  struct Process {
    int groups = 0;
    bool want_runnable = true;
    uint32_t want_slice_us = 0;

    uint32_t slice_us = 0;        // last known to be in force on every group
    bool slice_exact = false;     // ... and nothing has happened since
    std::vector<Sent> in_flight;  // unanswered, oldest first
    int64_t slice_sent_us = kNever;
    int64_t slice_retry_us = 0;
    int slice_failures = 0;

    Run run = Run::kRunning;
    int64_t run_since_us = kNever;
    uint64_t op = 0;  // unanswered; 0 = none
    bool op_suspend = false;
    Run run_before = Run::kRunning;  // what it is still, if that comes too late
    int64_t run_before_since_us = kNever;
    int64_t op_sent_us = kNever;
    int64_t op_retry_us = 0;
    int switch_failures = 0;
    int64_t blocked_since_us = INT64_MAX / 2;  // a resume that has to wait
    int escapes = 0;  // times that somebody else resumed it
  };
  static constexpr int64_t kNever = INT64_MIN / 2;

  void Unsettle(int64_t now_us);
  uint32_t LowestSlice(const Process& p) const;
  bool Tiny(const Process& p) const;
  bool TinyRunnable(const Process& p) const;
  bool OthersTinyRunnable(const Process& p) const;
  bool SliceDue(int64_t now_us, bool emergency, Process& p, uint32_t* slice_us,
                int64_t* wake_us) const;
  bool SwitchDue(int64_t now_us, Process& p, bool suspend,
                 int64_t* wake_us) const;
  void EmitSlice(int64_t now_us, ProcessId id, Process& p, uint32_t slice_us,
                 std::vector<Action>* actions);
  void EmitSwitch(int64_t now_us, bool suspend, std::vector<ProcessId> ids,
                  int64_t not_after_us, std::vector<Action>* actions);

  const ControlOptions options_;
  std::map<ProcessId, Process> processes_;
  int64_t unsettled_since_us_ = kNever;
  int64_t settled_at_us_ = kNever;
  uint64_t last_op_ = 0;
  uint32_t last_seq_ = 0;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_CONTROLS_H_
