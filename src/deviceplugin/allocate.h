// SPDX-License-Identifier: Apache-2.0
//
// What a container gets when kubelet allocates devices to it. Pure: ids, view
// and settings in, answer out; any thread. The answer depends on nothing else,
// so it stays true across restarts of agent, kubelet and container. Field by
// field what NVIDIA's plugin answers, except that nothing is listed twice and
// the order is that of the request; and, for replicas, what `rondo.injection`
// adds.

#ifndef RONDO_DEVICEPLUGIN_ALLOCATE_H_
#define RONDO_DEVICEPLUGIN_ALLOCATE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "config/plan.h"
#include "deviceplugin/view.h"

namespace rondo::deviceplugin {

// What a slot's container gets. On the host all of it lies below one folder:
//   <slot dir>/lib/                 librondo.so and ld.so.preload
//   <slot dir>/<device UUID>-<n>/   the slot's socket
inline constexpr char kLibraryFolder[] = "lib";
inline constexpr char kPreloadFile[] = "ld.so.preload";
inline constexpr char kLibraryInContainer[] = "/usr/local/rondo";
inline constexpr char kShimInContainer[] = "/usr/local/rondo/librondo.so";
inline constexpr char kSlotsInContainer[] = "/run/rondo";
// The CDI devices that bring all of it (cdi_spec.h), by slot id.
inline constexpr char kSlotCdiKind[] = "rondo/slot";

struct Mount {
  std::string container_path;
  std::string host_path;
  bool read_only = false;
  bool operator==(const Mount&) const = default;
};

struct DeviceSpec {
  std::string container_path;
  std::string host_path;
  std::string permissions;
  bool operator==(const DeviceSpec&) const = default;
};

struct ContainerAnswer {
  std::map<std::string, std::string> envs;
  std::vector<Mount> mounts;
  std::vector<DeviceSpec> devices;
  std::map<std::string, std::string> annotations;
  std::vector<std::string> cdi_devices;  // qualified names
};

// Everything from the plan and the node that shapes answers.
struct AllocateSettings {
  config::Flags flags;
  bool sharing_active = false;  // some resource is shared on this node's plan
  bool fail_requests_greater_than_one = false;
  std::vector<int> imex_channels;  // usable ones
  // Control devices that exist, e.g. "/dev/nvidiactl".
  std::vector<std::string> control_devices;
  // CDI classes beside "gpu" and "imex-channel" with a spec on this node, in
  // the order gdrcopy, gds, mofed.
  std::vector<std::string> cdi_classes;
  // How containers come to load librondo.so, and where it lies on the host.
  // Nothing is put into them while the folder is empty.
  config::Injection injection = config::Injection::kNone;
  std::string slot_dir;
};

// "<uuid>-<n>", the folder of a slot.
std::string SlotFolder(const DeviceId& slot);

// Reads what the settings need to know about the node: which device nodes
// exist below the dev root as this process sees it. root: in front of all
// paths (base/file.h). FailedPrecondition where imex.required is not met.
absl::StatusOr<AllocateSettings> MakeAllocateSettings(const config::Plan& plan,
                                                      const std::string& root);

// Where the driver's /dev lies for this process: the container driver root if
// it has a dev folder, else "/". With root in front.
std::string VisibleDevRoot(const config::Flags& flags, const std::string& root);

// For one container. annotation_id: unique text, ends the CDI annotation's key.
// Unknown (the code that kubelet shows for NVIDIA's plugin) for an unknown id
// or for more than one share where that is refused.
absl::StatusOr<ContainerAnswer> Allocate(const View& view,
                                         const AllocateSettings& settings,
                                         const std::vector<std::string>& ids,
                                         absl::string_view annotation_id);

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_ALLOCATE_H_
