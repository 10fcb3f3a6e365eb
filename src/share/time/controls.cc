// SPDX-License-Identifier: Apache-2.0
#include "share/time/controls.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace rondo::share {
namespace {

// A group that comes onto the GPU must get to its work within the slice.
static_assert(wire::kLeastSharedSliceUs > rm::kContextSwitchUs &&
              wire::kLeastSharedSliceUs > rm::kRefillUs);

// A process that answers nothing is asked no more than this often in advance.
constexpr size_t kMaxInFlight = 16;
constexpr int kBrokenAfter = 3;
// So many times too long is not left for later.
constexpr double kUrgent = 1.5;
// The log's times and ours are compared across clocks and threads: what is seen
// on the GPU so shortly after its suspension was there before.
constexpr int64_t kEscapeLeastUs = 20'000;

}  // namespace

void Controls::Attach(ProcessId process) {
  Process p;
  p.slice_us = options_.default_slice_us;
  p.slice_exact = true;
  processes_[process] = p;
}

void Controls::Detach(int64_t now_us, ProcessId process) {
  if (processes_.erase(process) > 0) Unsettle(now_us);
}

void Controls::Unsettle(int64_t now_us) {
  if (now_us >= settled_at_us_) unsettled_since_us_ = now_us;
  settled_at_us_ = std::min(now_us + options_.settle_us,
                            unsettled_since_us_ + options_.longest_settle_us);
}

void Controls::SetGroups(int64_t now_us, ProcessId process, int groups) {
  const auto found = processes_.find(process);
  if (found == processes_.end()) return;
  Process& p = found->second;
  if (groups != p.groups) Unsettle(now_us);
  const bool first = p.groups == 0;
  p.groups = std::max(0, groups);
  p.slice_exact = false;
  p.slice_failures = 0;
  // No group is born with a tiny slice (docs/arbiter.md, what the shim owes).
  if (first) p.slice_us = std::max(p.slice_us, options_.default_slice_us);
  if (first || groups == 0) {
    p.run = Run::kRunning;
    p.run_since_us = kNever;
    p.op = 0;
  } else if (p.run == Run::kSuspended || (p.op != 0 && p.op_suspend)) {
    // A suspension covers the channels that were named; the new ones run, and
    // the answer to a call under way would not speak of them.
    p.run = Run::kUnknown;
    p.run_since_us = INT64_MAX;
    p.op = 0;
  }
}

void Controls::OnApplied(ProcessId process, uint32_t seq, uint32_t slice_us,
                         bool ok) {
  const auto found = processes_.find(process);
  if (found == processes_.end()) return;
  Process& p = found->second;
  // The shim works in order, so an answer settles all that was sent before.
  const auto answered =
      std::find_if(p.in_flight.begin(), p.in_flight.end(),
                   [&](const Sent& sent) { return sent.seq == seq; });
  const bool solicited = answered != p.in_flight.end();
  const uint32_t lowest = LowestSlice(p);
  if (solicited) p.in_flight.erase(p.in_flight.begin(), answered + 1);
  if (!ok) {
    // Read back, so true; without that, the worst of what it may be.
    p.slice_us = slice_us == 0 ? lowest : slice_us;
    p.slice_exact = false;
    if (solicited) ++p.slice_failures;
    return;
  }
  if (slice_us == 0) slice_us = options_.default_slice_us;
  if (!solicited) {
    // Unasked, and perhaps older than what is under way.
    p.slice_us = p.in_flight.empty() ? slice_us : std::min(lowest, slice_us);
    return;
  }
  p.slice_us = slice_us;
  p.slice_exact = true;
  p.slice_failures = 0;
  p.slice_retry_us = 0;
}

void Controls::OnSwitched(int64_t now_us, uint64_t op, ProcessId process,
                          bool ok) {
  const auto found = processes_.find(process);
  // An answer to an older call says nothing about the newer one under way.
  if (found == processes_.end() || found->second.op != op || op == 0) return;
  Process& p = found->second;
  p.op = 0;
  if (!ok) {
    p.run = Run::kUnknown;
    p.run_since_us = INT64_MAX;
    ++p.switch_failures;
    return;
  }
  p.run = p.op_suspend ? Run::kSuspended : Run::kRunning;
  p.run_since_us = now_us;
  p.switch_failures = 0;
  p.op_retry_us = 0;
}

void Controls::OnLate(uint64_t op, ProcessId process) {
  const auto found = processes_.find(process);
  if (found == processes_.end() || found->second.op != op || op == 0) return;
  Process& p = found->second;
  p.op = 0;
  p.run = p.run_before;
  p.run_since_us = p.run_before_since_us;
}

bool Controls::OnRan(int64_t at_us, ProcessId process) {
  const auto found = processes_.find(process);
  if (found == processes_.end()) return false;
  Process& p = found->second;
  if (p.run != Run::kSuspended || at_us <= p.run_since_us + kEscapeLeastUs)
    return false;
  ++p.escapes;
  p.run = Run::kUnknown;
  p.run_since_us = INT64_MAX;
  return true;
}

void Controls::Want(ProcessId process, bool runnable, uint32_t slice_us) {
  const auto found = processes_.find(process);
  if (found == processes_.end()) return;
  found->second.want_runnable = runnable;
  if (!runnable) found->second.blocked_since_us = INT64_MAX / 2;
  if (slice_us != 0) found->second.want_slice_us = slice_us;
}

uint32_t Controls::LowestSlice(const Process& p) const {
  uint32_t lowest = p.slice_us;
  for (const Sent& sent : p.in_flight) lowest = std::min(lowest, sent.slice_us);
  return lowest;
}

bool Controls::Tiny(const Process& p) const {
  return LowestSlice(p) < options_.floor_us;
}

bool Controls::TinyRunnable(const Process& p) const {
  // Without a group, or suspended: a slice under way may meet a group that is
  // born in the meantime, and that one runs.
  return Tiny(p) && (p.run != Run::kSuspended || !p.in_flight.empty());
}

bool Controls::OthersTinyRunnable(const Process& p) const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [&](const auto& other) {
                       return &other.second != &p && TinyRunnable(other.second);
                     });
}

// Whether to send a slice now, and which.
bool Controls::SliceDue(int64_t now_us, bool emergency, Process& p,
                        uint32_t* slice_us, int64_t* wake_us) const {
  uint32_t want = p.want_slice_us;
  if (p.groups == 0) {
    if (!Tiny(p)) return false;
    want = options_.safe_slice_us;
  }
  if (want == 0) return false;
  const bool tiny = want < options_.floor_us;
  // Two groups of one process would livelock between themselves.
  if (tiny && (p.groups > 1 || (emergency && TinyRunnable(p))))
    want = options_.safe_slice_us;
  // Not resumed for so long because of another's tiny slice: come up.
  if (p.blocked_since_us + options_.blocked_us <= now_us)
    want = options_.safe_slice_us;
  const bool lowers_to_tiny = want < options_.floor_us && !Tiny(p);
  if (lowers_to_tiny && OthersTinyRunnable(p))
    return false;  // whoever is in the way announces its end by an event
  const bool raises_tiny = Tiny(p) && want >= options_.floor_us;
  const uint32_t last =
      p.in_flight.empty() ? p.slice_us : p.in_flight.back().slice_us;
  const auto difference = std::abs(int64_t{last} - int64_t{want});
  const bool same = difference * 200 <= int64_t{want};
  int64_t due = p.slice_sent_us;
  if (same && p.in_flight.empty() && p.slice_exact) return false;
  if (same && !p.in_flight.empty())
    due += std::max(p.slice_retry_us, options_.retry_us);
  else if (p.slice_failures > 0 && !(raises_tiny && p.slice_failures == 1))
    due += std::max(p.slice_retry_us, options_.retry_us);
  else if (last > kUrgent * want && !lowers_to_tiny)
    due += options_.urgent_interval_us;  // somebody waits for its end
  else if (!raises_tiny && !lowers_to_tiny)
    due = std::max(due + options_.slice_interval_us, settled_at_us_);
  if (p.in_flight.size() >= kMaxInFlight) return false;
  if (now_us < due) {
    *wake_us = std::min(*wake_us, due);
    return false;
  }
  *slice_us = want;
  return true;
}

void Controls::EmitSlice(int64_t now_us, ProcessId id, Process& p,
                         uint32_t slice_us, std::vector<Action>* actions) {
  const bool retry = p.slice_failures > 0 || !p.in_flight.empty();
  p.slice_retry_us = retry ? std::clamp(p.slice_retry_us * 2, options_.retry_us,
                                        options_.max_retry_us)
                           : 0;
  p.slice_sent_us = now_us;
  if (++last_seq_ == 0) ++last_seq_;
  p.in_flight.push_back({last_seq_, slice_us});
  actions->push_back(SetSlice{id, slice_us, last_seq_});
}

// Whether to suspend or resume now.
bool Controls::SwitchDue(int64_t now_us, Process& p, bool suspend,
                         int64_t* wake_us) const {
  if (p.groups == 0 || p.want_runnable == suspend) return false;
  const Run goal = suspend ? Run::kSuspended : Run::kRunning;
  if (p.op == 0 && p.run == goal) return false;
  int64_t due = kNever;
  if (p.op != 0 && p.op_suspend == suspend)
    due = p.op_sent_us + std::max(p.op_retry_us, options_.retry_us);
  else if (p.switch_failures > 0)
    due = p.op_sent_us + std::max(p.op_retry_us, options_.retry_us / 8);
  else if (suspend && p.escapes > 0)
    due = p.op_sent_us +
          std::min(p.escapes * options_.retry_us / 8, options_.max_retry_us);
  if (!suspend) {
    // Calls are carried out in order, so one that suspends and is still under
    // way is undone by this; its answer no longer counts.
    if (Tiny(p) && (p.groups > 1 || OthersTinyRunnable(p))) {
      p.blocked_since_us = std::min(p.blocked_since_us, now_us);
      *wake_us = std::min(
          *wake_us, std::max(now_us + options_.blocked_us, p.blocked_since_us));
      return false;
    }
    p.blocked_since_us = INT64_MAX / 2;
  }
  if (now_us < due) {
    *wake_us = std::min(*wake_us, due);
    return false;
  }
  return true;
}

void Controls::EmitSwitch(int64_t now_us, bool suspend,
                          std::vector<ProcessId> ids, int64_t not_after_us,
                          std::vector<Action>* actions) {
  if (ids.empty()) return;
  ++last_op_;
  for (ProcessId id : ids) {
    Process& p = processes_[id];
    const bool retry = p.op != 0 || p.switch_failures > 0;
    p.op_retry_us = retry ? std::clamp(p.op_retry_us * 2, options_.retry_us / 8,
                                       options_.max_retry_us)
                          : 0;
    p.run_before = p.op == 0 ? p.run : Run::kUnknown;
    p.run_before_since_us = p.op == 0 ? p.run_since_us : INT64_MAX;
    p.op = last_op_;
    p.op_suspend = suspend;
    p.op_sent_us = now_us;
    p.run = Run::kUnknown;
    p.run_since_us = INT64_MAX;
  }
  actions->push_back(Switch{last_op_, suspend, std::move(ids), not_after_us});
}

int64_t Controls::Reconcile(int64_t now_us, int64_t not_after_us,
                            std::vector<Action>* actions) {
  int64_t wake_us = INT64_MAX;
  int tiny_groups = 0;
  for (const auto& [id, p] : processes_)
    if (TinyRunnable(p)) tiny_groups += std::max(1, p.groups);
  const bool emergency = tiny_groups > 1;

  uint32_t slice_us = 0;
  // 1. What raises.
  for (auto& [id, p] : processes_) {
    if (!SliceDue(now_us, emergency, p, &slice_us, &wake_us)) continue;
    if (slice_us >= options_.floor_us)
      EmitSlice(now_us, id, p, slice_us, actions);
  }
  // 2. What suspends.
  std::vector<ProcessId> off;
  for (auto& [id, p] : processes_)
    if (SwitchDue(now_us, p, /*suspend=*/true, &wake_us)) off.push_back(id);
  EmitSwitch(now_us, /*suspend=*/true, std::move(off), not_after_us, actions);
  // 3. What lowers to tiny, one judged after the other.
  for (auto& [id, p] : processes_) {
    if (!SliceDue(now_us, emergency, p, &slice_us, &wake_us)) continue;
    EmitSlice(now_us, id, p, slice_us, actions);
  }
  // 4. What resumes. A tiny one counts as runnable for those after it.
  std::vector<ProcessId> on;
  for (auto& [id, p] : processes_) {
    if (!SwitchDue(now_us, p, /*suspend=*/false, &wake_us)) continue;
    on.push_back(id);
    p.run = Run::kUnknown;
  }
  EmitSwitch(now_us, /*suspend=*/false, std::move(on), INT64_MAX, actions);
  return wake_us;
}

Controls::Run Controls::run(ProcessId process) const {
  const auto found = processes_.find(process);
  return found == processes_.end() ? Run::kUnknown : found->second.run;
}

int64_t Controls::run_since_us(ProcessId process) const {
  const auto found = processes_.find(process);
  return found == processes_.end() ? INT64_MAX : found->second.run_since_us;
}

uint32_t Controls::slice_us(ProcessId process) const {
  const auto found = processes_.find(process);
  return found == processes_.end() ? 0 : found->second.slice_us;
}

bool Controls::suspend_broken(ProcessId process) const {
  const auto found = processes_.find(process);
  return found != processes_.end() &&
         found->second.switch_failures >= kBrokenAfter;
}

bool Controls::slice_broken(ProcessId process) const {
  const auto found = processes_.find(process);
  return found != processes_.end() &&
         found->second.slice_failures >= kBrokenAfter;
}

}  // namespace rondo::share
