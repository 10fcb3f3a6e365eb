// SPDX-License-Identifier: Apache-2.0
//
// Sharing of a node's GPUs among slots: the facade that the agent and `rondo
// run` drive. It owns the slot sockets, one ledger a slot, one arbiter and
// one suspender (with its thread) a GPU, and the audit.
//
// Threads: everything on the loop's thread; callbacks too. Failure: a driver
// that cannot be opened does not stop it: memory is still kept and slices still
// set by the shims; suspension and audit are off, and the stats say why.

#ifndef RONDO_SHARE_SHARE_H_
#define RONDO_SHARE_SHARE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "activity/usage.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "config/plan.h"
#include "rm/system.h"
#include "share/stats.h"
#include "share/time/event.h"

namespace rondo::share {

struct SlotSpec {
  std::string gpu_uuid;  // "GPU-..."; a MIG device's slots get memory only
  int replica = 0;
  std::optional<uint64_t> limit_bytes;
  config::MemoryMode memory = config::MemoryMode::kObserve;
  bool count_managed = true;
  config::OnAgentLoss on_agent_loss = config::OnAgentLoss::kClosed;
  TenantSpec tenant;

  // The GPU and the number of an id; nullopt where it is none.
  static std::optional<SlotSpec> Parse(absl::string_view id);
  std::string id() const;      // "<uuid>::<n>"
  std::string folder() const;  // "<uuid>-<n>"
};

struct ShareConfig {
  std::chrono::microseconds period{40'000};
  std::chrono::microseconds turn{500'000};
  std::vector<SlotSpec> slots;
};

struct ShareOptions {
  std::string run_dir = "/run/rondo";  // slot folders are made in it
  std::string dev_dir = "/dev";
  // After a start, processes of an earlier agent's time tell what they hold;
  // until then a slot whose folder existed before grants nothing new.
  std::chrono::milliseconds replay_window{500};
  std::chrono::milliseconds audit_interval{1000};
};

class Share {
 public:
  // system must outlive the object. Fails only where run_dir cannot be used.
  static absl::StatusOr<std::unique_ptr<Share>> Create(EventLoop& loop,
                                                       const Clock& clock,
                                                       rm::System& system,
                                                       ShareOptions options);
  virtual ~Share() = default;  // sockets go; tenants free themselves

  // The slots and their policies from now on. Live: sockets of slots that stay
  // keep their connections and are told what changed; a slot that is gone loses
  // its socket, but its folder stays (containers have it mounted). On error
  // (a socket that cannot be made) the rest is in force all the same; the same
  // config once more makes what is missing.
  virtual absl::Status Configure(const ShareConfig& config) = 0;

  // Whether every slot of the config has its socket: one could not be made, or
  // somebody removed its folder. Looks at the file system.
  virtual bool Complete() const = 0;

  // One slot's tenant, e.g. after a pod's annotation changed. NotFound.
  virtual absl::Status SetTenant(absl::string_view slot_id,
                                 const TenantSpec& tenant,
                                 std::optional<uint64_t> limit_bytes) = 0;

  // Who ran; ended is by the clock that Create was given, and pids of nobody
  // here count as others.
  virtual void OnActivity(absl::string_view gpu_uuid,
                          const activity::Usage& usage) = 0;
  // Called when reports are wanted at another rate: at once with the present
  // one for each GPU, then on each change. An empty callback ends the reports.
  using RateCallback = std::function<void(const std::string& gpu_uuid,
                                          std::chrono::microseconds interval)>;
  virtual void OnSampleRate(RateCallback callback) = 0;

  virtual ShareStats Snapshot() = 0;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_SHARE_H_
