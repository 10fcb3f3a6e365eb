// SPDX-License-Identifier: Apache-2.0
//
// What the shim itself says to the driver, on descriptors and with handles of
// the program: only what an unprivileged process may say of its own objects.
// Through the next ioctl, so that the simulated driver sees it too. Any thread;
// errno is not kept (the hooks keep it).

#ifndef RONDO_SHIM_DRIVER_H_
#define RONDO_SHIM_DRIVER_H_

#include <cstdint>

#include "rm/abi.h"
#include "shim/next.h"

namespace rondo::shim {

inline constexpr uint32_t kNoStatus = ~0u;  // the ioctl itself failed

// RM_CONTROL. `size` is exact. Returns the driver's status.
inline uint32_t Control(int fd, uint32_t client, uint32_t object, uint32_t cmd,
                        void* params, uint32_t size) {
  rm::ControlArg arg{};
  arg.client = client;
  arg.object = object;
  arg.cmd = cmd;
  arg.params = reinterpret_cast<uint64_t>(params);
  arg.params_size = size;
  const int r =
      Next::ioctl(fd, rm::MakeRequest(rm::kEscControl, sizeof arg), &arg);
  return r == 0 ? arg.status : kNoStatus;
}

// RM_FREE.
inline uint32_t Free(int fd, uint32_t client, uint32_t parent,
                     uint32_t object) {
  rm::FreeArg arg{client, parent, object, 0};
  const int r =
      Next::ioctl(fd, rm::MakeRequest(rm::kEscFree, sizeof arg), &arg);
  return r == 0 ? arg.status : kNoStatus;
}

}  // namespace rondo::shim

#endif  // RONDO_SHIM_DRIVER_H_
