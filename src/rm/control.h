// SPDX-License-Identifier: Apache-2.0
//
// Parameters of the RM controls (escape 0x2A) that Rondo reads or says: views
// of memory, time slices, suspension, per-process bytes, the context-switch
// log. Freestanding, any thread. Sources: ctrla06c.h, ctrl2080fifo.h,
// ctrl2080fb.h, ctrl2080gpu.h, ctrl2080gr.h, cl90cd.h, ctrl90cd.h of
// open-gpu-kernel-modules. The kernel wants each control's exact size, else
// status 0x3A.

#ifndef RONDO_RM_CONTROL_H_
#define RONDO_RM_CONTROL_H_

#include <cstddef>
#include <cstdint>

namespace rondo::rm {

// --- on a subdevice: what the GPU is, what memory it has -------------------
// The GPU's UUID: flags 0 text ("GPU-8-4-4-4-12" with its NUL), 2 the 16 bytes.
inline constexpr uint32_t kCtrlGetGid = 0x2080014a;
inline constexpr uint32_t kGidText = 0;
struct GidParams {
  uint32_t index, flags, length;
  char data[256];
};
static_assert(sizeof(GidParams) == 268);

// Sizes, in KiB. V2: {u32 count, FbInfo list[]}; the whole is 436 bytes (535),
// 444, 460 or 1028 (580) long. The older form has a pointer to the list.
inline constexpr uint32_t kCtrlFbInfo = 0x20801301;
inline constexpr uint32_t kCtrlFbInfoV2 = 0x20801303;
struct FbInfo {
  uint32_t index, data;
};
struct FbInfoParams {
  uint32_t count, pad;
  uint64_t list;
};
static_assert(sizeof(FbInfoParams) == 16);
enum FbIndex : uint32_t {
  kFbRamSize = 0x7,
  kFbTotalRam = 0x8,
  kFbHeapSize = 0x9,
  kFbLargestFree = 0x12,
  kFbHeapFree = 0x16,
  kFbUsableRam = 0x20,
};

// Bytes per process, up to 200 pids a call; RM charges private + owned.
inline constexpr uint32_t kCtrlPidInfo = 0x2080018e;
struct PidInfo {
  uint32_t pid, index;  // index 0 = video memory
  uint32_t result, pad;
  uint64_t private_bytes, owned_bytes, duped_bytes;
  uint64_t unused[3];
  uint32_t subscription[2];
};
static_assert(sizeof(PidInfo) == 72);
struct PidInfoParams {
  uint32_t count, pad;
  PidInfo list[200];
};
static_assert(sizeof(PidInfoParams) == 14408);

// Head of a channel group's allocation parameters. Engines below kEngineCopy0
// are 0 (not named) and the graphics and compute engines of the GPU's
// instances.
struct GroupParams {
  uint32_t error, ecc_error, va_space, engine;
};
static_assert(sizeof(GroupParams) == 16);
inline constexpr uint32_t kEngineCopy0 = 9;

// --- on a channel group: its time slice, in microseconds -------------------
inline constexpr uint32_t kCtrlSetTimeslice = 0xa06c0103;
inline constexpr uint32_t kCtrlGetTimeslice = 0xa06c0104;
struct TimesliceParams {
  uint64_t us;
};

// --- on a subdevice: suspends (disable = 1) or resumes up to 64 channels ----
inline constexpr uint32_t kCtrlDisableChannels = 0x2080110b;
inline constexpr uint32_t kMaxChannelsPerCall = 64;
struct DisableChannelsParams {
  uint8_t disable, pad0[3];
  uint32_t count;
  uint8_t only_scheduling, rewind_gp_put, pad1[6];
  uint64_t preempt_event;  // must be 0 from user space
  uint32_t clients[kMaxChannelsPerCall];
  uint32_t channels[kMaxChannelsPerCall];
};
static_assert(sizeof(DisableChannelsParams) == 536);
static_assert(offsetof(DisableChannelsParams, clients) == 24);

// --- the context-switch log --------------------------------------------------
inline constexpr uint32_t kCtrlBindFecs = 0x20801238;  // on a subdevice
struct BindFecsParams {
  uint32_t event_buffer, record_size, level, filter;
  uint8_t all_users, pad[3];
  uint32_t reason;
};
static_assert(sizeof(BindFecsParams) == 24);

struct EventBufferParams {  // allocation of class 0x90cd
  uint64_t header, records;
  uint32_t record_size, record_count;
  uint64_t vardata;
  uint32_t vardata_size, records_free_threshold;
  uint64_t notification;
  uint32_t vardata_free_threshold, subdevice, flags;
  uint32_t header_memory, record_memory, vardata_memory;
};
static_assert(sizeof(EventBufferParams) == 72);

inline constexpr uint32_t kCtrlEventEnable = 0x90cd0101;  // {u8 on, u32 flags}
inline constexpr uint32_t kCtrlEventUpdateGet = 0x90cd0102;  // {u32 get, u32 0}
inline constexpr uint32_t kCtrlEventFlush = 0x90cd0104;      // no parameters
struct EventEnableParams {
  uint8_t enable, pad[3];
  uint32_t flags;  // 1 = keep the oldest
};
struct EventUpdateGetParams {
  uint32_t record_get, vardata_get;
};
struct EventHeader {
  uint32_t get, put;
  uint64_t count, drops;
};
static_assert(offsetof(EventHeader, drops) == 16);
struct SwitchRecord {
  uint16_t type, subtype;
  uint32_t vardata;
  uint8_t tag, pad0;  // 6 a process starts on the GPU, 7 it leaves
  uint16_t seqno;
  uint32_t context, pid, pad1;
  uint64_t ns;  // wall clock
};
static_assert(sizeof(SwitchRecord) == 32 && offsetof(SwitchRecord, pid) == 16);
static_assert(offsetof(SwitchRecord, ns) == 24);

}  // namespace rondo::rm

#endif  // RONDO_RM_CONTROL_H_
