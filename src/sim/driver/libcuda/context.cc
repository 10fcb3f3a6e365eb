// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/libcuda/context.h"

#include <string.h>
#include <sys/mman.h>

#include "rm/abi.h"
#include "rm/control.h"
#include "rm/facts.h"
#include "sim/driver/libcuda/node.h"

namespace rondo::sim::cuda {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kPage = 2 * kMiB;
constexpr uint32_t kClassAddressSpace = 0x90f1;
constexpr uint32_t kClassChannel = 0xc86f;
constexpr uint32_t kEngineGraphics = 1;
constexpr uint32_t kEngineFirstCopy = 9;

// A context of an H200 takes 518 MiB: 17 steps of 2 MiB and two large ones.
constexpr uint32_t kSmallSteps = 17;
constexpr uint64_t kLargeSteps[] = {70 * kMiB, 414 * kMiB};

// Addresses of device memory are addresses of this process too, so that copies
// are plain copies. Pages come on touch.
void* ReserveHost(size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

uint64_t RoundUp(uint64_t bytes, uint64_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace

Result FromStatus(uint32_t status) {
  switch (status) {
    case rm::kOk:
      return kSuccess;
    case rm::kNoMemory:
      return kOutOfMemory;
    case kSystemFailed:
      return kOperatingSystem;
    default:
      return kUnknown;
  }
}

Result Context::Create(Device device, Context** out) {
  const auto& gpus = VisibleGpus();
  if (device < 0 || static_cast<size_t>(device) >= gpus.size())
    return kInvalidDevice;
  auto context = std::make_unique<Context>();
  context->device = device;
  if (const uint32_t status = Rm()->OpenDevice(gpus[device].state->minor);
      status != rm::kOk)
    return FromStatus(status);
  Result result = context->MakeObjects(gpus[device].instance);
  if (result == kSuccess) result = context->MakeGroups();
  if (result != kSuccess) return result;
  *out = context.release();
  return kSuccess;
}

Context::~Context() {
  for (const auto& [base, slab] : slabs_)
    munmap(reinterpret_cast<void*>(base), slab.bytes);
  // All else of the context hangs from its device.
  if (device_handle != 0) Rm()->Free(Rm()->client(), device_handle);
}

Result Context::MakeObjects(uint32_t instance) {
  RmClient& rm = *Rm();
  uint32_t device_params[14] = {instance};
  uint32_t status = rm.Alloc(rm.client(), rm::kClassDevice, device_params,
                             sizeof(device_params), &device_handle);
  uint32_t subdevice_id = 0, ignored = 0;
  if (status == rm::kOk)
    status = rm.Alloc(device_handle, rm::kClassSubdevice, &subdevice_id,
                      sizeof(subdevice_id), &subdevice);
  if (status == rm::kOk)
    status = rm.Alloc(device_handle, kClassAddressSpace, nullptr, 0, &ignored);
  for (uint32_t i = 0; i < kSmallSteps && status == rm::kOk; ++i) {
    uint64_t bytes = kPage;
    status = rm.AllocMemory(device_handle, &bytes, &ignored);
  }
  for (uint64_t bytes : kLargeSteps)
    if (status == rm::kOk)
      status = rm.AllocMemory(device_handle, &bytes, &ignored);
  return FromStatus(status);
}

Result Context::MakeGroup(uint32_t engine_type, uint32_t channels,
                          uint32_t* group) {
  RmClient& rm = *Rm();
  uint32_t group_params[5] = {};
  group_params[3] = engine_type;
  uint32_t status = rm.Alloc(device_handle, rm::kClassChannelGroup,
                             group_params, sizeof(group_params), group);
  for (uint32_t i = 0; i < channels && status == rm::kOk; ++i) {
    uint32_t channel_params[92] = {};
    channel_params[32] = engine_type;
    uint32_t ignored = 0;
    status = rm.Alloc(*group, kClassChannel, channel_params,
                      sizeof(channel_params), &ignored);
  }
  return FromStatus(status);
}

Result Context::MakeGroups() {
  RmClient& rm = *Rm();
  uint32_t group = 0, copy = 0, doorbell = 0;
  Result result = MakeGroup(kEngineGraphics, driver::kRings, &group);
  rm::TimesliceParams slice{rm::kDefaultComputeSliceUs};
  if (result == kSuccess) {
    const uint32_t status =
        rm.Control(group, rm::kCtrlSetTimeslice, &slice, sizeof(slice));
    // The library of a driver without that call makes do with what there is.
    if (status != rm::kNotSupported) result = FromStatus(status);
  }
  for (uint32_t i = 0; i < 3 && result == kSuccess; ++i)
    result = MakeGroup(kEngineFirstCopy + i, 1, &copy);
  if (result == kSuccess)
    result = FromStatus(
        rm.Alloc(subdevice, driver::kClassDoorbell, nullptr, 0, &doorbell));
  if (result != kSuccess) return result;
  uint32_t status = rm::kOk;
  void* const page =
      rm.Map(device_handle, group, sizeof(driver::GroupPage), nullptr, &status);
  if (page == nullptr) return FromStatus(status);
  void* const bell = rm.Map(device_handle, doorbell, sizeof(driver::Doorbell),
                            nullptr, &status);
  if (bell == nullptr) return FromStatus(status);
  channels = new Channels(&rm, static_cast<driver::GroupPage*>(page),
                          static_cast<driver::Doorbell*>(bell));
  return kSuccess;
}

Result Context::AddSlab(uint64_t bytes, uint64_t step, DevicePtr* base) {
  Slab slab;
  slab.bytes = RoundUp(bytes, step == 0 ? kPage : step);
  slab.step = step;
  uint32_t status = Rm()->AllocMemory(device_handle, &slab.bytes, &slab.handle);
  // The real library tries once more.
  if (status == rm::kNoMemory)
    status = Rm()->AllocMemory(device_handle, &slab.bytes, &slab.handle);
  if (status != rm::kOk) return FromStatus(status);
  void* const at = ReserveHost(slab.bytes);
  if (at == nullptr) {
    Rm()->Free(device_handle, slab.handle);
    return kOutOfMemory;
  }
  *base = reinterpret_cast<DevicePtr>(at);
  slabs_.emplace(*base, slab);
  return kSuccess;
}

// slab: pieces smaller than half of it share allocations of this size.
Result Context::AllocMemory(size_t bytes, size_t slab, DevicePtr* out) {
  constexpr uint64_t kAlign = 512;
  if (bytes == 0 || bytes > uint64_t{1} << 50) return kInvalidValue;
  const uint64_t size = RoundUp(bytes, kAlign);
  const bool shared = size <= slab / 2;
  std::lock_guard lock(memory_mutex_);
  DevicePtr base = 0;
  if (shared)
    for (const auto& [at, s] : slabs_)
      if (s.step == slab && s.used + size <= s.bytes) base = at;
  if (base == 0) {
    // Above the common slab, pools round up to whole ones too.
    const Result result =
        AddSlab(size, shared || slab > kPage ? slab : 0, &base);
    if (result != kSuccess) return result;
  }
  Slab& s = slabs_[base];
  *out = base + s.used;
  s.used = shared ? s.used + size : s.bytes;
  ++s.live;
  pieces_[*out] = base;
  return kSuccess;
}

Result Context::AllocManaged(size_t bytes, DevicePtr* out) {
  if (bytes == 0) return kInvalidValue;
  if (const uint32_t status = Rm()->OpenUvm(); status != rm::kOk)
    return FromStatus(status);
  // The driver wants the offset to be the address: reserve it first.
  const uint64_t size = RoundUp(bytes, 4096);
  void* const hint = ReserveHost(size);
  if (hint == nullptr) return kOutOfMemory;
  void* const at =
      mmap(hint, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
           Rm()->uvm(), reinterpret_cast<off_t>(hint));
  if (at == MAP_FAILED) {
    munmap(hint, size);
    return kOutOfMemory;
  }
  std::lock_guard lock(memory_mutex_);
  Slab slab;
  slab.bytes = slab.used = size;
  slab.live = 1;
  *out = reinterpret_cast<DevicePtr>(at);
  slabs_.emplace(*out, slab);
  pieces_[*out] = *out;
  return kSuccess;
}

Result Context::FreeMemory(DevicePtr pointer) {
  if (pointer == 0) return kSuccess;
  std::lock_guard lock(memory_mutex_);
  const auto piece = pieces_.find(pointer);
  if (piece == pieces_.end()) return kInvalidValue;
  const auto slab = slabs_.find(piece->second);
  pieces_.erase(piece);
  if (--slab->second.live != 0) return kSuccess;
  munmap(reinterpret_cast<void*>(slab->first), slab->second.bytes);
  if (slab->second.handle != 0) Rm()->Free(device_handle, slab->second.handle);
  slabs_.erase(slab);
  return kSuccess;
}

Result Context::MemoryInfo(uint64_t* free, uint64_t* total) {
  // The lengths that the control has had, newest first.
  for (const uint32_t size : {1028u, 460u, 444u, 436u}) {
    uint32_t params[257] = {2, rm::kFbHeapSize, 0, rm::kFbHeapFree, 0};
    const uint32_t status =
        Rm()->Control(subdevice, rm::kCtrlFbInfoV2, params, size);
    if (status == rm::kInvalidParamStruct) continue;
    *total = uint64_t{params[2]} * 1024;
    *free = uint64_t{params[4]} * 1024;
    return FromStatus(status);
  }
  return kUnknown;
}

}  // namespace rondo::sim::cuda
