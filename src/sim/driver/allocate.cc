// SPDX-License-Identifier: Apache-2.0
//
// Escapes that make objects: RM_ALLOC and the older VID_HEAP_CONTROL.
#include "rm/control.h"
#include "rm/facts.h"
#include "rm/memory.h"
#include "sim/driver/resource_manager.h"

namespace rondo::sim::driver {
namespace {

// Classes that only have to exist: address spaces, engines, the doorbell,
// events.
constexpr uint32_t kPlainClasses[] = {0x90f1, 0xc9c0, 0xcbc0, 0xc7c0, 0xc5c0,
                                      0xc8b5, 0xc6b5, 0x0079, 0x0005, 0x9067};
constexpr uint32_t kEngineGraphics = 1;  // NV2080_ENGINE_TYPE_GR0

uint64_t RoundUp(uint64_t bytes, uint64_t to) {
  return (bytes + to - 1) / to * to;
}

// attr bits 24:23: 1 = 4 KiB pages, 3 = huge, else big ones.
uint64_t PageBytes(uint32_t attr) {
  switch (attr >> 23 & 3) {
    case 1:
      return 4 << 10;
    case 3:
      return 2 << 20;
    default:
      return 64 << 10;
  }
}

}  // namespace

uint32_t ResourceManager::AllocClient(const Caller& caller, AllocCall* call,
                                      Bytes params) {
  Client client;
  client.connection = caller.connection;
  client.pid = caller.pid;
  client.uid = caller.uid;
  const uint32_t handle = objects_.AddClient(call->handle, std::move(client));
  if (handle == 0) return kInsertDuplicate;
  call->client = call->handle = handle;
  if (params.size >= sizeof(handle)) Write(params.data, handle);
  return rm::kOk;
}

uint32_t ResourceManager::Alloc(const Caller& caller, AllocCall* call,
                                Bytes params) {
  if (call->cls == rm::kClassRoot || call->cls == rm::kClassRootNonPriv ||
      call->cls == rm::kClassRootClient)
    return AllocClient(caller, call, params);
  Client* const client = objects_.FindOwn(call->client, caller.connection);
  if (client == nullptr) return rm::kInvalidClient;
  std::optional<Object> object =
      objects_.Make(*client, call->parent, &call->handle);
  if (!object) return kInsertDuplicate;
  const Object* const parent = client->Find(call->parent);
  if (parent == nullptr && call->parent != call->client) return kInvalidParent;
  object->cls = call->cls;
  object->card = parent != nullptr ? parent->card : nullptr;
  const uint32_t status = call->cls == rm::kClassEventBuffer
                              ? FillLog(client, &*object, params)
                              : Fill(*client, &*object, parent, params);
  if (status == rm::kOk) client->Add(*std::move(object));
  return status;
}

uint32_t ResourceManager::Fill(const Client& client, Object* object,
                               const Object* parent, Bytes params) {
  if (object->cls == rm::kClassDevice) {
    const uint32_t id =
        params.size >= sizeof(uint32_t) ? Read<uint32_t>(params.data) : 0;
    if (parent != nullptr) return kInvalidParent;
    if (id >= cards_.size()) return kInvalidDevice;
    object->card = cards_[id];
    return rm::kOk;
  }
  if (object->cls == rm::kClassSubdevice)
    return parent != nullptr && parent->cls == rm::kClassDevice
               ? rm::kOk
               : kInvalidParent;
  if (object->cls == rm::kClassMemoryLocal ||
      object->cls == rm::kClassMemorySystem ||
      object->cls == rm::kClassMemoryEventBuffer)
    return FillMemory(object, parent, params);
  if (object->cls == rm::kClassMemoryExport) return rm::kOk;
  if (object->card == nullptr) return kInvalidParent;
  if (object->cls == rm::kClassChannelGroup)
    return FillGroup(client, object, parent,
                     params.size >= 16 ? Read<uint32_t>(params.data + 12) : 0);
  if (rm::IsChannelClass(object->cls))
    return FillChannel(client, object, parent, params);
  if (object->cls == kClassDoorbell) {
    object->memory = doorbell_;
    return rm::kOk;
  }
  for (const uint32_t cls : kPlainClasses)
    if (object->cls == cls) return rm::kOk;
  return kInvalidClass;
}

uint32_t ResourceManager::TakeBlock(Object* object, Card* card,
                                    uint64_t bytes) {
  if (!card->TakeMemory(bytes)) return rm::kNoMemory;
  object->block = std::make_shared<Block>(card, bytes);
  object->block->holders.push_back(object->pid);
  return rm::kOk;
}

uint32_t ResourceManager::FillMemory(Object* object, const Object* parent,
                                     Bytes params) {
  if (params.size < sizeof(rm::MemoryParams)) return rm::kInvalidParamStruct;
  auto* const p = reinterpret_cast<rm::MemoryParams*>(params.data);
  if (p->size == 0 || p->size > uint64_t{1} << 50) return rm::kInvalidArgument;
  const bool video = rm::AttrLocation(p->attr) == rm::kLocationVideo;
  if (object->cls == rm::kClassMemoryLocal) {
    if (!video) return rm::kInvalidArgument;
    if (parent == nullptr ||
        (parent->cls != rm::kClassDevice && parent->cls != rm::kClassSubdevice))
      return kInvalidParent;
    if ((p->flags & rm::kMemoryFlagVirtual) != 0) return rm::kOk;
    const uint64_t bytes = RoundUp(p->size, PageBytes(p->attr));
    const uint32_t status = TakeBlock(object, parent->card, bytes);
    if (status == rm::kOk) p->size = bytes, p->limit = bytes - 1;
    return status;
  }
  if (video) return rm::kInvalidArgument;
  p->size = RoundUp(p->size, 4096);
  object->read_only = (p->attr2 & rm::kAttr2UserReadOnly) != 0;
  if (object->cls == rm::kClassMemoryEventBuffer) {
    object->memory = SharedMemory::Create(p->size);
    if (object->memory == nullptr) return kInsufficientResources;
  }
  return rm::kOk;
}

uint32_t ResourceManager::FillGroup(const Client& client, Object* object,
                                    const Object* parent,
                                    uint32_t engine_type) {
  if (parent == nullptr || parent->cls != rm::kClassDevice)
    return kInvalidParent;
  auto group = std::make_shared<ChannelGroup>();
  group->card = parent->card;
  group->slice_us = rm::kDefaultCopySliceUs;  // RM's, whatever the engine
  // 0: libcuda names no engine for the compute group of some releases.
  if (engine_type <= kEngineGraphics) {
    group->page = SharedMemory::Create(sizeof(GroupPage));
    if (group->page == nullptr) return kInsufficientResources;
    group->id = parent->card->AddGroup(client.pid, client.uid,
                                       int64_t{rm::kDefaultCopySliceUs} * 1000,
                                       group->page);
  }
  object->memory = group->page;
  object->group = std::move(group);
  return rm::kOk;
}

// A channel directly under a device gets a group of its own, as in the driver.
uint32_t ResourceManager::FillChannel(const Client& client, Object* object,
                                      const Object* parent, Bytes params) {
  constexpr size_t kEngineTypeAt = 128;
  if (parent == nullptr) return kInvalidParent;
  if (parent->cls == rm::kClassDevice) {
    const uint32_t status =
        FillGroup(client, object, parent,
                  params.size >= kEngineTypeAt + 4
                      ? Read<uint32_t>(params.data + kEngineTypeAt)
                      : 0);
    if (status != rm::kOk) return status;
  } else if (parent->group != nullptr && parent->channel < 0) {
    object->group = parent->group;
  } else {
    return kInvalidParent;
  }
  for (uint32_t c = 0; c < kChannels; ++c) {
    if ((object->group->channels & 1u << c) != 0) continue;
    object->group->channels |= 1u << c;
    object->channel = static_cast<int>(c);
    return rm::kOk;
  }
  return kInsufficientResources;
}

uint32_t ResourceManager::FillLog(Client* client, Object* object,
                                  Bytes params) {
  const auto* const p = params.As<rm::EventBufferParams>();
  if (p == nullptr) return rm::kInvalidParamStruct;
  Object* const header = client->Find(p->header_memory);
  Object* const records = client->Find(p->record_memory);
  Object* const subdevice = client->Find(p->subdevice);
  if (header == nullptr || records == nullptr || header->memory == nullptr ||
      records->memory == nullptr || subdevice == nullptr ||
      subdevice->cls != rm::kClassSubdevice)
    return rm::kInvalidObject;
  if (!header->read_only || !records->read_only ||
      p->record_size != sizeof(rm::SwitchRecord) || p->record_count < 2 ||
      uint64_t{p->record_count} * p->record_size > records->memory->size() ||
      header->memory->size() < SwitchLog::kHeaderBytes)
    return rm::kInvalidArgument;
  object->card = subdevice->card;
  object->log = std::make_shared<SwitchLog>(header->memory, records->memory,
                                            p->record_count);
  return rm::kOk;
}

uint32_t ResourceManager::VidHeap(const Caller& caller, Bytes arg) {
  auto* const a = arg.As<rm::VidHeapArg>();
  Client* const client = objects_.FindOwn(a->client, caller.connection);
  if (client == nullptr) return rm::kInvalidClient;
  uint8_t* const raw = arg.data;
  uint32_t handle = Read<uint32_t>(raw + rm::kHeapHandleAt);
  if (a->function == rm::kHeapFree) {
    if (client->Find(handle) == nullptr) return kObjectNotFound;
    client->Free(handle);
    return rm::kOk;
  }
  Object* const parent = client->Find(a->parent);
  if (parent == nullptr || parent->card == nullptr) return kInvalidParent;
  Card* const card = parent->card;
  a->total = card->options().heap_kib * 1024;
  if (a->function == rm::kHeapInfo) {
    a->free = a->total - card->used_bytes();
    Write(raw + rm::kHeapInfoLargestAt, a->free);
    return rm::kOk;
  }
  const bool range = a->function == rm::kHeapAllocRange;
  const bool tiled = a->function == rm::kHeapAllocTiled;
  if (!range && !tiled && a->function != rm::kHeapAllocSize)
    return rm::kNotSupported;
  uint8_t* const size_at =
      raw + (range ? rm::kHeapSizeRangeAt : rm::kHeapSizeAt);
  const auto attr =
      Read<uint32_t>(raw + (tiled ? rm::kHeapAttrTiledAt : rm::kHeapAttrAt));
  const auto size = Read<uint64_t>(size_at);
  if (size == 0 || size > uint64_t{1} << 50) return rm::kInvalidArgument;
  std::optional<Object> object = objects_.Make(*client, a->parent, &handle);
  if (!object) return kInsertDuplicate;
  object->card = card;
  object->cls = rm::kClassMemorySystem;
  if (rm::AttrLocation(attr) == rm::kLocationVideo &&
      (Read<uint32_t>(raw + rm::kHeapFlagsAt) & rm::kMemoryFlagVirtual) == 0) {
    object->cls = rm::kClassMemoryLocal;
    const uint64_t bytes = RoundUp(size, PageBytes(attr));
    if (const uint32_t status = TakeBlock(&*object, card, bytes);
        status != rm::kOk)
      return status;
    Write(size_at, bytes);
  }
  a->free = a->total - card->used_bytes();
  Write(raw + rm::kHeapHandleAt, handle);
  client->Add(*std::move(object));
  return rm::kOk;
}

}  // namespace rondo::sim::driver
