// SPDX-License-Identifier: Apache-2.0
//
// One slot's statistics from the parts that know them, and what is told by all
// of them. Pure.

#ifndef RONDO_SHARE_SLOT_STATS_H_
#define RONDO_SHARE_SLOT_STATS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "share/memory/audit.h"
#include "share/share.h"
#include "share/slot_server.h"
#include "share/stats.h"
#include "share/time/event.h"

namespace rondo::share {

// suspender: whether the agent's own driver client works.
SlotStats MakeSlotStats(const SlotSpec& spec, const SlotServer& server,
                        const Audit& audit, const TenantView& view,
                        const absl::Status& suspender);

// Attached to a slot of the GPU. Empty: one of them cannot be seen in this pid
// namespace, so nobody can be told from it.
std::optional<std::set<uint32_t>> AttachedPids(const ShareStats& stats,
                                               const std::string& gpu_uuid);

}  // namespace rondo::share

#endif  // RONDO_SHARE_SLOT_STATS_H_
