// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/engine.h"

#include <algorithm>

namespace rondo::sim::driver {

void Engine::AddGroup(GroupId group, int64_t slice_ns) {
  groups_[group].slice_ns = slice_ns;
  ring_.push_back(group);
}

void Engine::RemoveGroup(GroupId group) {
  const auto at = std::find(ring_.begin(), ring_.end(), group);
  if (at == ring_.end()) return;
  const size_t index = at - ring_.begin();
  ring_.erase(at);
  if (index < ring_next_) --ring_next_;
  const bool was_current = current_ == group;
  if (was_current && phase_ != Phase::kSwitching)
    observer_->OnSwitch(group, false, now_);
  groups_.erase(group);
  if (!was_current) return;
  const bool was_idle = phase_ == Phase::kIdle;
  current_ = kNoGroup;
  phase_ = Phase::kIdle;
  if (!was_idle) SwitchToNext();
}

void Engine::SetSlice(GroupId group, int64_t slice_ns) {
  const auto at = groups_.find(group);
  if (at == groups_.end()) return;
  at->second.slice_ns = slice_ns;
  ring_next_ = 0;
  if (current_ == group && phase_ != Phase::kIdle &&
      phase_ != Phase::kSwitching)
    Leave();
}

void Engine::Preempt(GroupId group) {
  if (current_ == group && phase_ != Phase::kIdle &&
      phase_ != Phase::kSwitching)
    Leave();
}

void Engine::SetEnabled(GroupId group, uint32_t channel, bool enabled,
                        bool at_slice_end) {
  const auto at = groups_.find(group);
  if (at == groups_.end() || channel >= kChannels) return;
  Group& g = at->second;
  int& suspensions = g.channels[channel].suspensions;
  const bool was_enabled = suspensions == 0;
  suspensions = enabled ? std::max(0, suspensions - 1) : suspensions + 1;
  if ((suspensions == 0) == was_enabled) return;
  if (enabled) {
    if (current_ == group) leave_at_slice_end_ = false;
    ring_next_ = 0;
    Wake();
    return;
  }
  if (current_ != group || phase_ == Phase::kIdle) return;
  if (at_slice_end && phase_ != Phase::kSwitching) {
    leave_at_slice_end_ = !HasWork(g);
    return;
  }
  // A kernel of another channel of the group loses its place all the same.
  ring_next_ = 0;
  if (phase_ == Phase::kSwitching) {
    if (!HasWork(g)) SwitchToNext();
  } else {
    Leave();
  }
}

void Engine::Submit(GroupId group, uint32_t channel, const Work& work) {
  const auto at = groups_.find(group);
  if (at == groups_.end() || channel >= kChannels) return;
  at->second.channels[channel].queue.push_back(work);
  Wake();
}

void Engine::ResetChannel(GroupId group, uint32_t channel) {
  const auto at = groups_.find(group);
  if (at == groups_.end() || channel >= kChannels) return;
  const bool on_engine = current_ == group && phase_ == Phase::kRunning &&
                         at->second.channel == channel;
  at->second.channels[channel] = Channel{};
  if (on_engine) Leave();
}

// A condition on the channel itself always holds: its entries go in order.
bool Engine::Ready(const Group& group, uint32_t channel) const {
  const Channel& c = group.channels[channel];
  if (c.suspensions > 0 || c.queue.empty()) return false;
  const Work& work = c.queue.front();
  return work.wait_channel >= kChannels || work.wait_channel == channel ||
         group.channels[work.wait_channel].done >= work.wait_done;
}

bool Engine::HasWork(const Group& group) const {
  for (uint32_t c = 0; c < kChannels; ++c)
    if (Ready(group, c)) return true;
  return false;
}

bool Engine::OthersRunnable() const {
  return std::any_of(groups_.begin(), groups_.end(), [&](const auto& entry) {
    return entry.first != current_ && HasWork(entry.second);
  });
}

GroupId Engine::PickNext() {
  for (size_t i = 0; i < ring_.size(); ++i) {
    const size_t at = (ring_next_ + i) % ring_.size();
    if (!HasWork(groups_[ring_[at]])) continue;
    ring_next_ = at + 1;
    return ring_[at];
  }
  return kNoGroup;
}

void Engine::Leave() {
  observer_->OnSwitch(current_, false, now_);
  SwitchToNext();
}

void Engine::SwitchToNext() {
  leave_at_slice_end_ = false;
  current_ = PickNext();
  phase_ = current_ == kNoGroup ? Phase::kIdle : Phase::kSwitching;
  phase_end_ = now_ + timing_.switch_ns;
}

void Engine::Arrive() {
  observer_->OnSwitch(current_, true, now_);
  slice_start_ = now_;
  phase_ = Phase::kRefilling;
  phase_end_ = now_ + timing_.refill_ns;
}

void Engine::Wake() {
  if (phase_ != Phase::kIdle) return;
  // The context that is still there goes on without a switch.
  if (current_ != kNoGroup && HasWork(groups_[current_])) {
    slice_start_ = now_;
    leave_at_slice_end_ = false;
    if (LoadKernel()) {
      phase_ = Phase::kRunning;
      return;
    }
  }
  if (!OthersRunnable()) return;
  if (current_ != kNoGroup) observer_->OnSwitch(current_, false, now_);
  SwitchToNext();
}

void Engine::RunOrIdle() {
  if (LoadKernel()) {
    phase_ = Phase::kRunning;
    return;
  }
  phase_ = Phase::kIdle;
  Wake();
}

void Engine::Finish(Group* group) {
  Channel& c = group->channels[group->channel];
  const uint64_t tag = c.queue.front().tag;
  c.queue.pop_front();
  c.left_ns = 0;
  observer_->OnDone(current_, group->channel, tag, ++c.done, now_);
}

bool Engine::LoadKernel() {
  Group& g = groups_[current_];
  for (;;) {
    uint32_t tries = 0;
    for (; tries < kChannels && !Ready(g, g.channel); ++tries)
      g.channel = (g.channel + 1) % kChannels;
    if (tries == kChannels) return false;
    Channel& c = g.channels[g.channel];
    if (c.left_ns > 0) return true;  // was cut off
    if (const Work& work = c.queue.front(); work.duration_ns > 0) {
      c.gap_ns = timing_.launch_gap_ns;
      c.left_ns = work.duration_ns + c.gap_ns;
      return true;
    }
    Finish(&g);
  }
}

void Engine::Account(int64_t to_ns) {
  if (phase_ == Phase::kRunning) {
    Group& g = groups_[current_];
    Channel& c = g.channels[g.channel];
    const int64_t ran = to_ns - now_;
    const int64_t gap = std::min(ran, c.gap_ns);
    c.left_ns -= ran;
    c.gap_ns -= gap;
    g.progress_ns += ran - gap;
  }
  now_ = to_ns;
}

// Alone, a group's slices follow each other without a switch, so the end that
// counts is that of the slice in which somebody else began to want the engine.
int64_t Engine::SliceEnd() const {
  if (!leave_at_slice_end_ && !OthersRunnable()) return kNever;
  const int64_t slice = std::max<int64_t>(groups_.at(current_).slice_ns, 1'000);
  const int64_t slices =
      std::max<int64_t>(1, (now_ - slice_start_ + slice - 1) / slice);
  return slice_start_ + slices * slice;
}

int64_t Engine::NextEvent() const {
  switch (phase_) {
    case Phase::kIdle:
      return kNever;
    case Phase::kSwitching:
      return phase_end_;
    case Phase::kRefilling:
      return std::min(phase_end_, SliceEnd());
    case Phase::kRunning: {
      const Group& g = groups_.at(current_);
      return std::min(now_ + g.channels[g.channel].left_ns, SliceEnd());
    }
  }
  return kNever;
}

// What is due now; the caller has moved the time there.
void Engine::Step() {
  if (phase_ == Phase::kSwitching) {
    Arrive();
    return;
  }
  const bool expired = now_ >= SliceEnd();
  bool next = phase_ == Phase::kRefilling;
  if (phase_ == Phase::kRunning) {
    Group& g = groups_[current_];
    if (g.channels[g.channel].left_ns <= 0) {
      Finish(&g);
      g.channel = (g.channel + 1) % kChannels;
      next = true;
    }
  }
  if (expired)
    Leave();
  else if (next)
    RunOrIdle();
}

void Engine::AdvanceTo(int64_t time_ns) {
  for (int64_t next = NextEvent(); next <= time_ns; next = NextEvent()) {
    Account(next);
    Step();
  }
  if (time_ns > now_) Account(time_ns);
}

int64_t Engine::Progress(GroupId group) const {
  const auto at = groups_.find(group);
  return at == groups_.end() ? 0 : at->second.progress_ns;
}

int64_t Engine::Slice(GroupId group) const {
  const auto at = groups_.find(group);
  return at == groups_.end() ? 0 : at->second.slice_ns;
}

bool Engine::Runnable(GroupId group) const {
  const auto at = groups_.find(group);
  return at != groups_.end() && HasWork(at->second);
}

}  // namespace rondo::sim::driver
