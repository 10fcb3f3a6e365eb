// SPDX-License-Identifier: Apache-2.0
//
// A model of one GPU's time-slice scheduler under virtual time, for programs
// that queue kernels and wait for them. Round robin over groups that are
// runnable and have work; a group whose work ends leaves when another waits; an
// idle context stays until another comes. Constants: rm/facts.h. Pure: one
// thread, no clock.

#ifndef RONDO_SHARE_TIME_TEST_SIMULATED_GPU_H_
#define RONDO_SHARE_TIME_TEST_SIMULATED_GPU_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace rondo::share {

// Times in ns of virtual time, so that kernels of some us keep their lengths.
using Ns = int64_t;
inline constexpr Ns kUs = 1000, kMs = 1000 * kUs;
inline constexpr Ns kNever = INT64_MAX / 4;

// What a program does, over and over.
struct Op {
  enum Kind : uint8_t {
    kLaunch,  // the processor works for cpu, then queues a kernel of gpu
    kSync,    // waits until its queue is empty
    kSleep,   // for cpu
    kDue,     // until the next multiple of cpu; a late one begins at once
    kBegin,   // of a unit whose time counts (kDue begins one too)
    kUnit,    // its end: once all that was queued before is done
  };
  Kind kind;
  Ns cpu = 0;
  Ns gpu = 0;
};
struct Script {
  std::vector<Op> ops;
  size_t depth = 1024;  // kernels queued before a launch blocks
  int flight = 0;       // units under way before the next waits; 0: any
  bool repeats = true;
};

class SimulatedGpu {
 public:
  struct Costs {
    Ns gap = 82 * kUs;    // between one's end and the other's start
    Ns drain = 80 * kUs;  // of a kernel that is cut: on the GPU, no progress
    // Without work on the GPU, before another one comes: within so short a gap
    // between two kernels a program that is bound by launches stays.
    Ns linger = 5 * kUs;
    Ns wake = 8 * kUs;    // of a thread that waits for the GPU
    Ns floor = 80 * kUs;  // slices below: two such make no progress
  };
  // What the context-switch log tells of a process since it was last asked.
  struct Logged {
    Ns busy = 0, last = -1, longest = 0, ended_length = 0;
    int64_t stays = 0, ended = 0;
  };
  struct Process {
    Script script;
    Ns slice = 2048 * kUs;
    bool runnable = true;
    Ns starts = 0, stops = kNever;
    // Out.
    Ns work = 0;  // kernels done
    int64_t units = 0;
    std::vector<Ns> times;  // of units that have a begin
    Logged logged;

   private:
    friend class SimulatedGpu;
    size_t at = 0;
    Ns cpu_at = 0;  // when it goes on; kNever: it waits for the GPU
    enum { kNone, kSpace, kEmpty, kFlight } waits = kNone;
    bool launched = false;  // the current launch's processor time is spent
    bool begun = false;
    Ns begin = 0;
    Ns due = 0;
    std::deque<Ns> queue;   // left of each kernel, first is next; < 0: a mark
    std::deque<Ns> begins;  // of units under way; kNever: its time is not kept
    Ns stay = 0;
    bool over = false;
  };

  SimulatedGpu() = default;
  explicit SimulatedGpu(const Costs& costs) : costs_(costs) {}

  Ns now() const { return now_; }
  Process& Add(uint64_t id, Script script, Ns starts = 0) {
    Process& p = processes_[id];
    p = Process();
    p.script = std::move(script);
    p.starts = p.cpu_at = std::max(starts, now_);
    return p;
  }
  Process& process(uint64_t id) { return processes_.at(id); }
  bool Has(uint64_t id) const { return processes_.contains(id); }
  std::map<uint64_t, Process>& processes() { return processes_; }
  void Remove(uint64_t id) {
    if (current_ == id) current_ = 0;
    if (next_ == id) next_ = 0;
    processes_.erase(id);
    Dispatch();
  }
  void SetScript(uint64_t id, Script script) {
    Process& p = processes_.at(id);
    p.script = std::move(script);
    p.at = 0;
    p.cpu_at = now_;
    p.waits = Process::kNone;
    p.launched = p.begun = p.over = false;
    p.queue.clear();
    p.begins.clear();
    p.due = now_;
    Dispatch();
  }
  bool HasWork(uint64_t id) const { return !processes_.at(id).queue.empty(); }

  // Each takes whoever runs off the GPU and starts the round anew.
  void SetRunnable(uint64_t id, bool runnable) {
    Process& p = processes_.at(id);
    if (p.runnable == runnable) return;
    p.runnable = runnable;
    Disturb();
  }
  void SetSlice(uint64_t id, Ns slice) {
    processes_.at(id).slice = slice;
    if (current_ == id && switching_until_ < 0) {
      slice_end_ = now_ + slice;
    }
    Disturb();
  }

  // Up to that time.
  void RunUntil(Ns until) {
    for (;;) {
      const Ns next = NextEvent();
      if (next > until) break;
      Advance(next);
      Step();
    }
    Advance(until);
  }

  // Who is on the GPU, as the log sees it; 0: nobody.
  uint64_t current() const { return switching_until_ >= 0 ? 0 : current_; }

  Logged TakeLog(uint64_t id) {
    Process& p = processes_.at(id);
    Logged out = p.logged;
    const Ns last = p.logged.last;
    p.logged = {.last = last};
    return out;
  }

 private:
  static constexpr Ns kMark = -1;

  bool Ready(const Process& p) const { return p.runnable && !p.queue.empty(); }
  bool OthersReady(uint64_t id) const {
    for (const auto& [other, p] : processes_)
      if (other != id && Ready(p)) return true;
    return false;
  }
  bool Progress(const Process& p) const {
    if (p.slice >= costs_.floor) return true;
    int tiny = 0;
    for (const auto& [id, other] : processes_)
      tiny += Ready(other) && other.slice < costs_.floor;
    return tiny < 2;
  }

  Ns NextEvent() const {
    Ns next = kNever;
    for (const auto& [id, p] : processes_)
      if (p.waits == Process::kNone && !p.over) next = std::min(next, p.cpu_at);
    if (switching_until_ >= 0) return std::min(next, switching_until_);
    next = std::min(next, std::max(now_ + 1, linger_until_));
    const auto c = processes_.find(current_);
    if (c != processes_.end() && Ready(c->second)) {
      if (Progress(c->second))
        next = std::min(next, now_ + std::max<Ns>(0, c->second.queue.front()));
      next = std::min(next, std::max(now_ + 1, slice_end_));
    }
    return next;
  }

  void Advance(Ns to) {
    const Ns span = to - now_;
    if (span <= 0) return;
    now_ = to;
    const auto c = processes_.find(current_);
    if (c == processes_.end()) return;
    Process& p = c->second;
    if (switching_until_ >= 0) {
      // Draining still counts as its time; the gap is nobody's.
      const Ns drained = std::min(span, drain_left_);
      drain_left_ -= drained;
      if (drained > 0) Stay(p, drained);
      return;
    }
    Stay(p, span);
    if (Ready(p) && Progress(p)) {
      p.queue.front() -= span;
      p.work += span;
    }
  }
  void Stay(Process& p, Ns span) {
    p.logged.busy += span;
    p.stay += span;
    p.logged.longest = std::max(p.logged.longest, p.stay);
    p.logged.last = now_;
  }

  void EndStay() {
    const auto left = processes_.find(current_);
    if (left == processes_.end()) return;
    ++left->second.logged.ended;
    left->second.logged.ended_length += left->second.stay;
  }

  void Step() {
    if (switching_until_ >= 0 && now_ >= switching_until_) {
      switching_until_ = -1;
      EndStay();
      current_ = next_;
      const auto c = processes_.find(current_);
      if (c != processes_.end()) {
        c->second.stay = 0;
        ++c->second.logged.stays;
        c->second.logged.last = now_;
        slice_end_ = now_ + c->second.slice;
      }
    }
    if (switching_until_ < 0) {
      const auto c = processes_.find(current_);
      if (c != processes_.end() && Ready(c->second) &&
          c->second.queue.front() <= 0) {
        Process& p = c->second;
        p.queue.pop_front();
        TakeMarks(p);
        if (p.queue.empty()) idle_since_ = now_;
      }
    }
    for (auto& [id, p] : processes_)
      while (!p.over && p.waits == Process::kNone && p.cpu_at <= now_) Work(p);
    Dispatch();
  }

  // Units whose work is done end, and whoever waits for that goes on.
  void TakeMarks(Process& p) {
    while (!p.queue.empty() && p.queue.front() == kMark) {
      p.queue.pop_front();
      ++p.units;
      if (p.begins.front() != kNever)
        p.times.push_back(now_ - p.begins.front());
      p.begins.pop_front();
    }
    const bool goes_on =
        p.waits == Process::kSpace ||
        (p.waits == Process::kEmpty && p.queue.empty()) ||
        (p.waits == Process::kFlight &&
         p.begins.size() < static_cast<size_t>(p.script.flight));
    if (!goes_on) return;
    p.cpu_at = now_ + (p.waits == Process::kSpace ? 0 : costs_.wake);
    p.waits = Process::kNone;
  }

  // One op of the program's thread.
  void Work(Process& p) {
    if (now_ >= p.stops) {
      p.over = true;
      return;
    }
    if (p.at >= p.script.ops.size()) {
      if (!p.script.repeats || p.script.ops.empty()) {
        p.over = true;
        return;
      }
      p.at = 0;
    }
    const Op& op = p.script.ops[p.at];
    switch (op.kind) {
      case Op::kLaunch:
        if (!p.launched) {
          p.launched = true;
          p.cpu_at = std::max(p.cpu_at, now_ - costs_.wake) + op.cpu;
          if (p.cpu_at > now_) return;
        }
        if (p.queue.size() >= p.script.depth) {
          p.waits = Process::kSpace;
          return;
        }
        p.queue.push_back(op.gpu);
        p.launched = false;
        break;
      case Op::kSync:
        if (!p.queue.empty()) {
          p.waits = Process::kEmpty;
          return;
        }
        break;
      case Op::kSleep:
        ++p.at;
        p.cpu_at = now_ + op.cpu;
        return;
      case Op::kDue:
        p.due = p.due == 0 ? now_ : p.due + op.cpu;
        p.begin = p.due;
        p.begun = true;
        ++p.at;
        p.cpu_at = std::max(now_, p.due);
        return;
      case Op::kBegin:
        p.begin = now_;
        p.begun = true;
        break;
      case Op::kUnit:
        p.queue.push_back(kMark);
        p.begins.push_back(p.begun ? p.begin : kNever);
        p.begun = false;
        TakeMarks(p);
        if (p.script.flight > 0 &&
            p.begins.size() >= static_cast<size_t>(p.script.flight)) {
          p.waits = Process::kFlight;
          ++p.at;
          return;
        }
        break;
    }
    ++p.at;
  }

  // The driver takes the group off and submits its list anew.
  void Disturb() {
    if (switching_until_ >= 0) return Dispatch();
    const auto c = processes_.find(current_);
    if (c == processes_.end()) return Dispatch();
    if (!c->second.runnable) {
      Leave(Next(current_));
      return;
    }
    if (Ready(c->second)) Leave(current_);
    Dispatch();
  }

  uint64_t Next(uint64_t after) const {
    auto next = processes_.upper_bound(after);
    for (size_t i = 0; i < processes_.size(); ++i, ++next) {
      if (next == processes_.end()) next = processes_.begin();
      if (Ready(next->second)) return next->first;
    }
    return 0;
  }

  void Leave(uint64_t to) {
    const auto c = processes_.find(current_);
    const bool cut = c != processes_.end() && !c->second.queue.empty();
    drain_left_ = cut ? costs_.drain : 0;
    next_ = to;
    switching_until_ = now_ + drain_left_ + costs_.gap;
    if (to == 0) {  // nobody: off
      switching_until_ = -1;
      EndStay();
      current_ = 0;
    }
  }

  void Dispatch() {
    if (switching_until_ >= 0) return;
    const auto c = processes_.find(current_);
    linger_until_ = kNever;
    if (c != processes_.end() && Ready(c->second)) {
      idle_since_ = now_;
      if (now_ < slice_end_) return;
      if (OthersReady(current_))
        Leave(Next(current_));
      else
        slice_end_ = now_ + c->second.slice;
      return;
    }
    const uint64_t next = Next(current_);
    if (next != 0 && next != current_) {
      if (c != processes_.end() && c->second.runnable &&
          now_ < idle_since_ + costs_.linger) {
        linger_until_ = idle_since_ + costs_.linger;
        return;
      }
      Leave(next);
    } else if (next == 0 && c != processes_.end() && !c->second.runnable) {
      EndStay();
      current_ = 0;  // a suspended context does not stay
    }
  }

  Costs costs_;
  Ns now_ = 0;
  std::map<uint64_t, Process> processes_;
  uint64_t current_ = 0, next_ = 0;
  Ns slice_end_ = 0;
  Ns switching_until_ = -1, drain_left_ = 0;
  Ns idle_since_ = 0, linger_until_ = kNever;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_TEST_SIMULATED_GPU_H_
