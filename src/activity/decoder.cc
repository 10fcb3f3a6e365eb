// SPDX-License-Identifier: Apache-2.0
#include "activity/decoder.h"

#include <algorithm>
#include <utility>

namespace rondo::activity {
namespace {

constexpr uint8_t kTagStart = 6;
constexpr uint8_t kTagEnd = 7;
constexpr uint32_t kHidden = 0;  // the reader may not know
constexpr uint32_t kDriver = 0xffffffff;
// A report never names more than this; a node has no more GPU processes.
constexpr size_t kMostPids = 65'536;

}  // namespace

void Decoder::Count(uint32_t pid, uint64_t from_ns, uint64_t to_ns) {
  // What lies before the last report has been told.
  from_ns = std::max(from_ns, reported_ns_);
  const uint64_t ns = to_ns > from_ns ? to_ns - from_ns : 0;
  if (pid == kHidden || pid == kDriver) {
    other_ns_ += ns;
    return;
  }
  if (used_.size() >= kMostPids && !used_.contains(pid)) {
    ++odd_;
    return;
  }
  Used& used = used_[pid];
  used.busy_ns += ns;
  used.last_ns = std::max(used.last_ns, to_ns);
  used.longest_ns = std::max(used.longest_ns, to_ns - came_ns_);
}

void Decoder::Close(uint64_t at_ns) {
  if (!open_) return;
  Count(open_pid_, open_ns_, at_ns);
  open_ = false;
  const auto used = used_.find(open_pid_);
  if (used == used_.end() || at_ns < came_ns_) return;
  ++used->second.ended;
  used->second.ended_ns += at_ns - came_ns_;
}

void Decoder::Add(const rm::SwitchRecord& record) {
  if (record.tag != kTagStart && record.tag != kTagEnd) return;
  // One engine, so records follow each other; a clock that was set back must
  // not make time out of nothing.
  const bool backwards = record.ns < latest_ns_;
  if (backwards) ++odd_;
  const uint64_t ns = std::max(record.ns, latest_ns_);
  latest_ns_ = ns;
  if (record.tag == kTagStart) {
    if (open_) ++odd_;  // its end was lost
    Close(ns);
    open_ = true;
    open_pid_ = record.pid;
    open_ns_ = came_ns_ = ns;
    if (record.pid != kHidden && record.pid != kDriver &&
        (used_.size() < kMostPids || used_.contains(record.pid)))
      ++used_[record.pid].stays;
    return;
  }
  if (open_ && open_pid_ == record.pid)
    Close(ns);
  else
    ++odd_;  // its start was lost: how long it ran is not known
}

void Decoder::Lost() { open_ = false; }

Report Decoder::Take(uint64_t now_ns) {
  now_ns = std::max(now_ns, reported_ns_);
  if (open_ && now_ns > open_ns_) {
    Count(open_pid_, open_ns_, now_ns);
    open_ns_ = now_ns;
  }
  Report report;
  report.interval_ns = now_ns - reported_ns_;
  report.other_ns = std::exchange(other_ns_, 0);
  report.odd_records = std::exchange(odd_, 0);
  for (const auto& [pid, used] : used_) {
    // A record may be stamped a little past our reading of the clock.
    const uint64_t idle = (open_ && open_pid_ == pid) || used.last_ns > now_ns
                              ? 0
                              : now_ns - used.last_ns;
    report.processes.push_back({pid, used.busy_ns, idle, used.stays,
                                used.longest_ns, used.ended, used.ended_ns});
  }
  used_.clear();
  // What was counted past now belongs to this report; do not count it again.
  reported_ns_ = now_ns;
  return report;
}

}  // namespace rondo::activity
