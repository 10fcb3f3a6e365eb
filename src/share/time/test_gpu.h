// SPDX-License-Identifier: Apache-2.0
//
// The arbiter on a toy of the hardware's scheduler: round robin over runnable
// groups, a switch from one to the next, no progress between tiny slices, and
// the measured costs of suspending, resuming and setting a slice. What the
// arbiter learns of the use comes as from the context-switch log, as from
// NVML's samples, or not at all.

#ifndef RONDO_SHARE_TIME_TEST_GPU_H_
#define RONDO_SHARE_TIME_TEST_GPU_H_

#include <algorithm>
#include <deque>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "rm/facts.h"
#include "share/time/arbiter.h"

namespace rondo::share {

inline constexpr int64_t kStepUs = 10;
constexpr int64_t WholeSteps(int64_t us) { return us / kStepUs * kStepUs; }
inline constexpr int64_t kSwitchUs = WholeSteps(rm::kContextSwitchUs);
inline constexpr int64_t kSuspendUs = WholeSteps(rm::kSuspendUs);
inline constexpr int64_t kResumeUs = WholeSteps(rm::kResumeUs);
inline constexpr int64_t kSetSliceUs = WholeSteps(rm::kSetSliceByMessageUs);
// NVML's samples are asked for so often, and so old in the worst case.
inline constexpr int64_t kHeldUpUs = 8'000;
inline constexpr int64_t kPollUs = 250'000;

struct Load {
  int64_t work_us = 0;  // of one request; 0 = never pauses
  int64_t think_us = 0;
  int64_t starts_us = 0;
  int64_t stops_us = INT64_MAX;
};

class Sim {
 public:
  enum class Source { kLog, kNvml, kNone };

  // sample_us: how far apart NVML's samples are, and what they are averages of.
  explicit Sim(Source source = Source::kLog, int64_t sample_us = 1'000'000,
               const Rules& rules = {})
      : source_(source), nvml_us_(sample_us), arbiter_(rules) {}

  // Its process is known by the tenant's id; AddProcess gives it more.
  void Add(TenantId id, TenantSpec spec, Load load) {
    Send(TenantSet{id, spec});
    AddProcess(id, id, load);
  }
  void AddProcess(TenantId tenant, ProcessId id, Load load) {
    Group group;
    group.tenant = tenant;
    group.load = load;
    if (load.work_us > 0) group.next_us = load.starts_us + load.think_us;
    groups_[id] = group;
    Send(ProcessAttached{id, tenant});
    Send(ProcessGroups{id, 1});
  }

  // A program that is nobody's to the arbiter.
  void AddOutsider(ProcessId id, Load load,
                   uint32_t slice_us = rm::kDefaultComputeSliceUs) {
    Group group;
    group.outside = true;
    group.load = load;
    group.slice_us = slice_us;
    groups_[id] = group;
  }

  void SetRules(const Rules& rules) { arbiter_.SetRules(rules); }

  // From now on it does something else.
  void SetLoad(ProcessId id, Load load) {
    Group& group = groups_.at(id);
    group.load = load;
    group.left_us = 0;
    group.next_us = now_us_ + load.think_us;
  }

  // The log becomes readable, or no longer is.
  void SetSource(Source source) {
    source_ = source;
    sampled_us_ = nvml_ended_us_ = now_us_;
    for (auto& [id, group] : groups_)
      group.sample_busy_us = group.sample_stays = group.nvml_busy_us = 0;
    nvml_.clear();
  }

  // Somebody else's call.
  void Resume(ProcessId id) { groups_.at(id).runnable = true; }
  bool runnable(ProcessId id) const { return groups_.at(id).runnable; }

  void Kill(ProcessId id) {
    groups_.erase(id);
    Send(ProcessGone{id});
  }

  void Run(int64_t us) {
    for (int64_t end = now_us_ + us; now_us_ < end; now_us_ += kStepUs) Step();
  }
  // The arbiter gets no processor: the GPU goes on.
  void Stall(int64_t us) { stalled_until_us_ = now_us_ + us; }
  // Forgets what was measured so far.
  void Measure() {
    measure_from_us_ = now_us_;
    for (auto& [id, group] : groups_) {
      group.busy_us = 0;
      group.latencies.clear();
    }
  }
  // Of all its processes.
  double Share(TenantId tenant) {
    int64_t busy_us = 0;
    for (const auto& [id, group] : groups_)
      if (group.tenant == tenant) busy_us += group.busy_us;
    return OfTheTime(busy_us);
  }
  double Sum() {
    int64_t busy_us = 0;
    for (const auto& [id, group] : groups_) busy_us += group.busy_us;
    return OfTheTime(busy_us);
  }
  int64_t Latency(TenantId id, double quantile) {
    auto& all = groups_[id].latencies;
    std::sort(all.begin(), all.end());
    return all.empty() ? -1 : all[static_cast<size_t>(quantile * all.size())];
  }
  TenantView View(TenantId id) { return arbiter_.View(id, now_us_); }
  void Send(const Event& event) {
    const Decision decision = arbiter_.Step(now_us_, event);
    wake_us_ = decision.wake_us;
    sample_us_ = decision.sample_us;
    for (const Action& action : decision.actions) Carry(action);
  }

  // Of the calls to the driver, so many begin kHeldUpUs later; 0: none.
  int held_up_every = 0;
  int64_t log_age_us = 0;        // of a report of the log when it is told
  int lates = 0;                 // that came too late by that
  int hits = 0;                  // suspensions while a request was under way
  int switches = 0, slices = 0;  // actions carried out, and asked for
  int64_t longest_idle_turn_us = 0;  // of a tenant that has nothing to do
  int64_t idle_turns_us = 0;         // all that such ones had
  int64_t last_idle_turn_us = 0;     // when such a one last held the turn
  int64_t now_us() const { return now_us_; }

 private:
  struct Group {
    TenantId tenant = 0;
    Load load;
    uint32_t slice_us = rm::kDefaultComputeSliceUs;
    bool runnable = true;
    bool outside = false;
    int64_t next_us = 0;  // when the next request comes
    int64_t left_us = 0;  // of the one under way
    int64_t arrived_us = 0;
    int64_t busy_us = 0, sample_busy_us = 0, sample_stays = 0, ran_us = -1;
    int64_t stay_us = 0, sample_longest_us = 0;
    int64_t ended = 0, ended_us = 0;
    int64_t nvml_busy_us = 0;
    int64_t idle_turn_us = 0;
    std::vector<int64_t> latencies;
  };
  struct Pending {
    int64_t at_us;
    Action action;
    bool late = false;
  };

  double OfTheTime(int64_t busy_us) const {
    return static_cast<double>(busy_us) / (now_us_ - measure_from_us_);
  }

  void Carry(const Action& action) {
    if (std::holds_alternative<SetSlice>(action)) {
      ++slices;
      shims_.push_back({now_us_ + kSetSliceUs, action});
    } else {
      const auto& call = std::get<Switch>(action);
      const bool held_up = held_up_every > 0 && ++calls_ % held_up_every == 0;
      const int64_t begins_us =
          std::max(driver_free_us_, now_us_) + (held_up ? kHeldUpUs : 0);
      const bool late = begins_us > call.not_after_us;
      if (late)
        ++lates;
      else
        ++switches;
      driver_free_us_ = begins_us + (late           ? 0
                                     : call.suspend ? kSuspendUs
                                                    : kResumeUs);
      driver_.push_back({driver_free_us_, action, late});
    }
  }

  void Complete() {
    while (!shims_.empty() && shims_.front().at_us <= now_us_) {
      const auto set = std::get<SetSlice>(shims_.front().action);
      shims_.pop_front();
      const auto group = groups_.find(set.process);
      if (group == groups_.end()) continue;
      group->second.slice_us = set.slice_us;
      Send(SliceApplied{set.process, set.seq, set.slice_us, true});
    }
    while (!driver_.empty() && driver_.front().at_us <= now_us_) {
      const auto call = std::get<Switch>(driver_.front().action);
      const bool late = driver_.front().late;
      driver_.pop_front();
      if (!late && call.suspend)
        hits += std::any_of(groups_.begin(), groups_.end(), [](const auto& g) {
          return g.second.load.work_us > 0 && g.second.left_us > 0;
        });
      for (ProcessId id : call.processes) {
        const auto group = groups_.find(id);
        const bool there = group != groups_.end();
        if (there && !late) group->second.runnable = !call.suspend;
        Send(Switched{call.op, id, there && !late, late});
      }
    }
  }

  bool Ready(const Group& group) const {
    return group.runnable && now_us_ >= group.load.starts_us &&
           now_us_ < group.load.stops_us &&
           (group.load.work_us == 0 || group.left_us > 0);
  }

  void Step() {
    if (now_us_ >= stalled_until_us_) {
      Complete();
      if (now_us_ >= wake_us_) Send(Tick{});
      if (source_ == Source::kLog && now_us_ >= sampled_us_ + sample_us_)
        TakeSample();
      TellSamples();
      if (source_ == Source::kNvml) StepNvml();
    }
    for (auto& [id, group] : groups_) {
      if (group.load.work_us > 0 && group.left_us == 0 &&
          now_us_ >= group.next_us) {
        group.left_us = group.load.work_us;
        group.arrived_us = now_us_;
      }
      const bool idle = group.runnable && !Ready(group);
      group.idle_turn_us = idle ? group.idle_turn_us + kStepUs : 0;
      if (!idle || !arbiter_.View(group.tenant, now_us_).turn) continue;
      last_idle_turn_us = now_us_;
      idle_turns_us += kStepUs;
      longest_idle_turn_us = std::max(longest_idle_turn_us, group.idle_turn_us);
    }
    Schedule();
  }

  void Schedule() {
    if (switching_us_ > 0) {
      switching_us_ -= kStepUs;
      return;
    }
    int ready = 0, tiny = 0;
    for (const auto& [id, group] : groups_) {
      ready += Ready(group);
      tiny += Ready(group) && group.slice_us < kSwitchUs;
    }
    if (ready == 0) {
      // An idle context stays on the GPU until another comes: to the log it
      // looks like one that works.
      const auto last = groups_.find(current_);
      if (last == groups_.end() || !last->second.runnable ||
          last->second.ran_us < 0)
        return;
      StayOn(&last->second);
      return;
    }
    const auto current_entry = groups_.find(current_);
    if (current_entry == groups_.end() || !Ready(current_entry->second) ||
        (slice_left_us_ <= 0 && ready > 1)) {
      auto next = groups_.upper_bound(current_);
      for (;; ++next) {
        if (next == groups_.end()) next = groups_.begin();
        if (Ready(next->second)) break;
      }
      if (next->first != current_) switching_us_ = kSwitchUs;
      EndStay();
      current_ = next->first;
      ++next->second.sample_stays;
      next->second.stay_us = 0;
      slice_left_us_ = next->second.slice_us;
      return;
    }
    Group& current = current_entry->second;
    if (slice_left_us_ <= 0) slice_left_us_ = current.slice_us;
    slice_left_us_ -= kStepUs;
    StayOn(&current);
    current.nvml_busy_us += kStepUs;
    if (tiny > 1 && current.slice_us < kSwitchUs) return;  // no progress
    current.busy_us += kStepUs;
    if (current.load.work_us == 0) return;
    current.left_us -= kStepUs;
    if (current.left_us > 0) return;
    current.latencies.push_back(now_us_ + kStepUs - current.arrived_us);
    current.next_us = now_us_ + current.load.think_us;
  }

  // A step on the GPU, as the log sees it.
  void StayOn(Group* group) {
    group->sample_busy_us += kStepUs;
    group->stay_us += kStepUs;
    group->sample_longest_us =
        std::max(group->sample_longest_us, group->stay_us);
    group->ran_us = now_us_ + kStepUs;
  }

  void EndStay() {
    const auto left = groups_.find(current_);
    if (left == groups_.end()) return;
    ++left->second.ended;
    left->second.ended_us += left->second.stay_us;
  }

  void TakeSample() {
    Activity activity;
    activity.interval_us = now_us_ - sampled_us_;
    sampled_us_ = now_us_;
    for (auto& [id, group] : groups_) {
      if (group.outside)
        activity.other_busy_us += group.sample_busy_us;
      else if (group.sample_busy_us > 0)
        activity.runs.push_back({id, group.sample_busy_us,
                                 now_us_ - group.ran_us, group.sample_stays,
                                 group.sample_longest_us, group.ended,
                                 group.ended_us});
      group.ended = group.ended_us = 0;
      group.sample_busy_us = group.sample_stays = group.sample_longest_us = 0;
    }
    log_.push_back({now_us_, std::move(activity)});
  }
  void TellSamples() {
    while (!log_.empty() && now_us_ >= log_.front().first + log_age_us) {
      Activity activity = std::move(log_.front().second);
      activity.age_us = now_us_ - log_.front().first;
      log_.pop_front();
      Send(activity);
    }
  }

  // Whole percents of a window, told some time after its end.
  void StepNvml() {
    if (now_us_ >= nvml_ended_us_ + nvml_us_) {
      Activity sample;
      sample.source = Activity::Source::kSampling;
      sample.interval_us = now_us_ - nvml_ended_us_;
      nvml_ended_us_ = now_us_;
      for (auto& [id, group] : groups_) {
        const int64_t percent = group.nvml_busy_us * 100 / sample.interval_us;
        if (group.outside)
          sample.other_busy_us += percent * sample.interval_us / 100;
        else if (percent > 0)
          sample.runs.push_back(
              {.process = id, .busy_us = percent * sample.interval_us / 100});
        group.nvml_busy_us = 0;
      }
      nvml_.push_back({now_us_, std::move(sample)});
    }
    while (!nvml_.empty() && now_us_ >= nvml_.front().first + kPollUs) {
      Activity sample = std::move(nvml_.front().second);
      sample.age_us = now_us_ - nvml_.front().first;
      nvml_.pop_front();
      Send(sample);
    }
  }

  Source source_;
  const int64_t nvml_us_;
  int64_t nvml_ended_us_ = 0;
  std::deque<std::pair<int64_t, Activity>> nvml_, log_;  // when each ended
  Arbiter arbiter_;
  std::map<ProcessId, Group> groups_;
  std::deque<Pending> shims_, driver_;
  int64_t now_us_ = 0, wake_us_ = INT64_MAX, sample_us_ = INT64_MAX;
  int64_t stalled_until_us_ = 0;
  int64_t sampled_us_ = 0, measure_from_us_ = 0, driver_free_us_ = 0;
  int calls_ = 0;
  ProcessId current_ = 1;
  int64_t slice_left_us_ = 0, switching_us_ = 0;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_TEST_GPU_H_
