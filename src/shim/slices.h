// SPDX-License-Identifier: Apache-2.0
//
// Time slices of the process's channel groups, and its channels as the agent
// knows them. Under the shim's lock; each driver call takes 0.2 to 0.6 ms, and
// slices change at most every tens of ms.
//
// When an agent goes, its slots' groups first get back the slices that they had
// without us, then the channels are resumed. The other order may let two
// tenants run on slices below the cost of a context switch: no one makes
// progress then.

// Two runnable compute groups on slices below the cost of a switch make no
// progress at all. So a tiny slice (below wire::kLeastSharedSliceUs) is put on
// a compute group only when the agent asks for it and the group is the
// process's only one on that GPU; never on one that was just made. Copy groups
// get no less than that limit.

#ifndef RONDO_SHIM_SLICES_H_
#define RONDO_SHIM_SLICES_H_

#include <cstdint>

#include "shim/shim.h"

namespace rondo::shim {

// A group that the driver just made: notes its own slice, gives it ours,
// and tells the agents how many there are.
void OnNewGroup(Shim* shim, Object* group);
// The slice of ours that is right for a group now; 0 = its own.
uint32_t WantedSlice(Shim* shim, const Object& group);
// Puts the slot's groups on the slice in force and tells the agent the outcome.
void ApplySlice(Shim* shim, uint32_t slot, uint32_t seq);

// A channel came, went, or was suspended or resumed by the program itself.
void TellChannel(Shim* shim, const Object& channel, bool gone);
void TellAllChannels(Shim* shim, uint32_t slot);

// For the slots in shim->unblock: restore slices, then resume. What the driver
// refuses is tried again by the shim's thread, after 10 ms, then less often; as
// long as a slice is not restored, nothing is resumed.
void Unblock(Shim* shim);

}  // namespace rondo::shim

#endif  // RONDO_SHIM_SLICES_H_
