// SPDX-License-Identifier: Apache-2.0
//
// Contexts as the API has them: primary ones, and each thread's stack.
#include <map>
#include <mutex>
#include <vector>

#include "sim/driver/libcuda/context.h"
#include "sim/driver/libcuda/functions.h"
#include "sim/driver/libcuda/node.h"

namespace rondo::sim::cuda {
namespace {

struct Primary {
  Context* context = nullptr;
  unsigned users = 0;
  unsigned flags = 0;
};

std::mutex g_mutex;
std::map<Device, Primary> g_primary;  // guarded by g_mutex

thread_local std::vector<Context*> t_stack;

bool IsDevice(Device device) {
  return device >= 0 && static_cast<size_t>(device) < VisibleGpus().size();
}

void Forget(Context* context) {
  std::erase(t_stack, context);
  delete context;
}

}  // namespace

Context* Current() {
  return Rm() == nullptr || t_stack.empty() ? nullptr : t_stack.back();
}

void SetCurrent(Context* context) {
  if (!t_stack.empty()) t_stack.pop_back();
  if (context != nullptr) t_stack.push_back(context);
}

bool ResolveStream(Stream* stream, Context** context, uint32_t* ring) {
  // CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are the handles 1 and 2.
  const bool none = reinterpret_cast<uintptr_t>(stream) <= 2;
  *context = none ? Current() : stream->context;
  *ring = none ? 0 : stream->ring;
  return *context != nullptr && Rm() != nullptr;
}

Result cuDevicePrimaryCtxRetain(Context** context, Device device) {
  if (Rm() == nullptr) return kNotInitialized;
  if (!IsDevice(device)) return kInvalidDevice;
  std::lock_guard lock(g_mutex);
  Primary& primary = g_primary[device];
  if (primary.context == nullptr) {
    const Result result = Context::Create(device, &primary.context);
    if (result != kSuccess) return result;
  }
  ++primary.users;
  *context = primary.context;
  return kSuccess;
}

Result cuDevicePrimaryCtxRelease_v2(Device device) {
  if (Rm() == nullptr) return kNotInitialized;
  std::lock_guard lock(g_mutex);
  Primary& primary = g_primary[device];
  if (primary.users == 0) return kInvalidContext;
  if (--primary.users != 0) return kSuccess;
  Forget(primary.context);
  primary.context = nullptr;
  return kSuccess;
}

Result cuDevicePrimaryCtxReset_v2(Device device) {
  if (Rm() == nullptr) return kNotInitialized;
  std::lock_guard lock(g_mutex);
  Primary& primary = g_primary[device];
  if (primary.context != nullptr) Forget(primary.context);
  primary.context = nullptr;
  primary.users = 0;
  return kSuccess;
}

Result cuDevicePrimaryCtxGetState(Device device, unsigned* flags, int* active) {
  std::lock_guard lock(g_mutex);
  *flags = g_primary[device].flags;
  *active = g_primary[device].context != nullptr ? 1 : 0;
  return kSuccess;
}

Result cuDevicePrimaryCtxSetFlags_v2(Device device, unsigned flags) {
  std::lock_guard lock(g_mutex);
  g_primary[device].flags = flags;
  return kSuccess;
}

Result cuCtxCreate_v2(Context** context, unsigned, Device device) {
  if (Rm() == nullptr) return kNotInitialized;
  const Result result = Context::Create(device, context);
  if (result == kSuccess) t_stack.push_back(*context);
  return result;
}

Result cuCtxDestroy_v2(Context* context) {
  if (context == nullptr || Rm() == nullptr) return kInvalidContext;
  Forget(context);
  return kSuccess;
}

Result cuCtxPushCurrent_v2(Context* context) {
  if (context == nullptr) return kInvalidContext;
  t_stack.push_back(context);
  return kSuccess;
}

Result cuCtxPopCurrent_v2(Context** context) {
  if (t_stack.empty()) return kInvalidContext;
  if (context != nullptr) *context = t_stack.back();
  t_stack.pop_back();
  return kSuccess;
}

Result cuCtxSetCurrent(Context* context) {
  if (Rm() == nullptr) return kNotInitialized;
  SetCurrent(context);
  return kSuccess;
}

Result cuCtxGetCurrent(Context** context) {
  *context = Current();
  return kSuccess;
}

Result cuCtxGetDevice(Device* device) {
  const Context* const context = Current();
  if (context == nullptr) return kInvalidContext;
  *device = context->device;
  return kSuccess;
}

Result cuCtxSynchronize() {
  Context* const context = Current();
  if (context == nullptr) return kInvalidContext;
  return context->channels->WaitAll() ? kSuccess : kUnknown;
}

Result rondoSimNow(int64_t* ns) {
  Context* const context = Current();
  if (context == nullptr) return kInvalidContext;
  *ns = context->channels->Now();
  return kSuccess;
}

Result rondoSimSleepUntil(int64_t ns) {
  Context* const context = Current();
  if (context == nullptr) return kInvalidContext;
  return context->channels->SleepUntil(ns) ? kSuccess : kUnknown;
}

}  // namespace rondo::sim::cuda
