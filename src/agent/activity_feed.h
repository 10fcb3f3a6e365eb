// SPDX-License-Identifier: Apache-2.0
//
// Tells the sharing who ran: drains the context-switch log of each GPU on a
// thread of its own, at the rate that the arbiter wants, and posts what it read
// to the loop.
//
// Failure: a log that cannot be opened (no root, another driver) is logged
// once; sharing then works without the knowledge of idle gaps, and says so in
// its stats.

#ifndef RONDO_AGENT_ACTIVITY_FEED_H_
#define RONDO_AGENT_ACTIVITY_FEED_H_

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/event_loop.h"
#include "rm/system.h"
#include "share/share.h"

namespace rondo::agent {

class ActivityFeed {
 public:
  // Borrows all; they outlive it. share is called on the loop's thread only.
  ActivityFeed(EventLoop& loop, rm::System& system, std::string dev_dir,
               share::Share& share);
  ~ActivityFeed();
  ActivityFeed(const ActivityFeed&) = delete;
  ActivityFeed& operator=(const ActivityFeed&) = delete;

 private:
  using Interval = std::chrono::microseconds;
  void Run();
  absl::Status Read();
  // Waits until the next of the GPUs is due; empty when it is to stop.
  std::vector<std::string> WaitForDue();

  EventLoop& loop_;
  rm::System& system_;
  const std::string dev_dir_;
  share::Share& share_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;                          // guarded by mutex_
  std::map<std::string, Interval> intervals_;  // guarded by mutex_
  std::map<std::string, std::chrono::steady_clock::time_point> due_;  // ditto
  // Posted tasks of a feed that is gone must do nothing.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::thread thread_;
};

}  // namespace rondo::agent

#endif  // RONDO_AGENT_ACTIVITY_FEED_H_
