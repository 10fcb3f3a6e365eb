// SPDX-License-Identifier: Apache-2.0
//
// A client of the simulated driver for its tests: says what libcuda says, by
// whatever way the test gives it. Statuses come back as they are.

#ifndef RONDO_SIM_DRIVER_TEST_CLIENT_H_
#define RONDO_SIM_DRIVER_TEST_CLIENT_H_

#include <cstdint>
#include <cstring>
#include <functional>

#include "rm/abi.h"
#include "rm/control.h"
#include "rm/memory.h"

namespace rondo::sim::driver {

class TestClient {
 public:
  // The way: number of the escape, argument, its size, parameters, their size.
  // Returns 0 or an errno.
  using Say = std::function<int(uint32_t nr, void* arg, uint32_t size,
                                void* params, uint32_t params_size)>;

  explicit TestClient(Say say) : say_(std::move(say)) {
    Alloc(0, rm::kClassRootClient, nullptr, 0, &client);
  }

  // Device and subdevice of the card.
  void Open(uint32_t card = 0) {
    uint32_t params[14] = {card};
    status = Alloc(client, rm::kClassDevice, params, sizeof(params), &device);
    uint32_t zero = 0;
    if (status == rm::kOk)
      status =
          Alloc(device, rm::kClassSubdevice, &zero, sizeof(zero), &subdevice);
  }

  uint32_t Alloc(uint32_t parent, uint32_t cls, void* params, uint32_t size,
                 uint32_t* handle) {
    // As large as the class needs, whatever its caller knows of.
    alignas(8) char room[1024] = {};
    if (params != nullptr) memcpy(room, params, size);
    rm::AllocArg arg{};
    arg.client = client;
    arg.parent = parent;
    arg.handle = *handle;
    arg.cls = cls;
    arg.params = params == nullptr ? 0 : reinterpret_cast<uint64_t>(room);
    error = say_(rm::kEscAlloc, &arg, sizeof(arg), room,
                 params == nullptr ? 0 : AllocSize(cls, size));
    if (params != nullptr) memcpy(params, room, size);
    *handle = arg.handle;
    return arg.status;
  }
  uint32_t Free(uint32_t object) {
    rm::FreeArg arg{client, 0, object, 0};
    error = say_(rm::kEscFree, &arg, sizeof(arg), nullptr, 0);
    return arg.status;
  }
  uint32_t Control(uint32_t object, uint32_t cmd, void* params, uint32_t size,
                   uint32_t as_client = 0) {
    rm::ControlArg arg{};
    arg.client = as_client != 0 ? as_client : client;
    arg.object = object;
    arg.cmd = cmd;
    arg.params = reinterpret_cast<uint64_t>(params);
    arg.params_size = size;
    error = say_(rm::kEscControl, &arg, sizeof(arg), params, size);
    return arg.status;
  }

  // Video memory; *bytes comes back.
  uint32_t Memory(uint64_t* bytes, uint32_t* handle, uint32_t attr = 3u << 23) {
    rm::MemoryParams params{};
    params.attr = attr;
    params.size = *bytes;
    const uint32_t result =
        Alloc(device, rm::kClassMemoryLocal, &params, sizeof(params), handle);
    *bytes = params.size;
    return result;
  }
  uint32_t Dup(uint32_t from_client, uint32_t from, uint32_t* handle) {
    rm::DupArg arg{client, device, *handle, from_client, from, 0, 0};
    error = say_(rm::kEscDup, &arg, sizeof(arg), nullptr, 0);
    *handle = arg.object;
    return arg.status;
  }
  // A compute group with one channel.
  uint32_t Group(uint32_t* group, uint32_t* channel) {
    uint32_t group_params[5] = {0, 0, 0, 1, 0};
    uint32_t result = Alloc(device, rm::kClassChannelGroup, group_params,
                            sizeof(group_params), group);
    if (result == rm::kOk) result = Alloc(*group, 0xc86f, nullptr, 0, channel);
    return result;
  }
  uint32_t SetSlice(uint32_t group, uint64_t us, uint32_t as_client = 0) {
    rm::TimesliceParams params{us};
    return Control(group, rm::kCtrlSetTimeslice, &params, sizeof(params),
                   as_client);
  }
  uint64_t GetSlice(uint32_t group) {
    rm::TimesliceParams params{};
    status = Control(group, rm::kCtrlGetTimeslice, &params, sizeof(params));
    return params.us;
  }
  uint32_t Suspend(uint32_t of_client, uint32_t channel, bool suspend) {
    rm::DisableChannelsParams params{};
    params.disable = suspend ? 1 : 0;
    params.count = 1;
    params.clients[0] = of_client;
    params.channels[0] = channel;
    return Control(subdevice, rm::kCtrlDisableChannels, &params,
                   sizeof(params));
  }
  // In KiB; 0 where it failed, with status.
  uint32_t FbInfo(uint32_t index, uint32_t size = 1028) {
    uint32_t params[257] = {1, index, 0};
    status = Control(subdevice, rm::kCtrlFbInfoV2, params, size);
    return params[2];
  }
  rm::PidInfo Charged(uint32_t pid) {
    static rm::PidInfoParams params;
    params = {};
    params.count = 1;
    params.list[0].pid = pid;
    status = Control(subdevice, rm::kCtrlPidInfo, &params, sizeof(params));
    return params.list[0];
  }

  uint32_t client = 0, device = 0, subdevice = 0;
  uint32_t status = rm::kOk;
  int error = 0;

 private:
  static uint32_t AllocSize(uint32_t cls, uint32_t size) {
    return cls == rm::kClassMemoryLocal || cls == rm::kClassMemorySystem ||
                   cls == rm::kClassMemoryEventBuffer
               ? 128
               : size;
  }
  Say say_;
};

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_TEST_CLIENT_H_
