// SPDX-License-Identifier: Apache-2.0
//
// The state of the shim in one process, and the guard that every use of it
// stands under. One static, constant-initialised instance (hooks.cc); tests
// make their own.

#ifndef RONDO_SHIM_SHIM_H_
#define RONDO_SHIM_SHIM_H_

#include <atomic>
#include <cstdint>

#include "shim/account.h"
#include "shim/agent_link.h"
#include "shim/health.h"
#include "shim/lock.h"
#include "shim/next.h"
#include "shim/objects.h"
#include "shim/ranges.h"
#include "shim/slots.h"

namespace rondo::shim {

inline constexpr uint32_t kMaxGpus = 32;

struct Gpu {
  char uuid[kMaxUuid];
  uint32_t slots;  // a bit each; 0: a GPU that we were given no slot of
};

struct Shim {
  // Whether the process has used the driver, and whether it has a slot at all.
  // Read without the lock by every hook.
  std::atomic<bool> armed{false}, inert{false};
  // The driver is older than what we know: everything passes.
  std::atomic<bool> too_old{false};
  // The shim's thread is wanted and does not run yet.
  std::atomic<bool> thread_due{false};
  // The descriptor of /dev/nvidia-uvm, -1 before UVM_INITIALIZE.
  std::atomic<int> uvm_fd{-1};

  Lock lock;
  std::atomic<int> pid{0};  // whose state this is; negative while it is reset

  Slots slots{};
  Link links[kMaxSlots];
  Health health;
  Account account{links, &health};
  Objects objects;
  Ranges ranges;
  Gpu gpus[kMaxGpus + 1]{};  // from 1 on; 0 stands for not known
  uint32_t gpu_count = 0;
  sys::FileId uvm_file;
  bool hmm_left_on = false;
  char driver[32]{};
  bool thread_runs = false;
  uint32_t unblock = 0;  // slots whose groups wait for Unblock (slices.h)
  uint64_t unblock_wait_ns = 0, unblock_at_ns = 0;  // when it is tried again

  // The slots that memory or groups of a GPU belong to. An unknown GPU is the
  // only slot's, if there is only one.
  uint32_t SlotsOf(uint8_t gpu) const {
    if (gpu != 0) return gpus[gpu].slots;
    return slots.count == 1 ? 1 : 0;
  }
  // The object's GPU, by (client, handle); 0 where that is not known.
  uint8_t GpuOf(uint32_t client, uint32_t handle) {
    const Object* object = objects.Find(client, handle);
    return object == nullptr ? 0 : object->gpu;
  }
  // Index of the GPU of this UUID, noted at first sight; 0 when there are too
  // many.
  uint8_t GpuByUuid(const char* uuid);

  // Connects the slot if it may be done now: the shim's thread does it once it
  // runs. Replays what is held.
  void EnsureConnected(uint32_t slot);
  void Reconnect(uint32_t slot);
};

// Holds the lock, with signals blocked and errno kept. Its end acts on what the
// agents said meanwhile, on lost connections, and tells them the health.
// At first use in a process, a forked child
// included, starts from nothing: what the parent holds is the parent's to
// account, and its connection stays open in the child as long as its driver
// descriptors do.
class Guard {
 public:
  explicit Guard(Shim* shim);
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  ErrnoKept errno_;
  SignalsBlocked signals_;
  Shim* shim_;
};

}  // namespace rondo::shim

#endif  // RONDO_SHIM_SHIM_H_
