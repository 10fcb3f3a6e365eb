// SPDX-License-Identifier: Apache-2.0
//
// Reads what a driver ioctl asks for. Pure: bytes in, meaning out; no pointer
// of the program is followed and nothing is written. Two steps, since the
// second half of some calls lies behind a pointer that the caller has to check
// first:
//
//   Call call = Decode(request, arg);          // arg: RequestSize(request)
//   bytes if (call.params_bytes) DecodeParams(&call, params);  // that many
//   bytes
//   ... the driver ...
//   Outcome out = ReadOutcome(call, arg, params);
//
// Layouts and rules: rm/abi.h, rm/memory.h, rm/control.h (releases 535 to 595).

#ifndef RONDO_SHIM_DRIVER_CALL_H_
#define RONDO_SHIM_DRIVER_CALL_H_

#include <cstddef>
#include <cstdint>

namespace rondo::shim {

enum class Act : uint8_t {
  kPass,             // nothing of ours
  kUnknown,          // an escape of ours in a size that no known driver has
  kWrapped,          // decode again: inner_request, params
  kVersion,          // the driver's version comes back
  kObject,           // makes an object that others hang from
  kMemory,           // takes `bytes` of video memory
  kFree,             // handle and all below it
  kDup,              // handle = one more name of (source_client, source)
  kShare,            // others may dup the handle
  kExport,           // handle leaves as a descriptor; 3D05
  kExportMany,       // 3D0B
  kExportDmaBuf,     // D9
  kExportMem,        // an object of class 0xE0 holds memory; E00101
  kImport,           // 3D06
  kImportMany,       // 3D0C
  kFbInfo,           // sizes by pointer
  kFbInfoV2,         // sizes in place
  kHeapInfo,         // 4A function 5
  kHeapSize,         // 27 of class 0x40
  kSetSlice,         // of the channel group `object`
  kDisableChannels,  // suspends or resumes
};

enum class ObjectKind : uint8_t {
  kNone,
  kClient,
  kDevice,
  kSubdevice,
  kMemory,
  kGroup,
  kChannel,
  kExport,
};

struct Call {
  Act act = Act::kPass;
  ObjectKind kind = ObjectKind::kNone;
  uint32_t client = 0;
  uint32_t parent = 0;
  uint32_t handle = 0;  // made, freed or (controls) operated on
  uint32_t source_client = 0, source = 0;
  uint32_t inner_request = 0;
  uint64_t params = 0;        // the program's pointer
  uint32_t params_size = 0;   // what the program says of it
  uint32_t params_bytes = 0;  // how many of them matter here
  uint64_t bytes = 0;
  // Where in the argument: 0 = nowhere.
  uint16_t status_at = 0, handle_at = 0, bytes_at = 0;
};

struct Outcome {
  bool ok = false;
  uint32_t handle = 0;
  uint64_t bytes = 0;  // what the driver took: it rounds up
};

// `arg` is RequestSize(request) readable bytes.
Call Decode(uint32_t request, const void* arg);
// `params` is call->params_bytes readable bytes. May turn the call into kPass.
void DecodeParams(Call* call, const void* params);
// After the ioctl returned 0.
Outcome ReadOutcome(const Call& call, const void* arg, const void* params);

// The release of "580.159.04", or 0 where the text is none.
int DriverBranch(const char* version, size_t size);
inline constexpr int kOldestBranch = 535;

}  // namespace rondo::shim

#endif  // RONDO_SHIM_DRIVER_CALL_H_
