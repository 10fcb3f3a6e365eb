// SPDX-License-Identifier: Apache-2.0
//
// The simulated driver as the agent's RM client sees it, in the test's own
// process: no preload. RONDO_SIM_STATE names the node (setenv before the first
// Open). Thread-safe.

#ifndef RONDO_SIM_DRIVER_TEST_SYSTEM_H_
#define RONDO_SIM_DRIVER_TEST_SYSTEM_H_

#include <sys/mman.h>

#include <string>

#include "base/file.h"
#include "rm/system.h"
#include "sim/driver/interpose/carry.h"

namespace rondo::sim::driver {

class SimulatedSystem : public rm::System {
 public:
  absl::StatusOr<UniqueFd> Open(const std::string& path) override {
    const std::string device = path.substr(path.rfind('/') + 1);
    UniqueFd fd(Connect(device.c_str(), /*close_on_exec=*/true));
    if (!fd.ok()) return ErrnoStatus(path);
    return fd;
  }
  absl::Status Ioctl(int fd, uint32_t request, void* argument) override {
    return CarryIoctl(fd, request, argument) == 0 ? absl::OkStatus()
                                                  : ErrnoStatus("ioctl");
  }
  absl::StatusOr<const void*> Map(int fd, size_t bytes) override {
    const UniqueFd memory(FetchMapping(fd));
    void* const at =
        mmap(nullptr, bytes, PROT_READ, MAP_SHARED, memory.get(), 0);
    if (at == MAP_FAILED) return ErrnoStatus("mmap");
    return at;
  }
  void Unmap(const void* address, size_t bytes) override {
    munmap(const_cast<void*>(address), bytes);
  }
};

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_TEST_SYSTEM_H_
