// SPDX-License-Identifier: Apache-2.0
//
// The CDI specification of slots: with `rondo.injection: cdi` the container
// runtime puts the library and the slots' folders into a container, by the
// names that Allocate answers (cdi_spec.h tells of CDI). Blocking file work;
// any one thread.

#ifndef RONDO_DEVICEPLUGIN_SLOT_CDI_SPEC_H_
#define RONDO_DEVICEPLUGIN_SLOT_CDI_SPEC_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "config/plan.h"
#include "deviceplugin/inventory.h"
#include "deviceplugin/manager.h"

namespace rondo::deviceplugin {

inline constexpr char kSlotCdiFile[] = "rondo-slot.json";

// The text of the spec: one CDI device for each slot, named by its id, with the
// slot's folder; and, whichever of them a container has, the library and its
// LD_PRELOAD, which replaces one that the container sets. Ids that are no
// slot's are left out.
std::string SlotCdiSpec(const std::string& slot_dir,
                        const std::set<std::string>& slots);

// Writes cdi_dir/rondo-slot.json with every slot that is offered (inventory),
// was offered (groups) or is held. A container that was once given CDI devices
// is given them again whenever it restarts, and does not start where one is not
// in the spec: so one that is there is kept up whatever the config says now.
// Without slots it stays as it is, for a spec must have devices.
absl::Status KeepSlotCdiSpec(const ManagerOptions& options,
                             config::Injection injection,
                             const Inventory& inventory,
                             const std::vector<SlotGroup>& groups);

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_SLOT_CDI_SPEC_H_
