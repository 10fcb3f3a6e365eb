// SPDX-License-Identifier: Apache-2.0
//
// A System that notes each call while it is made, so that one that hangs can be
// named: "the driver's control 0x2080110b". Threads and failure: as the system
// behind it.

#ifndef RONDO_RM_NOTED_SYSTEM_H_
#define RONDO_RM_NOTED_SYSTEM_H_

#include <string>

#include "base/in_flight.h"
#include "rm/system.h"

namespace rondo::rm {

class NotedSystem : public System {
 public:
  // Borrows both.
  NotedSystem(System& system, CallsInFlight& calls)
      : system_(system), calls_(calls) {}

  absl::StatusOr<UniqueFd> Open(const std::string& path) override;
  absl::Status Ioctl(int fd, uint32_t request, void* argument) override;
  absl::StatusOr<const void*> Map(int fd, size_t bytes) override;
  void Unmap(const void* address, size_t bytes) override;

 private:
  System& system_;
  CallsInFlight& calls_;
};

}  // namespace rondo::rm

#endif  // RONDO_RM_NOTED_SYSTEM_H_
