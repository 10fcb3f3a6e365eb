// SPDX-License-Identifier: Apache-2.0
//
// What a process asks of memory that goes to, or came from, another one. The
// exports and imports themselves are in rm/memory.h. Freestanding, any thread.
// Sources: nvos.h, ctrl0041.h of open-gpu-kernel-modules.

#ifndef RONDO_RM_SHARING_H_
#define RONDO_RM_SHARING_H_

#include <cstddef>
#include <cstdint>

namespace rondo::rm {

// Escape 0x35 (NVOS57): lets others dup the object.
inline constexpr uint32_t kEscShare = 0x35;
struct ShareArg {
  uint32_t client, object, target, access;
  uint16_t type;
  uint8_t action, pad;
  uint32_t status;
};
static_assert(sizeof(ShareArg) == 24 && offsetof(ShareArg, status) == 20);

// Controls on memory (ctrl0041.h), unprivileged. The tag is a debugging aid of
// the driver's that it copies with every dup, export and import and uses for
// nothing.
inline constexpr uint32_t kCtrlSetTag = 0x410120;
inline constexpr uint32_t kCtrlGetTag = 0x410121;
struct TagParams {
  uint32_t tag;  // 0 = none
};
inline constexpr uint32_t kCtrlSurfaceInfo = 0x410110;
struct SurfaceInfo {
  uint32_t index, data;
};
struct SurfaceInfoParams {
  uint32_t count, pad;
  uint64_t list;
};
static_assert(sizeof(SurfaceInfoParams) == 16);
inline constexpr uint32_t kSurfaceSize = 7;  // in kSurfaceSizeUnit bytes
inline constexpr uint64_t kSurfaceSizeUnit = 4096;
inline constexpr uint32_t kSurfaceAddressSpace = 9;
inline constexpr uint32_t kAddressSpaceVideo = 2;

}  // namespace rondo::rm

#endif  // RONDO_RM_SHARING_H_
