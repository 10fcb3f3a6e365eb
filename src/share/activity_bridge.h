// SPDX-License-Identifier: Apache-2.0
//
// Tells a Share who ran on its GPUs, at the rate that it wants, for as long as
// the object lives. Threads: the loop's. Failure: as activity/feed.h; sharing
// works without the knowledge of who runs.

#ifndef RONDO_SHARE_ACTIVITY_BRIDGE_H_
#define RONDO_SHARE_ACTIVITY_BRIDGE_H_

#include "activity/feed.h"
#include "activity/stats.h"
#include "base/event_loop.h"
#include "rm/system.h"
#include "share/share.h"

namespace rondo::share {

class ActivityBridge {
 public:
  // Borrows all; they outlive it.
  ActivityBridge(EventLoop& loop, rm::System& system, Share& share,
                 activity::Feed::OpenNvml open_nvml,
                 const activity::Feed::Options& options);
  ~ActivityBridge();
  ActivityBridge(const ActivityBridge&) = delete;
  ActivityBridge& operator=(const ActivityBridge&) = delete;

  activity::AccountStats Snapshot() const { return feed_.Snapshot(); }

 private:
  Share& share_;
  activity::Feed feed_;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_ACTIVITY_BRIDGE_H_
