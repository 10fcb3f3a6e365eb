// SPDX-License-Identifier: Apache-2.0
//
// Memory: asked for before the driver is, given back after it has freed.

#include "rm/abi.h"
#include "rm/control.h"
#include "rm/memory.h"
#include "rm/sharing.h"
#include "shim/calls.h"
#include "shim/driver.h"
#include "shim/slices.h"

namespace rondo::shim {
namespace {

template <typename T>
T Load(const void* base, size_t at) {
  T value;
  __builtin_memcpy(&value, static_cast<const char*>(base) + at, sizeof value);
  return value;
}

void Gone(Shim* shim, const Object& object) {
  if (object.kind == ObjectKind::kMemory) shim->account.DropName(object.value);
  if (object.kind == ObjectKind::kChannel && !object.off) {
    TellChannel(shim, object, true);
  }
}

// One more name for a block.
void Name(Shim* shim, uint32_t client, uint32_t handle, uint32_t parent,
          uint32_t block, uint8_t gpu) {
  shim->account.AddName(block);
  Note(shim, {.client = client,
              .handle = handle,
              .parent = parent,
              .kind = ObjectKind::kMemory,
              .gpu = gpu,
              .value = block});
}

Taken Ask(Shim* shim, uint32_t slots, wire::Kind kind, uint64_t bytes,
          uint32_t* block) {
  Taken taken = Taken::kUncharged;
  for (uint32_t i = 0; i < shim->slots.count; ++i) {
    if ((slots >> i & 1) == 0) continue;
    shim->EnsureConnected(i);
    taken = shim->account.Take(i, kind, bytes, block);
    if (taken != Taken::kDenied) return taken;
  }
  return taken;
}

// A client dies with its descriptor, which may have been closed without a word;
// the number may be another client's by now. The driver knows.
bool IsDead(const Object& client) {
  rm::GidParams params{};
  const uint32_t status = Control(client.fd, client.client, client.handle,
                                  rm::kCtrlGetGid, &params, sizeof params);
  return status == rm::kInvalidClient || status == kNoStatus;
}

bool ReapClients(Shim* shim) {
  for (bool any = false;; any = true) {
    Object dead;
    shim->objects.ForEach(ObjectKind::kClient, [&](Object& client) {
      if (dead.kind == ObjectKind::kNone && IsDead(client)) dead = client;
    });
    if (dead.kind == ObjectKind::kNone) return any;
    shim->objects.RemoveTree(dead.client, dead.handle,
                             shim->objects.last_serial(),
                             [&](const Object& o) { Gone(shim, o); });
  }
}

// By chance no two processes choose the same one: the agent knows blocks by it.
uint32_t NewTag() {
  uint32_t tag = 0;
  constexpr unsigned kNonBlock = 1;  // GRND_NONBLOCK
  if (sys::Call(SYS_getrandom, &tag, sizeof tag, kNonBlock) != sizeof tag) {
    const uint64_t seed = sys::NowNs() ^ static_cast<uint64_t>(sys::Pid())
                                             << 40;
    tag = static_cast<uint32_t>(seed * 0x9e3779b97f4a7c15u >> 32);
  }
  return tag != 0 ? tag : 1;
}

// Before memory leaves the process: whoever imports it finds the tag on it. The
// agent hears of it first, so that an import is never news to it. Where the
// driver takes no tag, the agent tells imports by their size.
void Tag(Shim* shim, const Site& site, uint32_t handle) {
  const Object* object = shim->objects.Find(site.call.client, handle);
  if (object == nullptr || object->kind != ObjectKind::kMemory) return;
  const uint32_t block = object->value;
  const bool borrowed = shim->account.borrowed(block);
  rm::TagParams params{shim->account.tag(block)};
  if (params.tag == 0 && borrowed) return;  // its maker's business
  if (params.tag == 0) params.tag = NewTag();
  // Every handle has a copy of its own: this one may be older than the tag.
  if (Control(site.fd, site.call.client, handle, rm::kCtrlSetTag, &params,
              sizeof params) == rm::kOk) {
    shim->account.Share(block, params.tag);
  }
}

// Bytes of video memory behind a handle; 0: another kind. False: not known.
bool AskSize(const Site& site, uint32_t handle, uint64_t* bytes) {
  rm::SurfaceInfo list[] = {{rm::kSurfaceSize, 0},
                            {rm::kSurfaceAddressSpace, 0}};
  rm::SurfaceInfoParams params{2, 0, reinterpret_cast<uint64_t>(list)};
  *bytes = 0;
  if (Control(site.fd, site.call.client, handle, rm::kCtrlSurfaceInfo, &params,
              sizeof params) != rm::kOk) {
    return false;
  }
  if (list[1].data == rm::kAddressSpaceVideo) {
    *bytes = list[0].data * rm::kSurfaceSizeUnit;
  }
  return true;
}

// A handle to what came from outside: memory of another process, or, by the
// tag, of this one. `ours`: what the descriptor was exported for here, to go by
// where there is no tag.
void Arrived(Shim* shim, const Site& site, uint32_t handle, uint32_t parent,
             uint32_t ours) {
  const uint32_t client = site.call.client;
  const uint8_t gpu = shim->GpuOf(client, parent);
  rm::TagParams tag{};
  if (Control(site.fd, client, handle, rm::kCtrlGetTag, &tag, sizeof tag) !=
      rm::kOk) {
    tag.tag = 0;
  }
  uint32_t block = tag.tag != 0 ? shim->account.FindTag(tag.tag) : ours;
  if (block != Account::kNoBlock) {
    return Name(shim, client, handle, parent, block, gpu);
  }
  uint64_t bytes;
  const bool known = AskSize(site, handle, &bytes);
  if (known ? bytes == 0 : tag.tag == 0) return;  // not memory, or not video
  const uint32_t slots = shim->SlotsOf(gpu);
  if (slots == 0) return;
  const auto slot = static_cast<uint32_t>(__builtin_ctz(slots));
  shim->EnsureConnected(slot);
  block = shim->account.Borrow(slot, bytes, tag.tag);
  if (block == Account::kNoBlock) return;
  if (tag.tag == 0) shim->health.Count(wire::Counter::kUntagged);
  Note(shim, {.client = client,
              .handle = handle,
              .parent = parent,
              .kind = ObjectKind::kMemory,
              .gpu = gpu,
              .value = block});
}

}  // namespace

void Note(Shim* shim, const Object& object) {
  Object replaced;
  if (!shim->objects.Put(object, &replaced)) {
    // Memory stays charged as long as the process lives: the neighbours' side.
    shim->health.Set(wire::Reason::kTableFull);
  }
  if (replaced.kind != ObjectKind::kNone) Gone(shim, replaced);
}

Taken TakeOnAny(Shim* shim, uint32_t slots, wire::Kind kind, uint64_t bytes,
                uint32_t* block) {
  Taken taken = Ask(shim, slots, kind, bytes, block);
  if (taken != Taken::kDenied) return taken;
  const bool exports = shim->account.Reap();
  const bool clients = ReapClients(shim);
  if (exports || clients) taken = Ask(shim, slots, kind, bytes, block);
  if (taken == Taken::kDenied) shim->health.Count(wire::Counter::kDenied);
  return taken;
}

int OnMemory(Shim* shim, const Site& site) {
  const Call& call = site.call;
  uint32_t block = Account::kNoBlock;
  uint8_t gpu;
  {
    Guard guard(shim);
    gpu = shim->GpuOf(call.client, call.parent);
    const uint32_t slots = shim->SlotsOf(gpu);
    if (slots == 0 && gpu == 0) {
      shim->health.Set(wire::Reason::kUnknownGpu);
      shim->health.Count(wire::Counter::kUncharged);
    }
    if (TakeOnAny(shim, slots, wire::Kind::kVideo, call.bytes, &block) ==
        Taken::kDenied) {
      site.SetStatus(rm::kNoMemory);
      return 0;
    }
  }
  const int result = site.Forward();
  if (block == Account::kNoBlock) return result;
  Guard guard(shim);
  if (!site.Done(result)) {
    shim->account.DropName(block);
    return result;
  }
  const Outcome out = ReadOutcome(call, site.inner, site.params);
  if (!shim->account.Resize(block, out.bytes)) {
    // The driver rounded up past the limit: undo.
    if (Free(site.fd, call.client, call.parent, out.handle) == rm::kOk) {
      shim->account.DropName(block);
      shim->health.Count(wire::Counter::kDenied);
      site.SetStatus(rm::kNoMemory);
      return result;
    }
  }
  Note(shim, {.client = call.client,
              .handle = out.handle,
              .parent = call.parent,
              .kind = ObjectKind::kMemory,
              .gpu = gpu,
              .fd = site.fd,
              .value = block});
  return result;
}

int OnFree(Shim* shim, const Site& site) {
  uint64_t serial;
  {
    Guard guard(shim);
    serial = shim->objects.last_serial();
  }
  const int result = site.Forward();
  if (!site.Done(result)) return result;
  Guard guard(shim);
  shim->objects.RemoveTree(site.call.client, site.call.handle, serial,
                           [&](const Object& o) { Gone(shim, o); });
  // What was exported is often freed after its descriptor was closed.
  shim->account.Reap();
  return result;
}

int OnDup(Shim* shim, const Site& site) {
  const int result = site.Forward();
  if (!site.Done(result)) return result;
  Guard guard(shim);
  const Object* found =
      shim->objects.Find(site.call.source_client, site.call.source);
  const uint32_t handle =
      ReadOutcome(site.call, site.inner, site.params).handle;
  if (found == nullptr) {
    // Of a client of ours it is nothing that we count.
    const uint32_t source = site.call.source_client;
    if (shim->objects.Find(source, source) == nullptr) {
      Arrived(shim, site, handle, site.call.parent, Account::kNoBlock);
    }
    return result;
  }
  Object made = *found;
  made.client = site.call.client;
  made.handle = handle;
  made.parent = site.call.parent;
  switch (made.kind) {
    case ObjectKind::kMemory:
      Name(shim, made.client, made.handle, made.parent, made.value, made.gpu);
      break;
    case ObjectKind::kDevice:
    case ObjectKind::kSubdevice:
      made.fd = site.fd;
      Note(shim, made);
      break;
    default:
      break;  // a second name of a group shares the slice of the first
  }
  return result;
}

int OnShare(Shim* shim, const Site& site) {
  {
    Guard guard(shim);
    Tag(shim, site, site.call.handle);
  }
  return site.Forward();
}

int OnExport(Shim* shim, const Site& site) {
  if (site.call.act == Act::kExport) {
    Guard guard(shim);
    Tag(shim, site, static_cast<rm::ExportToFdParams*>(site.params)->object);
  } else if (site.call.act == Act::kExportMany) {
    Guard guard(shim);
    const auto* p = static_cast<const rm::ExportManyToFdParams*>(site.params);
    for (uint32_t i = 0; i < p->count && i < 512; ++i) {
      Tag(shim, site, p->objects[i]);
    }
  }
  const int result = site.Forward();
  if (!site.Done(result)) return result;
  Guard guard(shim);
  const uint32_t client = site.call.client;
  auto name = [&](int fd, uint32_t handle, bool alone) {
    const Object* object = shim->objects.Find(client, handle);
    if (object == nullptr || object->kind != ObjectKind::kMemory) return;
    shim->account.AddExport(fd, object->value, alone);
  };
  if (site.call.act == Act::kExport) {
    const auto* p = static_cast<const rm::ExportToFdParams*>(site.params);
    name(p->fd, p->object, true);
  } else if (site.call.act == Act::kExportMany) {
    const auto* p = static_cast<const rm::ExportManyToFdParams*>(site.params);
    for (uint32_t i = 0; i < p->count && i < 512; ++i) {
      name(p->fd, p->objects[i], false);
    }
  } else if (site.call.act == Act::kExportDmaBuf) {
    const auto fd = Load<int32_t>(site.inner, offsetof(rm::DmaBufHead, fd));
    const auto count =
        Load<uint32_t>(site.inner, offsetof(rm::DmaBufHead, count));
    const size_t at = site.call.status_at == rm::kDmaBufStatusAt
                          ? rm::kDmaBufHandlesAt
                          : rm::kDmaBufHandlesAtOld;
    for (uint32_t i = 0; i < count && i < rm::kDmaBufMaxHandles; ++i) {
      name(fd, Load<uint32_t>(site.inner, at + i * sizeof(uint32_t)), false);
    }
  } else {
    // Held by the export object: names below it, which no program can say.
    const auto* p = static_cast<const rm::ExportMemParams*>(site.params);
    for (uint32_t i = 0; i < p->count && i < 256; ++i) {
      const Object* object = shim->objects.Find(client, p->handles[i]);
      if (object == nullptr || object->kind != ObjectKind::kMemory) continue;
      const uint32_t hidden =
          0xfffe0000u | (shim->objects.last_serial() & 0xffff);
      Name(shim, client, hidden, site.call.handle, object->value, object->gpu);
    }
  }
  return result;
}

int OnImport(Shim* shim, const Site& site) {
  const int result = site.Forward();
  if (!site.Done(result)) return result;
  Guard guard(shim);
  const bool many = site.call.act == Act::kImportMany;
  const auto* one = static_cast<const rm::ImportFromFdParams*>(site.params);
  const auto* all = static_cast<const rm::ImportManyFromFdParams*>(site.params);
  const uint32_t count = many ? (all->count < 128 ? all->count : 128) : 1;
  const uint32_t parent = many ? all->parent : one->parent;
  // The descriptor may be another process's, and of a number that stood for one
  // of ours.
  uint32_t blocks[128], known = 0;
  shim->account.ForExports(many ? all->fd : one->fd, [&](uint32_t block) {
    if (known < count) blocks[known++] = block;
  });
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t handle = many ? all->objects[i] : one->object;
    if (handle == 0) continue;
    Arrived(shim, site, handle, parent,
            i < known ? blocks[i] : Account::kNoBlock);
  }
  return result;
}

}  // namespace rondo::shim
