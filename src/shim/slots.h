// SPDX-License-Identifier: Apache-2.0
//
// Which slots the process was given and where their agents listen. Pure but for
// ReadSlots, which reads the environment or, where that was wiped (`env -i`
// under an /etc/ld.so.preload), the run folder.

#ifndef RONDO_SHIM_SLOTS_H_
#define RONDO_SHIM_SLOTS_H_

#include <cstddef>
#include <cstdint>

namespace rondo::shim {

inline constexpr size_t kMaxSlots = 16;
inline constexpr size_t kMaxUuid = 64;
inline constexpr size_t kMaxSocketPath = 108;  // sockaddr_un

struct Slot {
  char uuid[kMaxUuid];          // "GPU-..." or "MIG-..."
  char socket[kMaxSocketPath];  // "<run folder>/<uuid>-<n>/agent.sock"
};

struct Slots {
  Slot slot[kMaxSlots];
  uint32_t count;
};

// Adds the slots of "<uuid>::<n>,<uuid>::<n>". One that is too long, and those
// beyond kMaxSlots, are left out.
void ParseSlots(const char* text, const char* run_dir, Slots* out);
// Adds the slot of a folder "<uuid>-<n>". False where the name is none.
bool AddSlotOfFolder(const char* name, const char* run_dir, Slots* out);

// RONDO_SLOTS and RONDO_RUN_DIR; without the former, the folders there are.
void ReadSlots(Slots* out);

// The slots of a GPU, a bit each. A MIG slot cannot be told by the GPU's UUID:
// it is taken when it is the only slot there is.
uint32_t SlotsOfGpu(const Slots& slots, const char* uuid);

}  // namespace rondo::shim

#endif  // RONDO_SHIM_SLOTS_H_
