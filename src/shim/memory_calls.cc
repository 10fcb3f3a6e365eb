// SPDX-License-Identifier: Apache-2.0
//
// Memory: asked for before the driver is, given back after it has freed.

#include "rm/abi.h"
#include "rm/control.h"
#include "rm/memory.h"
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
  return result;
}

int OnDup(Shim* shim, const Site& site) {
  const int result = site.Forward();
  if (!site.Done(result)) return result;
  Guard guard(shim);
  const Object* found =
      shim->objects.Find(site.call.source_client, site.call.source);
  if (found == nullptr) return result;  // another process's: charged there
  Object made = *found;
  made.client = site.call.client;
  made.handle = ReadOutcome(site.call, site.inner, site.params).handle;
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

int OnExport(Shim* shim, const Site& site) {
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
  // A descriptor of another process: its blocks are charged there.
  uint32_t blocks[128], known = 0;
  shim->account.ForExports(many ? all->fd : one->fd, [&](uint32_t block) {
    if (known < count) blocks[known++] = block;
  });
  for (uint32_t i = 0; i < known; ++i) {
    const uint32_t handle = many ? all->objects[i] : one->object;
    Name(shim, site.call.client, handle, parent, blocks[i],
         shim->GpuOf(site.call.client, parent));
  }
  return result;
}

}  // namespace rondo::shim
