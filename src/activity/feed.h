// SPDX-License-Identifier: Apache-2.0
//
// Tells who ran: what the reader of the context-switch logs reports is posted
// to the loop, and the reader drains at the rate that is wanted. For a GPU
// whose log cannot be read (no root, another driver), NVML is asked for its
// samples instead, from the failure until the log opens.
//
// Threads: each method says which. Failure: where neither can be read, that is
// told in the log, and nothing is told of the GPU.

#ifndef RONDO_ACTIVITY_FEED_H_
#define RONDO_ACTIVITY_FEED_H_

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
#include "activity/usage.h"
#include "activity/usage_sampler.h"
#include "base/event_loop.h"
#include "base/ticker.h"
#include "nvml/backend.h"
#include "rm/system.h"

namespace rondo::activity {

class Feed {
 public:
  // Called on a thread of the feed, when there is first something to sample,
  // and again while it fails.
  using OpenNvml =
      std::function<absl::StatusOr<std::shared_ptr<nvml::Backend>>()>;
  // On the loop's thread.
  using OnUsage =
      std::function<void(const std::string& gpu_uuid, const Usage& usage)>;
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

  // loop and system must outlive it. Made and destroyed on the loop's thread.
  Feed(EventLoop& loop, rm::System& system, OpenNvml open_nvml,
       OnUsage on_usage, const Options& options);
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // How far apart reports of this GPU are wanted; before the first call none
  // are taken from NVML. Any thread.
  void SetInterval(const std::string& gpu_uuid,
                   std::chrono::microseconds interval);

  // Any thread.
  AccountStats Snapshot() const { return reader_.Snapshot(); }

 private:
  void Post(const std::string& uuid, Usage usage);
  // On the ticker's thread.
  void Sample();
  absl::Status SampleGpu(const std::string& uuid);
  void Tell(const std::string& uuid, const Reader::LogState& state,
            const absl::Status& sampled);

  EventLoop& loop_;
  const OpenNvml open_nvml_;
  const OnUsage on_usage_;
  // Posted tasks of a feed that is gone must do nothing.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::mutex mutex_;
  std::set<std::string> gpus_;  // guarded by mutex_: those that are shared

  // The ticker's thread's own.
  std::shared_ptr<nvml::Backend> nvml_;
  UsageSampler sampler_;
  std::map<std::string, std::string> told_;  // of each GPU

  Reader reader_;  // its thread uses the above
  Ticker ticker_;  // last: uses the reader
};

}  // namespace rondo::activity

#endif  // RONDO_ACTIVITY_FEED_H_
