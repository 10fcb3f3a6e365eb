// SPDX-License-Identifier: Apache-2.0
//
// Carries one system call of a program to the simulated driver: gathers the
// bytes that the kernel would read from the program's memory, and puts back
// those that it would write. Any thread, forked children included; no heap, no
// state. Failure: -1 with errno, as the call that it stands for.

#ifndef RONDO_SIM_DRIVER_INTERPOSE_CARRY_H_
#define RONDO_SIM_DRIVER_INTERPOSE_CARRY_H_

#include <cstdint>

namespace rondo::sim::driver {

enum class Kind {
  kOther,
  kRm,   // nvidiactl or nvidia<minor>
  kUvm,  // nvidia-uvm
};

// What the descriptor is; keeps errno.
Kind KindOf(int fd);

// Cheap: false for nearly all ioctls of a program that does not use the driver.
inline bool MayBeDriverRequest(unsigned long request) {
  const unsigned long type = request >> 8 & 0xff;
  return type == 'F' || type == 0;
}

// The descriptor of the device, -1 with errno where the driver is down, or
// kNoDriver where there is no simulated driver here at all.
inline constexpr int kNoDriver = -2;
int Connect(const char* device, bool close_on_exec);

int CarryIoctl(int fd, uint32_t request, void* arg);
int AnswerUvm(uint32_t request, void* arg);

// A descriptor of the memory that RM_MAP_MEMORY has tied to fd.
int FetchMapping(int fd);

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_INTERPOSE_CARRY_H_
