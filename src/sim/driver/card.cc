// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/card.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

namespace rondo::sim::driver {
namespace {

constexpr int64_t kDrainPeriodNs = 33'333'333;  // 30 Hz
constexpr int64_t kLongestKernelNs = 3'600'000'000'000;

void FutexWake(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool Coupled(const GroupPage& page) {
  return std::any_of(
      std::begin(page.waiters), std::end(page.waiters), [](const Waiter& w) {
        return w.state.load(std::memory_order_acquire) != kWaiterFree &&
               w.coupled.load(std::memory_order_relaxed) != 0;
      });
}

}  // namespace

bool Card::TakeMemory(uint64_t bytes) {
  if (bytes > options_.heap_kib * 1024 - used_) return false;
  used_ += bytes;
  return true;
}

GroupId Card::AddGroup(uint32_t pid, uint32_t uid, int64_t slice_ns,
                       std::shared_ptr<SharedMemory> page) {
  const GroupId id = ++last_group_;
  Group& group = groups_[id];
  group.pid = pid;
  group.uid = uid;
  group.page = page->As<GroupPage>();
  group.page->now_ns = now();
  group.memory = std::move(page);
  engine_.AddGroup(id, slice_ns);
  return id;
}

void Card::RemoveGroup(GroupId group) {
  engine_.RemoveGroup(group);
  groups_.erase(group);
}

void Card::ResetChannel(GroupId group, uint32_t channel) {
  const auto at = groups_.find(group);
  if (at == groups_.end() || channel >= kRings) return;
  engine_.ResetChannel(group, channel);
  Ring& ring = at->second.page->rings[channel];
  at->second.taken[channel] = 0;
  ring.put = 0, ring.get = 0, ring.done = 0;
}

void Card::TakeEntries(GroupId id, Group* group, uint32_t index) {
  Ring& ring = group->page->rings[index];
  uint64_t& taken = group->taken[index];
  const uint64_t put = ring.put.load(std::memory_order_acquire);
  if (put == taken || put - taken > kRingEntries) return;
  for (; taken != put; ++taken) {
    const RingEntry entry = ring.entries[taken % kRingEntries];
    Work work;
    work.duration_ns =
        std::clamp<int64_t>(entry.duration_ns, 0, kLongestKernelNs);
    work.tag = entry.stamp;
    work.wait_channel = std::min(entry.wait_ring, kRings - 1);
    work.wait_done = entry.wait_done;
    engine_.Submit(id, index, work);
  }
  ring.get.store(taken, std::memory_order_release);
}

void Card::Poll(bool coupled_only) {
  for (auto& [id, group] : groups_) {
    if (coupled_only && !Coupled(*group.page)) continue;
    for (uint32_t ring = 0; ring < kRings; ++ring)
      TakeEntries(id, &group, ring);
    WakeWaiters(&group);
  }
}

void Card::WakeWaiters(Group* group) {
  for (Waiter& w : group->page->waiters) {
    if (w.state.load(std::memory_order_acquire) != kWaiterWaiting) continue;
    const bool work_done = w.done != 0 && w.ring < kRings &&
                           group->page->rings[w.ring].done.load(
                               std::memory_order_relaxed) >= w.done;
    if (!work_done && w.until_ns > now()) continue;
    w.woken_ns.store(now(), std::memory_order_relaxed);
    w.state.store(w.coupled != 0 ? kWaiterHolding : kWaiterClaimed,
                  std::memory_order_release);
    FutexWake(&w.state);
  }
}

bool Card::Holding() const {
  for (const auto& [id, group] : groups_)
    for (const Waiter& w : group.page->waiters)
      if (w.state.load(std::memory_order_acquire) == kWaiterHolding)
        return true;
  return false;
}

void Card::GiveUpHolders(const std::function<bool(uint32_t pid)>& spared) {
  for (auto& [id, group] : groups_) {
    if (spared(group.pid)) continue;
    for (Waiter& w : group.page->waiters) {
      uint32_t expected = kWaiterHolding;
      w.state.compare_exchange_strong(expected, kWaiterClaimed);
    }
  }
}

int64_t Card::NextEvent() const {
  int64_t next = engine_.NextEvent();
  for (const auto& [id, group] : groups_)
    for (const Waiter& w : group.page->waiters)
      if (w.state.load(std::memory_order_acquire) == kWaiterWaiting)
        next = std::min(next, std::max(w.until_ns, now()));
  const bool pending =
      std::any_of(logs_.begin(), logs_.end(), [](const auto& weak) {
        const auto log = weak.lock();
        return log != nullptr && log->pending();
      });
  return pending ? std::min(next, std::max(next_drain_ns_, now())) : next;
}

void Card::AdvanceTo(int64_t time_ns) {
  engine_.AdvanceTo(time_ns);
  for (auto& [id, group] : groups_) {
    group.page->now_ns.store(now(), std::memory_order_relaxed);
    WakeWaiters(&group);
  }
  if (now() < next_drain_ns_) return;
  next_drain_ns_ = now() + kDrainPeriodNs;
  DrainLogs();
}

void Card::DrainLogs() {
  std::erase_if(logs_, [](const auto& weak) { return weak.expired(); });
  for (const auto& weak : logs_)
    if (const auto log = weak.lock(); log != nullptr) log->Drain();
}

std::map<uint32_t, int64_t> Card::ProgressByPid() const {
  std::map<uint32_t, int64_t> progress;
  for (const auto& [id, group] : groups_)
    progress[group.pid] += engine_.Progress(id);
  return progress;
}

void Card::OnDone(GroupId group, uint32_t channel, uint64_t tag, uint64_t done,
                  int64_t at_ns) {
  GroupPage* const page = groups_.at(group).page;
  if (tag != 0 && tag <= kStamps)
    page->stamps[tag - 1].store(at_ns, std::memory_order_relaxed);
  page->rings[channel].done.store(done, std::memory_order_release);
}

void Card::OnSwitch(GroupId group, bool starts, int64_t at_ns) {
  const Group& g = groups_.at(group);
  counts_.switches += starts;
  SwitchLog::Switch s;
  s.starts = starts;
  s.context = static_cast<uint32_t>(group);
  s.pid = g.pid;
  s.uid = g.uid;
  s.wall_ns = static_cast<uint64_t>(at_ns + wall_offset_ns_);
  for (const auto& weak : logs_)
    if (const auto log = weak.lock(); log != nullptr) log->Add(s);
}

}  // namespace rondo::sim::driver
