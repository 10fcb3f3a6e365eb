// SPDX-License-Identifier: Apache-2.0

#include "shim/driver_call.h"

#include "rm/abi.h"
#include "rm/control.h"
#include "rm/memory.h"
#include "rm/sharing.h"

namespace rondo::shim {
namespace {

template <typename T>
T Load(const void* base, size_t at = 0) {
  T value;
  __builtin_memcpy(&value, static_cast<const char*>(base) + at, sizeof(T));
  return value;
}

ObjectKind KindOfClass(uint32_t cls) {
  switch (cls) {
    case rm::kClassRoot:
    case rm::kClassRootNonPriv:
    case rm::kClassRootClient:
      return ObjectKind::kClient;
    case rm::kClassDevice:
      return ObjectKind::kDevice;
    case rm::kClassSubdevice:
      return ObjectKind::kSubdevice;
    case rm::kClassMemoryLocal:
      return ObjectKind::kMemory;
    case rm::kClassChannelGroup:
      return ObjectKind::kGroup;
    case rm::kClassMemoryExport:
      return ObjectKind::kExport;
    default:
      return rm::IsChannelClass(cls) ? ObjectKind::kChannel : ObjectKind::kNone;
  }
}

// Host memory and reserved addresses take no video memory. "Any" may.
bool TakesVideoMemory(uint32_t attr, uint32_t flags) {
  return rm::AttrLocation(attr) != rm::AttrLocation(rm::kAttrLocationPci) &&
         (flags & rm::kMemoryFlagVirtual) == 0;
}

Call DecodeAlloc(const void* arg, size_t status_at) {
  // Both forms begin alike.
  const auto a = Load<rm::AllocArg32>(arg);
  Call call;
  call.kind = KindOfClass(a.cls);
  if (call.kind == ObjectKind::kNone) return call;
  call.act = Act::kObject;
  call.client = a.client;
  call.parent = a.parent;
  call.handle = a.handle;
  call.params = a.params;
  call.status_at = static_cast<uint16_t>(status_at);
  call.handle_at = offsetof(rm::AllocArg32, handle);
  if (call.kind == ObjectKind::kMemory) {
    call.act = Act::kMemory;
    call.params_bytes = offsetof(rm::MemoryParams, alignment);
  }
  if (call.kind == ObjectKind::kGroup && call.params != 0) {
    call.params_bytes = sizeof(rm::GroupParams);
  }
  return call;
}

Call DecodeVidHeap(const void* arg) {
  const auto a = Load<rm::VidHeapArg>(arg);
  Call call;
  call.client = a.client;
  call.parent = a.parent;
  call.status_at = offsetof(rm::VidHeapArg, status);
  size_t attr_at = rm::kHeapAttrAt;
  call.bytes_at = rm::kHeapSizeAt;
  switch (a.function) {
    case rm::kHeapInfo:
      call.act = Act::kHeapInfo;
      call.bytes_at = 0;
      return call;
    case rm::kHeapFree:
      call.act = Act::kFree;
      call.handle = Load<uint32_t>(arg, rm::kHeapHandleAt);
      call.bytes_at = 0;
      return call;
    case rm::kHeapAllocTiled:
      attr_at = rm::kHeapAttrTiledAt;
      break;
    case rm::kHeapAllocRange:
      call.bytes_at = rm::kHeapSizeRangeAt;
      break;
    case rm::kHeapAllocSize:
      break;
    default:
      return {};
  }
  if (!TakesVideoMemory(Load<uint32_t>(arg, attr_at),
                        Load<uint32_t>(arg, rm::kHeapFlagsAt))) {
    return {};
  }
  call.bytes = Load<uint64_t>(arg, call.bytes_at);
  call.act = call.bytes == 0 ? Act::kPass : Act::kMemory;
  call.kind = ObjectKind::kMemory;
  call.handle_at = rm::kHeapHandleAt;
  return call;
}

struct ControlOfOurs {
  uint32_t cmd;
  Act act;
  uint32_t params_bytes;  // an exact size, but for kFbInfoV2: the least
};
constexpr ControlOfOurs kControls[] = {
    {rm::kCtrlExportToFd, Act::kExport, sizeof(rm::ExportToFdParams)},
    {rm::kCtrlImportFromFd, Act::kImport, sizeof(rm::ImportFromFdParams)},
    {rm::kCtrlExportManyToFd, Act::kExportMany,
     sizeof(rm::ExportManyToFdParams)},
    {rm::kCtrlImportManyFromFd, Act::kImportMany,
     sizeof(rm::ImportManyFromFdParams)},
    {rm::kCtrlExportMem, Act::kExportMem, sizeof(rm::ExportMemParams)},
    {rm::kCtrlFbInfo, Act::kFbInfo, sizeof(rm::FbInfoParams)},
    {rm::kCtrlFbInfoV2, Act::kFbInfoV2, sizeof(uint32_t)},
    {rm::kCtrlSetTimeslice, Act::kSetSlice, sizeof(rm::TimesliceParams)},
    {rm::kCtrlDisableChannels, Act::kDisableChannels,
     sizeof(rm::DisableChannelsParams)},
};

Call DecodeControl(const void* arg) {
  const auto a = Load<rm::ControlArg>(arg);
  for (const ControlOfOurs& control : kControls) {
    if (control.cmd != a.cmd) continue;
    Call call;
    const bool whole = a.cmd == rm::kCtrlFbInfoV2
                           ? a.params_size >= control.params_bytes
                           : a.params_size == control.params_bytes;
    call.act = whole ? control.act : Act::kUnknown;
    call.client = a.client;
    call.handle = a.object;
    call.params = a.params;
    call.params_size = a.params_size;
    call.params_bytes =
        a.cmd == rm::kCtrlFbInfoV2 ? a.params_size : control.params_bytes;
    call.status_at = offsetof(rm::ControlArg, status);
    return call;
  }
  return {};
}

Call DecodeDup(const void* arg) {
  const auto a = Load<rm::DupArg>(arg);
  Call call;
  call.act = Act::kDup;
  call.client = a.client;
  call.parent = a.parent;
  call.handle = a.object;
  call.source_client = a.client_src;
  call.source = a.object_src;
  call.status_at = offsetof(rm::DupArg, status);
  call.handle_at = offsetof(rm::DupArg, object);
  return call;
}

Call DecodeShare(const void* arg) {
  const auto a = Load<rm::ShareArg>(arg);
  Call call;
  call.act = Act::kShare;
  call.client = a.client;
  call.handle = a.object;
  call.status_at = offsetof(rm::ShareArg, status);
  return call;
}

Call DecodeFree(const void* arg) {
  const auto a = Load<rm::FreeArg>(arg);
  Call call;
  call.act = Act::kFree;
  call.client = a.client;
  call.handle = a.object;
  call.status_at = offsetof(rm::FreeArg, status);
  return call;
}

Call DecodeAllocMemory(const void* arg) {
  const auto a = Load<rm::AllocMemoryArg>(arg);
  Call call;
  if (a.cls != rm::kClassMemoryLocal) return call;
  call.act = Act::kHeapSize;
  call.client = a.client;
  call.parent = a.parent;
  call.status_at = offsetof(rm::AllocMemoryArg, status);
  return call;
}

Call DecodeWrapped(const void* arg) {
  const auto a = Load<rm::WrappedArg>(arg);
  Call call;
  // One level: the driver wraps no wrapper, and sizes are those of a request.
  if (a.cmd > 0xff || a.cmd == rm::kEscWrapped || a.size > 0x3fff) return call;
  call.act = Act::kWrapped;
  call.inner_request = rm::MakeRequest(a.cmd, a.size);
  call.params = a.ptr;
  call.params_bytes = a.size;
  return call;
}

Call OfAct(Act act, size_t status_at = 0) {
  Call call;
  call.act = act;
  call.status_at = static_cast<uint16_t>(status_at);
  return call;
}

}  // namespace

Call Decode(uint32_t request, const void* arg) {
  if (rm::RequestType(request) != rm::kIoctlType) return {};
  const uint32_t size = rm::RequestSize(request);
  if (size == 0) return {};  // another driver's 'F': a frame buffer
  switch (rm::RequestNr(request)) {
    case rm::kEscAlloc:
      if (size == sizeof(rm::AllocArg)) {
        return DecodeAlloc(arg, offsetof(rm::AllocArg, status));
      }
      if (size == sizeof(rm::AllocArg32)) {
        return DecodeAlloc(arg, offsetof(rm::AllocArg32, status));
      }
      return OfAct(Act::kUnknown);
    case rm::kEscControl:
      return size == sizeof(rm::ControlArg) ? DecodeControl(arg)
                                            : OfAct(Act::kUnknown);
    case rm::kEscFree:
      return size == sizeof(rm::FreeArg) ? DecodeFree(arg)
                                         : OfAct(Act::kUnknown);
    case rm::kEscDup:
      return size == sizeof(rm::DupArg) ? DecodeDup(arg) : OfAct(Act::kUnknown);
    case rm::kEscShare:
      return size == sizeof(rm::ShareArg) ? DecodeShare(arg)
                                          : OfAct(Act::kUnknown);
    case rm::kEscVidHeap:
      return size == sizeof(rm::VidHeapArg) ? DecodeVidHeap(arg)
                                            : OfAct(Act::kUnknown);
    case rm::kEscAllocMemory:
      return size == sizeof(rm::AllocMemoryArg) ? DecodeAllocMemory(arg)
                                                : OfAct(Act::kUnknown);
    case rm::kEscWrapped:
      return size == sizeof(rm::WrappedArg) ? DecodeWrapped(arg)
                                            : OfAct(Act::kUnknown);
    case rm::kEscCheckVersion:
      return size == sizeof(rm::VersionArg) ? OfAct(Act::kVersion)
                                            : OfAct(Act::kUnknown);
    case rm::kEscExportToDmaBuf: {
      if (size != rm::kDmaBufSize && size != rm::kDmaBufSizeOld) {
        return OfAct(Act::kUnknown);
      }
      Call call = OfAct(Act::kExportDmaBuf, size == rm::kDmaBufSize
                                                ? rm::kDmaBufStatusAt
                                                : rm::kDmaBufStatusAtOld);
      call.client = Load<uint32_t>(arg, offsetof(rm::DmaBufHead, client));
      return call;
    }
    default:
      return {};
  }
}

void DecodeParams(Call* call, const void* params) {
  if (call->act != Act::kMemory) return;
  const auto attr = Load<uint32_t>(params, offsetof(rm::MemoryParams, attr));
  const auto flags = Load<uint32_t>(params, offsetof(rm::MemoryParams, flags));
  call->bytes = Load<uint64_t>(params, offsetof(rm::MemoryParams, size));
  if (call->bytes == 0 || !TakesVideoMemory(attr, flags)) {
    call->act = Act::kPass;
  }
}

Outcome ReadOutcome(const Call& call, const void* arg, const void* params) {
  Outcome out;
  out.ok =
      call.status_at == 0 || Load<uint32_t>(arg, call.status_at) == rm::kOk;
  out.handle =
      call.handle_at == 0 ? call.handle : Load<uint32_t>(arg, call.handle_at);
  if (call.act == Act::kMemory) {
    out.bytes = call.bytes_at != 0
                    ? Load<uint64_t>(arg, call.bytes_at)
                    : Load<uint64_t>(params, offsetof(rm::MemoryParams, size));
  }
  return out;
}

int DriverBranch(const char* version, size_t size) {
  int branch = 0;
  for (size_t i = 0; i < size && i < 5; ++i) {
    if (version[i] == '.') return branch;
    if (version[i] < '0' || version[i] > '9') return 0;
    branch = branch * 10 + (version[i] - '0');
  }
  return 0;
}

}  // namespace rondo::shim
