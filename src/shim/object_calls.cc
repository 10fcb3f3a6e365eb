// SPDX-License-Identifier: Apache-2.0
//
// Everything of the driver but memory: the dispatch, objects that others hang
// from, slices, channels, and what the program is shown.

#include <string.h>

#include "rm/abi.h"
#include "rm/control.h"
#include "rm/memory.h"
#include "shim/calls.h"
#include "shim/driver.h"
#include "shim/slices.h"
#include "shim/view.h"

namespace rondo::shim {
namespace {

// False: not for us, or memory that the driver will refuse to read as well.
bool Open(Site* site) {
  const uint32_t request = static_cast<uint32_t>(site->request);
  if (!sys::Readable(site->arg, rm::RequestSize(request))) return false;
  site->inner = site->arg;
  site->call = Decode(request, site->arg);
  if (site->call.act == Act::kWrapped) {
    const Call outer = site->call;
    site->inner = reinterpret_cast<void*>(outer.params);
    if (!sys::Readable(site->inner, outer.params_bytes)) return false;
    site->call = Decode(outer.inner_request, site->inner);
  }
  site->params = nullptr;
  if (site->call.params_bytes != 0 && site->call.act != Act::kUnknown) {
    site->params = reinterpret_cast<void*>(site->call.params);
    if (!sys::Readable(site->params, site->call.params_bytes)) return false;
    DecodeParams(&site->call, site->params);
  }
  return site->call.act != Act::kPass && site->call.act != Act::kWrapped;
}

// First use: learns what slots there are. False: none, so nothing is ours.
bool Arm(Shim* shim) {
  if (!shim->armed.load(std::memory_order_acquire)) {
    Guard guard(shim);
    shim->armed.store(!shim->inert, std::memory_order_release);
  }
  return !shim->inert.load(std::memory_order_acquire) && !shim->too_old;
}

int OnUnknown(Shim* shim, const Site& site) {
  {
    Guard guard(shim);
    shim->health.Count(wire::Counter::kPassedThrough);
    shim->health.Set(wire::Reason::kUnknownIoctl);
  }
  return site.Forward();
}

// Asks the driver which GPU a new subdevice is.
uint8_t AskGpu(Shim* shim, const Object& subdevice) {
  rm::GidParams params{};
  params.flags = rm::kGidText;
  const uint32_t status =
      Control(subdevice.fd, subdevice.client, subdevice.handle, rm::kCtrlGetGid,
              &params, sizeof params);
  params.data[sizeof params.data - 1] = '\0';
  return status == rm::kOk ? shim->GpuByUuid(params.data) : 0;
}

void NoteGpu(Shim* shim, Object* subdevice) {
  subdevice->gpu = AskGpu(shim, *subdevice);
  if (subdevice->gpu == 0) return;
  Object* device = shim->objects.Find(subdevice->client, subdevice->parent);
  if (device != nullptr) device->gpu = subdevice->gpu;
}

// What the slots together are and use. False where the GPU is shown as it is.
bool ShareOf(Shim* shim, uint32_t slots, Share* share) {
  *share = {};
  for (uint32_t i = 0; i < shim->slots.count; ++i) {
    if ((slots >> i & 1) == 0) continue;
    shim->EnsureConnected(i);
    Link& link = shim->links[i];
    if (!link.known() || link.policy().memory != wire::Memory::kEnforce ||
        link.policy().limit == 0) {
      return false;
    }
    wire::Answer answer;
    if (link.connected() &&
        link.Ask(wire::Make<wire::View>(0), &answer, &shim->health)) {
      link.others = answer.used > link.own ? answer.used - link.own : 0;
      share->limit += answer.limit;
      share->used += answer.used;
    } else {
      share->limit += link.policy().limit;
      share->used += link.own + link.others;
    }
  }
  return slots != 0;
}

}  // namespace

int OnVersion(Shim* shim, const Site& site) {
  const int result = site.Forward();
  if (result != 0) return result;
  Guard guard(shim);
  // The first question of a process may be answered without the version.
  const auto* version = static_cast<const rm::VersionArg*>(site.inner);
  if (version->version[0] == '\0') return result;
  memcpy(shim->driver, version->version, sizeof shim->driver - 1);
  const int branch = DriverBranch(shim->driver, sizeof shim->driver);
  if (branch != 0 && branch < kOldestBranch) {
    shim->too_old = true;
    shim->health.Set(wire::Reason::kDriverTooOld);
  }
  for (uint32_t i = 0; i < shim->slots.count; ++i) shim->EnsureConnected(i);
  return result;
}

int OnObject(Shim* shim, const Site& site) {
  const int result = site.Forward();
  if (!site.Done(result)) return result;
  Guard guard(shim);
  const Call& call = site.call;
  Object made;
  made.handle = ReadOutcome(call, site.inner, site.params).handle;
  made.kind = call.kind;
  made.client = call.kind == ObjectKind::kClient ? made.handle : call.client;
  made.parent = call.kind == ObjectKind::kClient ? 0 : call.parent;
  made.gpu = shim->GpuOf(made.client, made.parent);
  made.fd = site.fd;
  if (made.kind == ObjectKind::kGroup) {
    rm::GroupParams params{};
    if (site.params != nullptr) memcpy(&params, site.params, sizeof params);
    made.compute = params.engine < rm::kEngineCopy0;
  }
  Note(shim, made);
  Object* object = shim->objects.Find(made.client, made.handle);
  if (object == nullptr) return result;
  if (made.kind == ObjectKind::kSubdevice) NoteGpu(shim, object);
  if (made.kind == ObjectKind::kGroup) {
    OnNewGroup(shim, object);
    if (!shim->thread_runs) shim->thread_due = true;
  }
  if (made.kind == ObjectKind::kChannel) TellChannel(shim, *object, false);
  return result;
}

int OnSetSlice(Shim* shim, const Site& site) {
  rm::TimesliceParams params;
  memcpy(&params, site.params, sizeof params);
  uint32_t wanted = 0;
  {
    Guard guard(shim);
    Object* group = shim->objects.Find(site.call.client, site.call.handle);
    if (group != nullptr && group->kind == ObjectKind::kGroup) {
      // What the group goes back to without us.
      group->value = static_cast<uint32_t>(params.us);
      wanted = WantedSlice(shim, *group);
    }
  }
  if (wanted == 0) return site.Forward();
  // Ours stays in force; the program hears what the driver says of it.
  rm::ControlArg arg;
  memcpy(&arg, site.inner, sizeof arg);
  params.us = wanted;
  arg.params = reinterpret_cast<uint64_t>(&params);
  const int result =
      Next::ioctl(site.fd, rm::MakeRequest(rm::kEscControl, sizeof arg), &arg);
  if (result == 0) site.SetStatus(arg.status);
  return result;
}

int OnDisableChannels(Shim* shim, const Site& site) {
  const int result = site.Forward();
  if (!site.Done(result)) return result;
  Guard guard(shim);
  const auto* p = static_cast<const rm::DisableChannelsParams*>(site.params);
  for (uint32_t i = 0; i < p->count && i < rm::kMaxChannelsPerCall; ++i) {
    Object* channel = shim->objects.Find(p->clients[i], p->channels[i]);
    if (channel == nullptr || channel->kind != ObjectKind::kChannel) continue;
    const bool off = p->disable != 0;
    if (channel->off == off) continue;
    // Nobody else is to resume what the program stopped.
    channel->off = off;
    TellChannel(shim, *channel, off);
  }
  return result;
}

int OnView(Shim* shim, const Site& site) {
  const int result = site.Forward();
  if (!site.Done(result)) return result;
  Guard guard(shim);
  const Call& call = site.call;
  const bool control = call.act == Act::kFbInfo || call.act == Act::kFbInfoV2;
  Share share;
  if (!ShareOf(shim,
               shim->SlotsOf(shim->GpuOf(call.client,
                                         control ? call.handle : call.parent)),
               &share)) {
    return result;
  }
  if (call.act == Act::kFbInfo) {
    const auto* p = static_cast<const rm::FbInfoParams*>(site.params);
    auto* list = reinterpret_cast<rm::FbInfo*>(p->list);
    if (sys::Readable(list, p->count * sizeof(rm::FbInfo))) {
      ShowFbInfo(share, list, p->count);
    }
  } else if (call.act == Act::kFbInfoV2) {
    auto* list = reinterpret_cast<rm::FbInfo*>(static_cast<char*>(site.params) +
                                               sizeof(uint32_t));
    ShowFbInfo(share, list, FbInfoCount(site.params, call.params_size));
  } else if (call.act == Act::kHeapInfo) {
    ShowHeapInfo(share, site.inner);
  } else {
    ShowHeapSize(share, site.inner);
  }
  return result;
}

int OnDriverIoctl(Shim* shim, int fd, unsigned long request, void* arg) {
  Site site{fd, request, arg, nullptr, nullptr, {}};
  if (!Open(&site) || !Arm(shim)) return site.Forward();
  switch (site.call.act) {
    case Act::kUnknown:
      return OnUnknown(shim, site);
    case Act::kVersion:
      return OnVersion(shim, site);
    case Act::kObject:
      return OnObject(shim, site);
    case Act::kMemory:
      return OnMemory(shim, site);
    case Act::kFree:
      return OnFree(shim, site);
    case Act::kDup:
      return OnDup(shim, site);
    case Act::kShare:
      return OnShare(shim, site);
    case Act::kExport:
    case Act::kExportMany:
    case Act::kExportDmaBuf:
    case Act::kExportMem:
      return OnExport(shim, site);
    case Act::kImport:
    case Act::kImportMany:
      return OnImport(shim, site);
    case Act::kFbInfo:
    case Act::kFbInfoV2:
    case Act::kHeapInfo:
    case Act::kHeapSize:
      return OnView(shim, site);
    case Act::kSetSlice:
      return OnSetSlice(shim, site);
    case Act::kDisableChannels:
      return OnDisableChannels(shim, site);
    case Act::kPass:
    case Act::kWrapped:
      break;
  }
  return site.Forward();
}

}  // namespace rondo::shim
