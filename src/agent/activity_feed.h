// SPDX-License-Identifier: Apache-2.0
//
// Tells the sharing who ran: what the reader of the context-switch logs reports
// is posted to the loop, and the reader drains at the rate that the arbiter
// wants. For a GPU whose log cannot be read (no root, another driver), NVML is
// asked for its samples instead, from the failure until the log opens.
//
// Failure: where neither can be read, that is told in the log, and sharing
// works without the knowledge of who runs.

#ifndef RONDO_AGENT_ACTIVITY_FEED_H_
#define RONDO_AGENT_ACTIVITY_FEED_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "activity/reader.h"
#include "activity/stats.h"
#include "agent/usage_sampler.h"
#include "base/event_loop.h"
#include "base/ticker.h"
#include "nvml/backend.h"
#include "rm/system.h"
#include "share/share.h"

namespace rondo::agent {

class ActivityFeed {
 public:
  // Called on a thread of the feed, when there is first something to sample,
  // and again while it fails.
  using OpenNvml =
      std::function<absl::StatusOr<std::shared_ptr<nvml::Backend>>()>;
  struct Options {
    std::string dev_dir = "/dev";
    // NVML makes a sample a second, or up to six.
    std::chrono::milliseconds sample_interval{250};
    std::chrono::milliseconds retry_log{10'000};
    // Whether tenants may be processes of other users. Without CAP_SYS_ADMIN
    // the log hides those, and who is hidden would be taken for idle: it is
    // not read then.
    bool other_users = false;
  };

  // Borrows all; they outlive it. share is called on the loop's thread only.
  ActivityFeed(EventLoop& loop, rm::System& system, share::Share& share,
               OpenNvml open_nvml, const Options& options);
  ~ActivityFeed();
  ActivityFeed(const ActivityFeed&) = delete;
  ActivityFeed& operator=(const ActivityFeed&) = delete;

  activity::AccountStats Snapshot() const { return reader_.Snapshot(); }

 private:
  void Post(const std::string& uuid, const activity::Report& report);
  // On the ticker's thread.
  void Sample();
  absl::Status SampleGpu(const std::string& uuid);
  void Tell(const std::string& uuid, const activity::Reader::LogState& state,
            const absl::Status& sampled);

  EventLoop& loop_;
  share::Share& share_;
  const OpenNvml open_nvml_;
  // Posted tasks of a feed that is gone must do nothing.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::mutex mutex_;
  std::set<std::string> gpus_;  // guarded by mutex_: those that are shared

  // The ticker's thread's own.
  std::shared_ptr<nvml::Backend> nvml_;
  UsageSampler sampler_;
  std::map<std::string, std::string> told_;  // of each GPU

  activity::Reader reader_;  // its thread uses the above
  Ticker ticker_;            // last: uses the reader
};

}  // namespace rondo::agent

#endif  // RONDO_AGENT_ACTIVITY_FEED_H_
