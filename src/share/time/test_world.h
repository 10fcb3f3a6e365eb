// SPDX-License-Identifier: Apache-2.0
//
// A GPU, its shims and its driver as the arbiter's tests need them: what is
// truly in force on each channel group, with every message between agent and
// world delayed, reordered among processes, lost or refused as the test likes.

#ifndef RONDO_SHARE_TIME_TEST_WORLD_H_
#define RONDO_SHARE_TIME_TEST_WORLD_H_

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rm/facts.h"
#include "share/time/arbiter.h"
#include "wire/messages.h"

namespace rondo::share {

struct WorldGroup {
  uint32_t slice_us = rm::kDefaultComputeSliceUs;
  bool runnable = true;
};

struct WorldProcess {
  TenantId tenant = 0;
  std::vector<WorldGroup> groups;
  std::deque<SetSlice> inbox;
};

class World {
 public:
  static constexpr uint32_t kFloorUs = wire::kLeastSharedSliceUs;
  static constexpr uint32_t kDefaultUs = rm::kDefaultComputeSliceUs;

  // A Switch with the number of groups that each process had when it was
  // emitted: the channel list goes with the call.
  struct Call {
    Switch op;
    std::map<ProcessId, size_t> groups;
  };

  std::map<ProcessId, WorldProcess> processes;
  std::deque<Call> calls;     // to the driver, carried out in order
  std::deque<Event> answers;  // on their way to the arbiter, in order

  // Groups that are runnable on a slice below the cost of a switch.
  int TinyRunnable() const {
    int count = 0;
    for (const auto& [id, p] : processes)
      for (const WorldGroup& g : p.groups)
        count += g.runnable && g.slice_us < kFloorUs;
    return count;
  }

  void Take(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      if (const auto* set = std::get_if<SetSlice>(&action)) {
        const auto p = processes.find(set->process);
        if (p != processes.end()) p->second.inbox.push_back(*set);
        continue;
      }
      Call call{std::get<Switch>(action), {}};
      for (ProcessId id : call.op.processes) {
        const auto p = processes.find(id);
        if (p != processes.end()) call.groups[id] = p->second.groups.size();
      }
      calls.push_back(std::move(call));
    }
  }

  // The shim takes one message. refuse: the driver does not take the slice. The
  // shim itself refuses a tiny slice for more than one group: they would
  // livelock with each other, and only it knows of a group born just now.
  void ShimStep(ProcessId id, bool refuse, bool lose_answer) {
    WorldProcess& p = processes.at(id);
    if (p.inbox.empty()) return;
    const SetSlice set = p.inbox.front();
    p.inbox.pop_front();
    refuse |= set.slice_us < kFloorUs && p.groups.size() > 1;
    SliceApplied applied{id, set.seq, set.slice_us, !refuse};
    for (WorldGroup& g : p.groups)
      if (!refuse) g.slice_us = set.slice_us;
    if (refuse) {
      applied.slice_us = p.groups.empty() ? 0 : p.groups[0].slice_us;
      for (const WorldGroup& g : p.groups)
        applied.slice_us = std::min(applied.slice_us, g.slice_us);
    }
    if (!lose_answer) answers.push_back(applied);
  }

  // The driver takes one call. done and ok may differ: a call that fails may
  // have had its effect. late: it comes too late, if that is possible.
  void DriverStep(bool done, bool ok, bool lose_answer, bool late = false) {
    if (calls.empty()) return;
    const Call call = calls.front();
    calls.pop_front();
    late &= call.op.not_after_us != INT64_MAX;
    if (late) done = ok = false;
    for (ProcessId id : call.op.processes) {
      const auto p = processes.find(id);
      if (p == processes.end()) continue;
      auto& groups = p->second.groups;
      const auto named = call.groups.find(id);
      if (done && named != call.groups.end())
        for (size_t i = 0; i < named->second && i < groups.size(); ++i)
          groups[i].runnable = !call.op.suspend;
      if (!lose_answer)
        answers.push_back(Switched{call.op.op, id, done && ok, late});
    }
  }

  // As the shim does: a new group starts on the default slice. It takes over
  // the slice in force only where that is no tiny one.
  void AddGroup(ProcessId id) {
    WorldProcess& p = processes.at(id);
    uint32_t slice = kDefaultUs;
    if (!p.groups.empty() && p.groups[0].slice_us >= kFloorUs)
      slice = p.groups[0].slice_us;
    p.groups.push_back({slice, true});
  }

  std::string Describe() const {
    std::string text;
    for (const auto& [id, p] : processes) {
      absl::StrAppend(&text, "process ", id, " of ", p.tenant, ":");
      for (const WorldGroup& g : p.groups)
        absl::StrAppend(&text, " ", g.slice_us, g.runnable ? "" : "(off)");
      absl::StrAppend(&text, "\n");
    }
    return text;
  }
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_TEST_WORLD_H_
