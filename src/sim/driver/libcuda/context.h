// SPDX-License-Identifier: Apache-2.0
//
// What a process has of CUDA: the library's state, contexts and their memory.
// Contexts take from the driver what real ones on an H200 take, in the same
// steps. Thread-safe unless noted. Failure: a CUDA result.

#ifndef RONDO_SIM_DRIVER_LIBCUDA_CONTEXT_H_
#define RONDO_SIM_DRIVER_LIBCUDA_CONTEXT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/driver/libcuda/channel.h"
#include "sim/driver/libcuda/cuda_abi.h"
#include "sim/driver/libcuda/rm_client.h"

namespace rondo::sim::cuda {

// CUDA's word for the driver's status.
Result FromStatus(uint32_t status);

// The process's connection to the driver; null before cuInit.
RmClient* Rm();

struct Context {
  static Result Create(Device device, Context** out);
  // All threads must be done with it.
  ~Context();

  Device device = 0;
  uint32_t device_handle = 0, subdevice = 0;
  Channels* channels = nullptr;  // lives on: a thread may have a place there
  unsigned next_ring = 0;

  // Video memory of the context, by its address.
  Result AllocMemory(size_t bytes, size_t slab, DevicePtr* out);
  Result AllocManaged(size_t bytes, DevicePtr* out);
  Result FreeMemory(DevicePtr pointer);
  Result MemoryInfo(uint64_t* free, uint64_t* total);

 private:
  // One allocation of the driver's, given out in pieces.
  struct Slab {
    uint64_t bytes = 0;
    uint64_t used = 0;    // given out from the start
    uint32_t live = 0;    // pieces not yet freed
    uint64_t step = 0;    // 0: one piece, else a slab of this size
    uint32_t handle = 0;  // 0: managed memory
  };
  Result MakeObjects(uint32_t instance);
  Result MakeGroups();
  Result MakeGroup(uint32_t engine_type, uint32_t channels, uint32_t* group);
  Result AddSlab(uint64_t bytes, uint64_t step, DevicePtr* base);

  std::mutex memory_mutex_;
  std::map<DevicePtr, Slab> slabs_;        // guarded by memory_mutex_
  std::map<DevicePtr, DevicePtr> pieces_;  // -> its slab's address
};

// The calling thread's; null = none.
Context* Current();
void SetCurrent(Context* context);

// One stream = one of the group's channels; several may share it.
struct Stream {
  Context* context = nullptr;
  uint32_t ring = 0;
};
// Null and the two special handles are the context's default stream.
bool ResolveStream(Stream* stream, Context** context, uint32_t* ring);

}  // namespace rondo::sim::cuda

#endif  // RONDO_SIM_DRIVER_LIBCUDA_CONTEXT_H_
