// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/resource_manager.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/numbers.h"
#include "rm/control.h"
#include "rm/memory.h"

namespace rondo::sim::driver {
ResourceManager::ResourceManager(std::vector<Card*> cards,
                                 std::string driver_version,
                                 std::shared_ptr<SharedMemory> doorbell,
                                 std::set<uint32_t> lacks)
    : cards_(std::move(cards)),
      version_(std::move(driver_version)),
      lacks_(std::move(lacks)),
      doorbell_(std::move(doorbell)) {
  if (!absl::SimpleAtoi(version_.substr(0, version_.find('.')), &major_))
    major_ = 0;
}

Answer ResourceManager::Escape(const Caller& caller, uint32_t nr, Bytes arg,
                               Bytes params, uint64_t other) {
  Answer answer;
  // The kernel demands each escape's exact size.
  answer.error = EINVAL;
  switch (nr) {
    case rm::kEscAlloc: {
      auto* const wide = arg.As<rm::AllocArg>();
      auto* const narrow = arg.As<rm::AllocArg32>();
      if (wide == nullptr && narrow == nullptr) return answer;
      AllocCall call = Read<AllocCall>(arg.data);
      const uint32_t status = Alloc(caller, &call, params);
      Write(arg.data, call);
      (wide != nullptr ? wide->status : narrow->status) = status;
      break;
    }
    case rm::kEscControl: {
      auto* const a = arg.As<rm::ControlArg>();
      if (a == nullptr) return answer;
      a->status = RunControl(caller, *a, params, other, &answer.delay_ns);
      break;
    }
    case rm::kEscFree: {
      auto* const a = arg.As<rm::FreeArg>();
      if (a == nullptr) return answer;
      a->status = Free(caller, *a);
      break;
    }
    case rm::kEscDup: {
      auto* const a = arg.As<rm::DupArg>();
      if (a == nullptr) return answer;
      a->status = Dup(caller, a);
      break;
    }
    case rm::kEscMapMemory: {
      auto* const a = arg.As<rm::MapMemoryArg>();
      if (a == nullptr) return answer;
      a->status = Map(caller, *a, other);
      break;
    }
    case rm::kEscUnmapMemory: {
      auto* const a = arg.As<rm::UnmapMemoryArg>();
      if (a == nullptr) return answer;
      a->status = objects_.FindOwn(a->client, caller.connection) != nullptr
                      ? rm::kOk
                      : rm::kInvalidClient;
      break;
    }
    case rm::kEscVidHeap: {
      auto* const a = arg.As<rm::VidHeapArg>();
      if (a == nullptr) return answer;
      a->status = VidHeap(caller, arg);
      break;
    }
    case rm::kEscAllocMemory: {
      auto* const a = arg.As<rm::AllocMemoryArg>();
      if (a == nullptr) return answer;
      Client* const client = objects_.FindOwn(a->client, caller.connection);
      Object* const parent = client ? client->Find(a->parent) : nullptr;
      a->status = client == nullptr ? rm::kInvalidClient
                  : parent == nullptr || parent->card == nullptr
                      ? kInvalidParent
                  : a->cls != rm::kClassMemoryLocal ? kInvalidClass
                                                    : rm::kOk;
      if (a->status == rm::kOk)
        a->limit = parent->card->options().heap_kib * 1024 - 1;
      break;
    }
    case rm::kEscRegisterFd:
      if (arg.size != sizeof(int)) return answer;
      break;
    case rm::kEscCheckVersion: {
      auto* const a = arg.As<rm::VersionArg>();
      if (a == nullptr) return answer;
      a->reply = strncmp(a->version, version_.c_str(), sizeof(a->version)) == 0;
      memset(a->version, 0, sizeof(a->version));
      version_.copy(a->version, sizeof(a->version) - 1);
      break;
    }
    default:
      return answer;
  }
  answer.error = 0;
  return answer;
}

std::shared_ptr<SharedMemory> ResourceManager::Mapping(
    uint64_t connection) const {
  const auto at = descriptors_.find(connection);
  return at == descriptors_.end() ? nullptr : at->second.mapping;
}

void ResourceManager::CloseConnection(uint64_t connection) {
  objects_.CloseConnection(connection);
  descriptors_.erase(connection);
}

uint32_t ResourceManager::Free(const Caller& caller, const rm::FreeArg& arg) {
  Client* const client = objects_.FindOwn(arg.client, caller.connection);
  if (client == nullptr) return rm::kInvalidClient;
  if (arg.object == arg.client) {
    objects_.FreeClient(arg.client);
    return rm::kOk;
  }
  if (client->Find(arg.object) == nullptr) return kObjectNotFound;
  client->Free(arg.object);
  return rm::kOk;
}

// By default only the same process may dup another client's object.
uint32_t ResourceManager::Dup(const Caller& caller, rm::DupArg* arg) {
  Client* const client = objects_.FindOwn(arg->client, caller.connection);
  Client* const source = objects_.Find(arg->client_src);
  if (client == nullptr || source == nullptr) return rm::kInvalidClient;
  Object* const from = source->Find(arg->object_src);
  if (from == nullptr) return kObjectNotFound;
  if (source->pid != client->pid) return kInsufficientPermissions;
  Object* const parent = client->Find(arg->parent);
  if (parent == nullptr) return kInvalidParent;
  if (from->channel >= 0 || (from->block == nullptr && from->group == nullptr))
    return rm::kNotSupported;
  std::optional<Object> object =
      objects_.Make(*client, arg->parent, &arg->object);
  if (!object) return kInsertDuplicate;
  object->cls = from->cls;
  object->card = from->card;
  object->block = from->block;
  object->tag = from->tag;
  object->group = from->group;
  object->memory = from->memory;
  if (object->block != nullptr) object->block->Hold(object->pid);
  client->Add(*std::move(object));
  return rm::kOk;
}

uint32_t ResourceManager::Map(const Caller& caller, const rm::MapMemoryArg& arg,
                              uint64_t descriptor) {
  Client* const client = objects_.FindOwn(arg.client, caller.connection);
  if (client == nullptr) return rm::kInvalidClient;
  Object* const object = client->Find(arg.memory);
  if (object == nullptr) return kObjectNotFound;
  std::shared_ptr<SharedMemory> memory = object->memory;
  if (object->block != nullptr) {
    if (object->block->memory == nullptr)
      object->block->memory = SharedMemory::Create(object->block->bytes);
    memory = object->block->memory;
  }
  if (memory == nullptr) return rm::kNotSupported;
  constexpr uint32_t kAccess = 3;
  if (object->read_only && (arg.flags & kAccess) != rm::kMapReadOnly)
    return rm::kInvalidArgument;
  if (descriptor == 0 || arg.offset != 0 || arg.length > memory->size())
    return rm::kInvalidArgument;
  descriptors_[descriptor].mapping = std::move(memory);
  return rm::kOk;
}

}  // namespace rondo::sim::driver
