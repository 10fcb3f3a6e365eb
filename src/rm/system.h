// SPDX-License-Identifier: Apache-2.0
//
// The three system calls by which the driver is reached: the seam where tests
// put a fake. Thread-safe if the implementation is; the real one is.

#ifndef RONDO_RM_SYSTEM_H_
#define RONDO_RM_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace rondo::rm {

class System {
 public:
  virtual ~System() = default;
  // Read-write, close-on-exec. NotFound where there is no such file.
  virtual absl::StatusOr<UniqueFd> Open(const std::string& path) = 0;
  // The system error as a Status. What the driver says stands in *argument.
  virtual absl::Status Ioctl(int fd, uint32_t request, void* argument) = 0;
  // Shared, read-only.
  virtual absl::StatusOr<const void*> Map(int fd, size_t bytes) = 0;
  virtual void Unmap(const void* address, size_t bytes) = 0;
};

// This machine's. Lives for ever.
System& RealSystem();

}  // namespace rondo::rm

#endif  // RONDO_RM_SYSTEM_H_
