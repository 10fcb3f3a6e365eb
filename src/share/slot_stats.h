// SPDX-License-Identifier: Apache-2.0
//
// One slot's statistics from the parts that know them. Pure.

#ifndef RONDO_SHARE_SLOT_STATS_H_
#define RONDO_SHARE_SLOT_STATS_H_

#include "absl/status/status.h"
#include "share/audit.h"
#include "share/event.h"
#include "share/share.h"
#include "share/slot_server.h"
#include "share/stats.h"

namespace rondo::share {

// suspender: whether the agent's own driver client works.
SlotStats MakeSlotStats(const SlotSpec& spec, const SlotServer& server,
                        const Audit& audit, const TenantView& view,
                        const absl::Status& suspender);

}  // namespace rondo::share

#endif  // RONDO_SHARE_SLOT_STATS_H_
