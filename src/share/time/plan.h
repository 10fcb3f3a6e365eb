// SPDX-License-Identifier: Apache-2.0
//
// Who may run, and on what slice: a function of what the tenants want and of
// whose turn it is. Pure, total, any thread.

#ifndef RONDO_SHARE_TIME_PLAN_H_
#define RONDO_SHARE_TIME_PLAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "share/time/event.h"
#include "share/time/rules.h"

namespace rondo::share {

// How a tenant stands to the GPU just now.
enum class Standing : uint8_t {
  kAsleep,  // wants nothing
  kVisits,  // comes and goes, within its credit
  kOver,    // comes and goes, and has spent its credit
  kFills,   // always has work
};

// What is known of who runs.
enum class Knowledge : uint8_t { kNothing, kSamples, kLog };

struct Member {
  TenantId id = 0;
  TenantClass cls = TenantClass::kStandard;
  double weight = 1;
  int groups = 1;  // among which its slice is split
  Standing standing = Standing::kVisits;
  bool throttled = false;    // by its limit
  bool unsuspended = false;  // its suspension is refused
  double visit_us = 0;       // its longest request of late
  bool fills = false;        // its slices, whatever its class claims
  bool told = false;         // ... or not, was seen lately
  bool steady = false;       // ... for a while
  bool filled = false;       // its slices, whenever it had work
  double part = 1;           // of its slice by weight that is fair to others
};

struct Scene {
  std::vector<Member> members;  // those with channels, by id
  Knowledge knowledge = Knowledge::kLog;
  bool crowded = false;  // programs without Rondo take much of the GPU
  bool visited = false;  // a standard tenant came and went of late
  bool proven = false;   // ... one that has done so for a while
  double earned_us = 0;  // EarnedSlice
  double holder_us = 0;  // HolderSlice
  std::optional<TenantId> holder;  // of the turn
};

// What the tenants' wishes make of the GPU.
enum class Mode : uint8_t {
  kAlone,     // at most one wants it
  kRotation,  // all who want it always have work
  kVisited,   // somebody comes and goes: all go round on short slices
  kServed,    // ... and is waited for: the others run one at a time
};
Mode ModeOf(const Scene& scene);

// Serves a latency tenant: one is there and within its credit.
bool Serves(const Scene& scene);
// One of those who run one at a time in kServed.
bool TakesTurns(const Scene& scene, const Member& member);

struct Placed {
  TenantId id = 0;
  bool runnable = true;
  double group_slice_us = 0;
};
std::vector<Placed> PlanOf(const Scene& scene, Mode mode, const Rules& rules);

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_PLAN_H_
