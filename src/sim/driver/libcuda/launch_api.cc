// SPDX-License-Identifier: Apache-2.0
//
// Modules, kernels, streams and events. Kernels take time and compute nothing:
// an entry named rondo_spin takes as many nanoseconds as its first parameter
// (u64) says, every other one 10 us.
#include <string.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/driver/libcuda/context.h"
#include "sim/driver/libcuda/functions.h"

namespace rondo::sim::cuda {

struct Function {
  std::string name;
};

struct Module {
  std::string text;  // PTX; empty for a binary image, which has any name
  std::vector<std::unique_ptr<Function>> functions;
};

struct Event {
  Context* context = nullptr;
  uint32_t ring = 0, stamp = 0;
  uint64_t count = 0;  // of the ring's entries; 0 = never recorded
};

namespace {

constexpr char kSpin[] = "rondo_spin";
constexpr int64_t kOtherKernelNs = 10'000;
constexpr unsigned kDisableTiming = 2;

driver::RingEntry Marker(uint32_t ring) {
  driver::RingEntry entry{};
  entry.wait_ring = ring;
  return entry;
}

bool HasEntry(const Module& module, const std::string& name) {
  if (module.text.empty()) return true;
  const size_t at = module.text.find(".entry " + name);
  if (at == std::string::npos) return false;
  const char next = module.text[at + strlen(".entry ") + name.size()];
  return next == '(' || next == ' ' || next == '\n' || next == '\t';
}

}  // namespace

Result cuModuleLoadData(Module** module, const void* image) {
  if (Current() == nullptr) return kInvalidContext;
  if (image == nullptr) return kInvalidValue;
  auto loaded = std::make_unique<Module>();
  constexpr unsigned char kElf[] = {0x7f, 'E', 'L', 'F'};
  constexpr unsigned char kFatbin[] = {0x50, 0xed, 0x55, 0xba};
  if (memcmp(image, kElf, 4) != 0 && memcmp(image, kFatbin, 4) != 0) {
    loaded->text = static_cast<const char*>(image);
    if (loaded->text.find(".version") == std::string::npos)
      return kInvalidImage;
  }
  *module = loaded.release();
  return kSuccess;
}

Result cuModuleLoadDataEx(Module** module, const void* image, unsigned, int*,
                          void**) {
  return cuModuleLoadData(module, image);
}

Result cuModuleUnload(Module* module) {
  delete module;
  return kSuccess;
}

Result cuModuleGetFunction(Function** function, Module* module,
                           const char* name) {
  if (module == nullptr || name == nullptr) return kInvalidValue;
  if (!HasEntry(*module, name)) return kNotFound;
  module->functions.push_back(std::make_unique<Function>(Function{name}));
  *function = module->functions.back().get();
  return kSuccess;
}

Result cuLaunchKernel(Function* function, unsigned grid_x, unsigned grid_y,
                      unsigned grid_z, unsigned block_x, unsigned block_y,
                      unsigned block_z, unsigned, Stream* stream, void** params,
                      void**) {
  Context* context = nullptr;
  uint32_t ring = 0;
  if (!ResolveStream(stream, &context, &ring)) return kInvalidContext;
  if (function == nullptr) return kInvalidHandle;
  if (grid_x * grid_y * grid_z == 0 || block_x * block_y * block_z == 0 ||
      block_x * block_y * block_z > 1024)
    return kInvalidValue;
  driver::RingEntry entry = Marker(ring);
  entry.duration_ns = kOtherKernelNs;
  if (function->name == kSpin) {
    if (params == nullptr) return kInvalidValue;
    memcpy(&entry.duration_ns, params[0], sizeof(entry.duration_ns));
  }
  return context->channels->Submit(ring, entry) != 0 ? kSuccess : kUnknown;
}

Result cuStreamCreate(Stream** stream, unsigned) {
  Context* const context = Current();
  if (context == nullptr) return kInvalidContext;
  // The first ring is the default stream's; the others are shared out in turn.
  const uint32_t ring = 1 + context->next_ring++ % (driver::kRings - 1);
  *stream = new Stream{context, ring};
  return kSuccess;
}

Result cuStreamCreateWithPriority(Stream** stream, unsigned flags, int) {
  return cuStreamCreate(stream, flags);
}

Result cuStreamDestroy_v2(Stream* stream) {
  if (reinterpret_cast<uintptr_t>(stream) <= 2) return kInvalidHandle;
  delete stream;
  return kSuccess;
}

Result cuStreamSynchronize(Stream* stream) {
  Context* context = nullptr;
  uint32_t ring = 0;
  if (!ResolveStream(stream, &context, &ring)) return kInvalidContext;
  return context->channels->Wait(ring, context->channels->Submitted(ring))
             ? kSuccess
             : kUnknown;
}

Result cuStreamQuery(Stream* stream) {
  Context* context = nullptr;
  uint32_t ring = 0;
  if (!ResolveStream(stream, &context, &ring)) return kInvalidContext;
  return context->channels->Done(ring, context->channels->Submitted(ring))
             ? kSuccess
             : kNotReady;
}

Result cuStreamWaitEvent(Stream* stream, Event* event, unsigned) {
  Context* context = nullptr;
  uint32_t ring = 0;
  if (!ResolveStream(stream, &context, &ring)) return kInvalidContext;
  if (event == nullptr) return kInvalidHandle;
  if (event->count == 0 ||
      event->context->channels->Done(event->ring, event->count))
    return kSuccess;
  // Between contexts there is no common order: wait here.
  if (event->context != context) return cuEventSynchronize(event);
  driver::RingEntry entry = Marker(event->ring);
  entry.wait_done = event->count;
  return context->channels->Submit(ring, entry) != 0 ? kSuccess : kUnknown;
}

Result cuEventCreate(Event** event, unsigned flags) {
  Context* const context = Current();
  if (context == nullptr) return kInvalidContext;
  auto made = std::make_unique<Event>();
  made->context = context;
  if ((flags & kDisableTiming) == 0) {
    made->stamp = context->channels->TakeStamp();
    if (made->stamp == 0) return kOutOfMemory;
  }
  *event = made.release();
  return kSuccess;
}

Result cuEventDestroy_v2(Event* event) {
  if (event == nullptr) return kInvalidHandle;
  if (event->stamp != 0) event->context->channels->GiveStamp(event->stamp);
  delete event;
  return kSuccess;
}

Result cuEventRecord(Event* event, Stream* stream) {
  Context* context = nullptr;
  uint32_t ring = 0;
  if (!ResolveStream(stream, &context, &ring)) return kInvalidContext;
  if (event == nullptr || event->context != context) return kInvalidHandle;
  driver::RingEntry entry = Marker(ring);
  entry.stamp = event->stamp;
  event->ring = ring;
  event->count = context->channels->Submit(ring, entry);
  return event->count != 0 ? kSuccess : kUnknown;
}

Result cuEventSynchronize(Event* event) {
  if (event == nullptr) return kInvalidHandle;
  return event->context->channels->Wait(event->ring, event->count) ? kSuccess
                                                                   : kUnknown;
}

Result cuEventQuery(Event* event) {
  if (event == nullptr) return kInvalidHandle;
  return event->context->channels->Done(event->ring, event->count) ? kSuccess
                                                                   : kNotReady;
}

Result cuEventElapsedTime(float* milliseconds, Event* from, Event* to) {
  for (Event* const event : {from, to}) {
    if (event == nullptr || event->stamp == 0 || event->count == 0)
      return kInvalidHandle;
    if (cuEventQuery(event) != kSuccess) return kNotReady;
  }
  const int64_t ns = to->context->channels->Stamp(to->stamp)->load() -
                     from->context->channels->Stamp(from->stamp)->load();
  *milliseconds = static_cast<float>(static_cast<double>(ns) / 1e6);
  return kSuccess;
}

Result cuEventElapsedTime_v2(float* milliseconds, Event* from, Event* to) {
  return cuEventElapsedTime(milliseconds, from, to);
}

}  // namespace rondo::sim::cuda
