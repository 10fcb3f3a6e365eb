// SPDX-License-Identifier: Apache-2.0
//
// What a process says to the NVIDIA kernel driver by ioctl, as far as Rondo
// reads or says it: requests, the arguments of the escapes, object classes and
// their allocation parameters. The parameters of controls are in rm/control.h.
//
// Freestanding (no libc call, no allocation), any thread. Layouts are those of
// NVIDIA's public headers (open-gpu-kernel-modules: nv_escape.h,
// nv-ioctl-numbers.h, nvos.h, nv-ioctl.h, uvm_ioctl.h) for releases 535 to 595,
// on 64-bit Linux. The interface is not a stable API: whoever uses it compares
// the ioctl's size first and leaves an unknown one alone.

#ifndef RONDO_RM_ABI_H_
#define RONDO_RM_ABI_H_

#include <cstddef>
#include <cstdint>

namespace rondo::rm {

// An ioctl request is dir(2) size(14) type(8) nr(8), from the top bit down.
inline constexpr uint32_t kIoctlType = 'F';
constexpr uint32_t RequestType(uint32_t request) { return request >> 8 & 0xff; }
constexpr uint32_t RequestNr(uint32_t request) { return request & 0xff; }
constexpr uint32_t RequestSize(uint32_t request) {
  return request >> 16 & 0x3fff;
}
// _IOWR('F', nr, size): what every escape below uses.
constexpr uint32_t MakeRequest(uint32_t nr, uint32_t size) {
  return 3u << 30 | size << 16 | kIoctlType << 8 | nr;
}

enum Escape : uint32_t {
  kEscAllocMemory = 0x27,     // with class 0x40 it only tells the heap's size
  kEscFree = 0x29,            // FreeArg
  kEscControl = 0x2A,         // ControlArg
  kEscAlloc = 0x2B,           // AllocArg (48 bytes) or AllocArg32
  kEscDup = 0x34,             // DupArg
  kEscVidHeap = 0x4A,         // VidHeapArg
  kEscMapMemory = 0x4E,       // MapMemoryArg
  kEscUnmapMemory = 0x4F,     // UnmapMemoryArg
  kEscRegisterFd = 0xC9,      // int: the descriptor of nvidiactl
  kEscCheckVersion = 0xD2,    // VersionArg
  kEscWrapped = 0xD3,         // WrappedArg: any other escape, by pointer
  kEscExportToDmaBuf = 0xD9,  // DmaBufArg, on the device's descriptor
};

// Requests of /dev/nvidia-uvm are plain numbers; tell them by descriptor.
inline constexpr uint32_t kUvmInitialize = 0x30000001;  // {u64 flags, status}
inline constexpr uint64_t kUvmInitDisableHmm = 1;       // bit of its flags
inline constexpr uint32_t kUvmAllocSemaphorePool = 68;  // {u64 base, length,..}
inline constexpr uint32_t kUvmAllocDeviceP2p = 78;      // {u64 base, length,..}

enum Status : uint32_t {
  kOk = 0,
  kInvalidArgument = 0x1f,
  kInvalidClient = 0x23,
  kInvalidObject = 0x33,  // INVALID_OBJECT_HANDLE
  kInvalidParamStruct = 0x3a,
  kNoMemory = 0x51,
  kNotSupported = 0x56,
};

enum Class : uint32_t {
  kClassRoot = 0x0,  // 0x0, 0x1 and 0x41 all make a client
  kClassRootNonPriv = 0x1,
  kClassRootClient = 0x41,
  kClassMemoryLocal = 0x40,   // the one class that takes video memory
  kClassMemorySystem = 0x3e,  // host memory
  kClassDevice = 0x80,        // DeviceParams
  kClassMemoryExport = 0xe0,
  kClassEventBuffer = 0x90cd,
  kClassMemoryEventBuffer = 0x90ce,
  kClassSubdevice = 0x2080,     // {u32 subDeviceId}
  kClassChannelGroup = 0xa06c,  // a TSG
};
// Every GPFIFO channel class ends in 0x6F: C46F Turing, C56F Ampere, C86F
// Hopper, C96F and CA6F Blackwell. (A06F, Kepler's, likewise.)
constexpr bool IsChannelClass(uint32_t cls) {
  return (cls & 0xff) == 0x6f && cls >= 0xa000;
}

// RM_ALLOC as libcuda from 535 says it (NVOS64). params_size is ignored by the
// kernel, which copies the class's own size both ways.
struct AllocArg {
  uint32_t client, parent, handle, cls;
  uint64_t params, rights;
  uint32_t params_size, flags, status, pad;
};
static_assert(sizeof(AllocArg) == 48 && offsetof(AllocArg, status) == 40);

// The short form (NVOS21), from 535. 40 bytes (525 and 530) is unknown here.
struct AllocArg32 {
  uint32_t client, parent, handle, cls;
  uint64_t params;
  uint32_t params_size, status;
};
static_assert(sizeof(AllocArg32) == 32 && offsetof(AllocArg32, status) == 28);

struct ControlArg {  // NVOS54
  uint32_t client, object, cmd, flags;
  uint64_t params;
  uint32_t params_size, status;
};
static_assert(sizeof(ControlArg) == 32 && offsetof(ControlArg, status) == 28);

struct FreeArg {  // NVOS00. Children and dependants go with the object.
  uint32_t client, parent, object, status;
};
static_assert(sizeof(FreeArg) == 16);

struct DupArg {  // NVOS55. Adds a handle to the same memory, nothing physical.
  uint32_t client, parent, object, client_src, object_src, flags, status;
};
static_assert(sizeof(DupArg) == 28 && offsetof(DupArg, status) == 24);

struct MapMemoryArg {  // NVOS33 with its descriptor
  uint32_t client, device, memory, pad0;
  uint64_t offset, length, address;
  uint32_t status, flags;
  int32_t fd;
  uint32_t pad1;
};
static_assert(sizeof(MapMemoryArg) == 56);
// Bits 1:0 of flags: memory that is read-only to users wants no other (0x1f).
inline constexpr uint32_t kMapReadOnly = 1;
static_assert(offsetof(MapMemoryArg, status) == 40);

struct UnmapMemoryArg {  // NVOS34
  uint32_t client, device, memory, pad0;
  uint64_t address;
  uint32_t status, flags;
};
static_assert(sizeof(UnmapMemoryArg) == 32);

struct AllocMemoryArg {  // NVOS02 with its descriptor
  uint32_t client, parent, handle, cls, flags, pad0;
  uint64_t memory, limit;
  uint32_t status, pad1;
  int32_t fd;
  uint32_t pad2;
};
static_assert(sizeof(AllocMemoryArg) == 56);
static_assert(offsetof(AllocMemoryArg, limit) == 32);

struct WrappedArg {
  uint32_t cmd, size;
  uint64_t ptr;
};
static_assert(sizeof(WrappedArg) == 16);

struct VersionArg {  // version holds the kernel's after a match or a query
  uint32_t cmd, reply;
  char version[64];
};
static_assert(sizeof(VersionArg) == 72);

}  // namespace rondo::rm

#endif  // RONDO_RM_ABI_H_
