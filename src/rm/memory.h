// SPDX-License-Identifier: Apache-2.0
//
// How memory is asked for, exported and shared at the driver's boundary: the
// parameters behind the escapes of rm/abi.h. Freestanding, any thread. Sources:
// nvos.h, nv-ioctl.h, ctrl0000unix.h, ctrl00e0.h of open-gpu-kernel-modules.

#ifndef RONDO_RM_MEMORY_H_
#define RONDO_RM_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace rondo::rm {

// Parameters of class 0x40 and 0x3e (NV_MEMORY_ALLOCATION_PARAMS): 120 bytes,
// 128 from 545 on, so only the common head is declared and its size is never
// compared. `size` is in/out: the driver rounds it up.
struct MemoryParams {
  uint32_t owner, type, flags, width, height;
  int32_t pitch;
  uint32_t attr, attr2, format, compr_covg, zcull_covg, pad;
  uint64_t range_lo, range_hi;
  uint64_t size, alignment, offset, limit, address;
  uint32_t ctag_offset, va_space, internal_flags, tag;
};
static_assert(sizeof(MemoryParams) == 120);
static_assert(offsetof(MemoryParams, attr) == 24);
static_assert(offsetof(MemoryParams, size) == 64);

// attr bits 26:25 say where: 0 video memory, 1 PCI (host), 2 any.
constexpr uint32_t AttrLocation(uint32_t attr) { return attr >> 25 & 3; }
inline constexpr uint32_t kLocationVideo = 0;
inline constexpr uint32_t kAttrLocationPci = 1u << 25;
inline constexpr uint32_t kAttrCoherencyCached = 1u << 29;
inline constexpr uint32_t kAttr2UserReadOnly = 1u << 22;
// flags: reserves addresses, takes no memory.
inline constexpr uint32_t kMemoryFlagVirtual = 0x80000;

enum VidHeapFunction : uint32_t {
  kHeapAllocSize = 2,
  kHeapFree = 3,
  kHeapInfo = 5,  // total and free come back
  kHeapAllocTiled = 6,
  kHeapAllocRange = 0xe,
};

// Escape 0x4A (NVOS32): 184 bytes, of which the head and per function a few
// fields of `data` count. Offsets below are from the start of the argument.
struct VidHeapArg {
  uint32_t client, parent, function, va_space;
  int16_t ivc_heap;
  uint16_t pad;
  uint32_t status;
  uint64_t total, free;
  uint32_t data[36];
};
static_assert(sizeof(VidHeapArg) == 184 && offsetof(VidHeapArg, status) == 20);
inline constexpr size_t kHeapHandleAt = 44;       // u32, all functions but 5
inline constexpr size_t kHeapFlagsAt = 52;        // u32, the three allocations
inline constexpr size_t kHeapAttrAt = 56;         // u32, 2 and 0xE
inline constexpr size_t kHeapAttrTiledAt = 64;    // u32, 6
inline constexpr size_t kHeapSizeAt = 88;         // u64, 2 and 6
inline constexpr size_t kHeapSizeRangeAt = 80;    // u64, 0xE
inline constexpr size_t kHeapInfoLargestAt = 56;  // u64, 5

// Controls on a client. 3D05 and 3D06 name one object, 3D0B and 3D0C many.
inline constexpr uint32_t kCtrlExportToFd = 0x3d05;
inline constexpr uint32_t kCtrlImportFromFd = 0x3d06;
inline constexpr uint32_t kCtrlExportManyToFd = 0x3d0b;
inline constexpr uint32_t kCtrlImportManyFromFd = 0x3d0c;
struct ExportToFdParams {
  uint32_t type, device, parent, object;
  int32_t fd;
  uint32_t flags;
};
static_assert(sizeof(ExportToFdParams) == 24);
struct ImportFromFdParams {
  int32_t fd;
  uint32_t type, device, parent, object;
};
static_assert(sizeof(ImportFromFdParams) == 20);
struct ExportManyToFdParams {
  int32_t fd;
  uint32_t device;
  uint16_t max_objects;
  uint8_t metadata[64];
  uint32_t objects[512];
  uint16_t count, index;
};
static_assert(sizeof(ExportManyToFdParams) == 2128);
static_assert(offsetof(ExportManyToFdParams, objects) == 76);
struct ImportManyFromFdParams {
  int32_t fd;
  uint32_t parent;
  uint32_t objects[128];
  uint8_t types[128];
  uint16_t count, index;
};
static_assert(sizeof(ImportManyFromFdParams) == 652);
static_assert(offsetof(ImportManyFromFdParams, count) == 648);

// Control on a 0xE0 object: from now on it holds the memory of these handles.
inline constexpr uint32_t kCtrlExportMem = 0xe00101;
struct ExportMemParams {
  uint16_t index, pad0;
  uint32_t parent;
  uint32_t handles[256];
  uint16_t count, pad1;
  uint32_t pad2;
  uint64_t descriptor;
};
static_assert(sizeof(ExportMemParams) == 1048);

// Escape 0xD9: 2608 bytes; releases without mapping_type have 2600 and begin
// the handles at 32.
struct DmaBufHead {
  int32_t fd;
  uint32_t client, total_objects, count, index, pad;
  uint64_t total_size;
};
static_assert(sizeof(DmaBufHead) == 32);
inline constexpr uint32_t kDmaBufSize = 2608;
inline constexpr uint32_t kDmaBufHandlesAt = 36;
inline constexpr uint32_t kDmaBufStatusAt = 2600;
inline constexpr uint32_t kDmaBufSizeOld = 2600;
inline constexpr uint32_t kDmaBufHandlesAtOld = 32;
inline constexpr uint32_t kDmaBufStatusAtOld = 2592;
inline constexpr uint32_t kDmaBufMaxHandles = 128;

}  // namespace rondo::rm

#endif  // RONDO_RM_MEMORY_H_
