// SPDX-License-Identifier: Apache-2.0

#include "shim/view.h"

#include "rm/abi.h"
#include "rm/memory.h"

namespace rondo::shim {
namespace {

template <typename T>
void Lower(void* base, size_t at, uint64_t most) {
  T value;
  char* p = static_cast<char*>(base) + at;
  __builtin_memcpy(&value, p, sizeof value);
  if (value <= most) return;
  value = static_cast<T>(most);
  __builtin_memcpy(p, &value, sizeof value);
}

}  // namespace

void ShowFbInfo(const Share& share, rm::FbInfo* list, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    switch (list[i].index) {
      case rm::kFbRamSize:
      case rm::kFbTotalRam:
      case rm::kFbHeapSize:
      case rm::kFbUsableRam:
        Lower<uint32_t>(&list[i].data, 0, share.limit / 1024);
        break;
      case rm::kFbHeapFree:
      case rm::kFbLargestFree:
        Lower<uint32_t>(&list[i].data, 0, share.free() / 1024);
        break;
      default:
        break;
    }
  }
}

size_t FbInfoCount(const void* params, size_t params_size) {
  uint32_t count;
  if (params_size < sizeof count) return 0;
  __builtin_memcpy(&count, params, sizeof count);
  const size_t most = (params_size - sizeof count) / sizeof(rm::FbInfo);
  return count < most ? count : most;
}

void ShowHeapInfo(const Share& share, void* arg) {
  Lower<uint64_t>(arg, offsetof(rm::VidHeapArg, total), share.limit);
  Lower<uint64_t>(arg, offsetof(rm::VidHeapArg, free), share.free());
  Lower<uint64_t>(arg, rm::kHeapInfoLargestAt, share.free());
}

void ShowHeapSize(const Share& share, void* arg) {
  if (share.limit == 0) return;
  Lower<uint64_t>(arg, offsetof(rm::AllocMemoryArg, limit), share.limit - 1);
}

}  // namespace rondo::shim
