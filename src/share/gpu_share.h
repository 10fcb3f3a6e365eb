// SPDX-License-Identifier: Apache-2.0
//
// One GPU's arbiter with its surroundings: turns what slot server, suspender
// and activity reports say into events, and carries the decisions out.
//
// Threads: the loop's. Failure: none of its own; what the suspender or a shim
// refuses goes back to the arbiter as an event.

#ifndef RONDO_SHARE_GPU_SHARE_H_
#define RONDO_SHARE_GPU_SHARE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/event_loop.h"
#include "share/ids.h"
#include "share/slot_server.h"
#include "share/time/arbiter.h"
#include "share/time/suspender.h"

namespace rondo::share {

class GpuShare {
 public:
  using RateChanged = std::function<void(int64_t interval_us)>;

  // server and suspender must outlive the object.
  GpuShare(EventLoop& loop, const Clock& clock, std::string uuid,
           const Rules& rules, SlotServer* server, Suspender* suspender,
           RateChanged on_rate);
  ~GpuShare();

  void SetRules(const Rules& rules);
  void SetTenant(TenantId tenant, const TenantSpec& spec);
  void RemoveTenant(TenantId tenant);

  void OnAttached(ProcessId process, TenantId tenant);
  void OnChannels(ProcessId process);
  void OnApplied(ProcessId process, const wire::Applied& applied);
  void OnDetached(ProcessId process);
  void OnActivity(const Activity& activity);

  TenantView View(TenantId tenant);
  int64_t sample_us() const { return sample_us_; }
  // Reports of this source came within the last seconds.
  bool Fresh(Activity::Source source) const;

 private:
  void Step(const Event& event);
  std::string Name(ProcessId id) const;
  void CarryOut(const Switch& call);
  void FlushChannels();
  int64_t NowUs() const;

  EventLoop& loop_;
  const Clock& clock_;
  const std::string uuid_;
  SlotServer* const server_;
  Suspender* const suspender_;
  const RateChanged on_rate_;
  Arbiter arbiter_;
  std::map<ProcessId, int> groups_;  // as the shim counts them; 0 = not told
  std::set<ProcessId> dirty_;        // channels changed, not yet passed on
  EventLoop::TimerId channels_timer_ = 0;
  EventLoop::TimerId tick_timer_ = 0;
  int64_t tick_at_us_ = INT64_MAX;
  int64_t sample_us_ = INT64_MAX;
  int64_t log_at_us_ = INT64_MIN / 2;
  int64_t sampling_at_us_ = INT64_MIN / 2;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_GPU_SHARE_H_
