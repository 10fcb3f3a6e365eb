// SPDX-License-Identifier: Apache-2.0
//
// The inside of the simulated libnvidia-ml.so.1: the mapped node, what handles
// mean, and how a function is exported. Every exported function is thread-safe
// and answers UNINITIALIZED outside nvmlInit/nvmlShutdown, INVALID_ARGUMENT for
// a handle or pointer that is not one, GPU_IS_LOST for a lost GPU.
//
// Nothing here writes the state: the library maps it read-only, so it works on
// a read-only mount and cannot disturb the node.

#ifndef RONDO_SIM_LIBNVML_LIBRARY_H_
#define RONDO_SIM_LIBNVML_LIBRARY_H_

#include <pthread.h>

#include <cstddef>
#include <cstdint>

#include "sim/libnvml/abi.h"
#include "sim/state.h"

// Defines one function of the library's ABI.
#define NVML_EXPORT(name) \
  extern "C"              \
      __attribute__((visibility("default"))) ::rondo::nvml::abi::Return name

namespace rondo::sim::libnvml {

// std::mutex would bring the C++ library's exceptions with it.
class Mutex {
 public:
  void lock() { pthread_mutex_lock(&mutex_); }
  void unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

class Lock {
 public:
  explicit Lock(Mutex& mutex) : mutex_(mutex) { mutex_.lock(); }
  ~Lock() { mutex_.unlock(); }
  Lock(const Lock&) = delete;

 private:
  Mutex& mutex_;
};

using namespace rondo::nvml::abi;  // NOLINT: this is that ABI's implementation

// Null outside nvmlInit and nvmlShutdown.
const NodeState* State();

// What a device handle stands for. mig is null for a whole GPU.
struct Target {
  const NodeState* node = nullptr;
  const GpuState* gpu = nullptr;
  const MigState* mig = nullptr;
  uint32_t index = 0;  // of the GPU
  uint32_t slot = 0;   // of the MIG device

  bool mig_enabled() const { return (gpu->flags & kMigEnabled) != 0; }
  bool has(uint32_t flag) const { return (gpu->flags & flag) != 0; }
};

// Handles are addresses in tables of our own, never dereferenced.
Device DeviceHandle(uint32_t gpu);
Device MigHandle(uint32_t gpu, uint32_t slot);
GpuInstance GpuInstanceHandle(uint32_t gpu, uint32_t id);
ComputeInstance ComputeInstanceHandle(uint32_t gpu, uint32_t slot);

// A GPU or MIG device.
Return Find(Device device, Target* out);
// A whole GPU; NOT_SUPPORTED for a MIG device, as for calls that only the whole
// GPU can answer.
Return FindGpu(Device device, Target* out);
// A whole GPU of a model that has MIG, turned on or not.
Return FindMigGpu(Device device, Target* out);
// target->mig is one of the devices in the instance, null if there is none.
Return FindGpuInstance(GpuInstance instance, Target* out, uint32_t* id);
Return FindComputeInstance(ComputeInstance instance, Target* out);

// Copies text with its end; INSUFFICIENT_SIZE where it does not fit.
Return CopyText(const char* text, char* out, uint32_t size);

// "00000000:17:00.0"; size as in nvmlPciInfo_t.
void FormatBusId(const GpuState& gpu, char (&out)[32]);

// What the GPU's simulated processes make of it now.
struct Load {
  uint32_t sm = 0, memory = 0, encoder = 0, decoder = 0;  // percent
  uint64_t used_bytes = 0;
  uint32_t processes = 0;
};
// mig: only that device's processes.
Load LoadOf(const GpuState& gpu, uint32_t mig_slot = kNoMig);

// Microseconds of CLOCK_REALTIME, the clock of NVML's samples.
uint64_t NowUs();

}  // namespace rondo::sim::libnvml

// The first lines of most exported functions.
#define NVML_FIND(find, device, target)                              \
  Target target;                                                     \
  if (const Return found = find(device, &target); found != kSuccess) \
  return found
#define NVML_REQUIRE(condition) \
  if (!(condition)) return kInvalidArgument

#endif  // RONDO_SIM_LIBNVML_LIBRARY_H_
