// SPDX-License-Identifier: Apache-2.0
//
// Tells the sharing who ran: what the reader of the context-switch logs reports
// is posted to the loop, and the reader drains at the rate that the arbiter
// wants.
//
// Failure: a log that cannot be opened (no root, another driver) has its reason
// in the stats; sharing then works without the knowledge of idle gaps.

#ifndef RONDO_AGENT_ACTIVITY_FEED_H_
#define RONDO_AGENT_ACTIVITY_FEED_H_

#include <memory>
#include <string>

#include "account/reader.h"
#include "account/stats.h"
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

  account::AccountStats Snapshot() const { return reader_.Snapshot(); }

 private:
  void Post(const std::string& uuid, const account::Report& report);

  EventLoop& loop_;
  share::Share& share_;
  // Posted tasks of a feed that is gone must do nothing.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  account::Reader reader_;  // last: its thread uses the above
};

}  // namespace rondo::agent

#endif  // RONDO_AGENT_ACTIVITY_FEED_H_
