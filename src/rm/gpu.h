// SPDX-License-Identifier: Apache-2.0
//
// The GPUs as a Client sees them, and what Rondo asks of one: suspend channels,
// tell bytes per process. Threads and errors: as Client.

#ifndef RONDO_RM_GPU_H_
#define RONDO_RM_GPU_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rm/client.h"

namespace rondo::rm {

struct Gpu {
  std::string uuid;  // "GPU-..."
  uint32_t device = 0;
  uint32_t subdevice = 0;  // objects of the client
};

// All GPUs that are attached, with a device and a subdevice each.
absl::StatusOr<std::vector<Gpu>> ListGpus(Client& client);
// One of them, and no objects for the others. NotFound where it is not there.
absl::StatusOr<Gpu> FindGpu(Client& client, absl::string_view uuid);

struct Channel {
  uint32_t client = 0;  // whose handle
  uint32_t handle = 0;
};

inline constexpr size_t kMostChannels = kMaxChannelsPerCall;

// Suspends (or resumes) at most so many channels of any process, mid-kernel, in
// about 0.6 ms (0.3 ms): all of them, or on an error none. An unknown handle is
// one. Suspensions are counted by the driver (share/time/suspensions.h).
absl::Status SwitchChannels(Client& client, const Gpu& gpu, bool suspend,
                            const std::vector<Channel>& channels);

// What the driver charges each process with: private + owned bytes of video
// memory. Pids are those of the initial pid namespace. A pid that holds nothing
// has an entry of 0.
absl::StatusOr<std::map<uint32_t, uint64_t>> PidBytes(
    Client& client, const Gpu& gpu, const std::vector<uint32_t>& pids);

}  // namespace rondo::rm

#endif  // RONDO_RM_GPU_H_
