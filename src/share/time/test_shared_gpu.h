// SPDX-License-Identifier: Apache-2.0
//
// The arbiter beside a simulated GPU: its actions take the time that they take
// on a card, and what it learns comes as from the context-switch log, as from
// NVML's samples, or not at all.

#ifndef RONDO_SHARE_TIME_TEST_SHARED_GPU_H_
#define RONDO_SHARE_TIME_TEST_SHARED_GPU_H_

#include <algorithm>
#include <deque>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "share/time/arbiter.h"
#include "share/time/test_simulated_gpu.h"

namespace rondo::share {

class SharedGpu {
 public:
  explicit SharedGpu(const Rules& rules = {}) : arbiter_(rules) {}

  void Add(TenantId id, const TenantSpec& spec, Script script, Ns starts = 0) {
    Send(TenantSet{id, spec});
    AddProcess(id, id, std::move(script), starts);
  }
  void AddProcess(TenantId tenant, ProcessId id, Script script, Ns starts = 0) {
    gpu.Add(id, std::move(script), starts);
    Send(ProcessAttached{id, tenant});
    Send(ProcessGroups{id, 1});
  }
  void Run(Ns span) { RunUntil(gpu.now() + span); }
  void RunUntil(Ns until) {
    while (gpu.now() < until) {
      Ns next = until;
      if (!shims_.empty()) next = std::min(next, shims_.front().at);
      if (!driver_.empty()) next = std::min(next, driver_.front().at);
      if (wake_us_ < INT64_MAX / kUs) next = std::min(next, wake_us_ * kUs);
      if (sample_us_ < INT64_MAX / kUs)
        next = std::min(next, reported_ + sample_us_ * kUs);
      gpu.RunUntil(std::max(next, gpu.now()));
      Complete();
      if (gpu.now() / kUs >= wake_us_) Send(Tick{});
      if (sample_us_ < INT64_MAX / kUs &&
          gpu.now() >= reported_ + sample_us_ * kUs)
        Report();
    }
  }
  TenantView View(TenantId id) { return arbiter_.View(id, gpu.now() / kUs); }
  Arbiter& arbiter() { return arbiter_; }
  void Send(const Event& event) {
    const Decision decision = arbiter_.Step(gpu.now() / kUs, event);
    wake_us_ = decision.wake_us;
    sample_us_ = decision.sample_us;
    for (const Action& action : decision.actions) Carry(action);
  }

  SimulatedGpu gpu;
  int switches = 0, slices = 0, reports = 0;
  std::map<Mode, Ns> modes;

 private:
  struct Pending {
    Ns at;
    Action action;
  };
  void Carry(const Action& action) {
    if (std::holds_alternative<SetSlice>(action)) {
      ++slices;
      shims_.push_back({gpu.now() + 260 * kUs, action});
      return;
    }
    ++switches;
    driver_free_ = std::max(driver_free_, gpu.now()) +
                   (std::get<Switch>(action).suspend ? 600 : 323) * kUs;
    driver_.push_back({driver_free_, action});
  }
  void Complete() {
    while (!shims_.empty() && shims_.front().at <= gpu.now()) {
      const auto set = std::get<SetSlice>(shims_.front().action);
      shims_.pop_front();
      if (!gpu.Has(set.process)) continue;
      gpu.SetSlice(set.process, set.slice_us * kUs);
      Send(SliceApplied{set.process, set.seq, set.slice_us, true});
    }
    while (!driver_.empty() && driver_.front().at <= gpu.now()) {
      const auto call = std::get<Switch>(driver_.front().action);
      driver_.pop_front();
      for (ProcessId id : call.processes) {
        const bool there = gpu.Has(id);
        if (there) gpu.SetRunnable(id, !call.suspend);
        Send(Switched{call.op, id, there, false});
      }
    }
  }
  void Report() {
    ++reports;
    Activity activity;
    activity.interval_us = (gpu.now() - reported_) / kUs;
    modes[arbiter_.mode()] += gpu.now() - reported_;
    reported_ = gpu.now();
    for (auto& [id, p] : gpu.processes()) {
      const auto logged = gpu.TakeLog(id);
      if (logged.busy > 0)
        activity.runs.push_back({id, logged.busy / kUs,
                                 (gpu.now() - logged.last) / kUs, logged.stays,
                                 logged.longest / kUs, logged.ended,
                                 logged.ended_length / kUs});
    }
    Send(activity);
  }

  Arbiter arbiter_;
  std::deque<Pending> shims_, driver_;
  Ns driver_free_ = 0, reported_ = 0;
  int64_t wake_us_ = INT64_MAX, sample_us_ = INT64_MAX;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_TEST_SHARED_GPU_H_
