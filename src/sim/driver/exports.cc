// SPDX-License-Identifier: Apache-2.0
//
// Controls by which video memory outlives its handle and reaches another
// process: exports to a descriptor and imports from it. The descriptor holds
// the memory until its last holder closes it; what only a descriptor holds is
// charged to no process.
#include <cstring>

#include "rm/memory.h"
#include "sim/driver/resource_manager.h"

namespace rondo::sim::driver {

uint32_t ResourceManager::ImportBlock(Call* call, uint32_t parent,
                                      uint32_t* handle, const Exported& from) {
  if (call->client->Find(parent) == nullptr) return kInvalidParent;
  std::optional<Object> object = objects_.Make(*call->client, parent, handle);
  if (!object) return kInsertDuplicate;
  object->cls = rm::kClassMemoryLocal;
  object->card = from.block->card;
  object->block = from.block;
  object->tag = from.tag;
  object->block->Hold(object->pid);
  call->client->Add(*std::move(object));
  return rm::kOk;
}

uint32_t ResourceManager::ExportOne(Call* call) {
  const auto* const p = call->params.As<rm::ExportToFdParams>();
  Object* const object = call->client->Find(p->object);
  if (object == nullptr || object->block == nullptr) return rm::kInvalidObject;
  if (call->other == 0) return rm::kInvalidArgument;
  auto& exported = descriptors_[call->other].exported;
  if (!exported.empty()) return rm::kInvalidArgument;
  exported.push_back({object->block, object->tag});
  return rm::kOk;
}

uint32_t ResourceManager::ImportOne(Call* call) {
  auto* const p = call->params.As<rm::ImportFromFdParams>();
  const auto at = descriptors_.find(call->other);
  if (at == descriptors_.end() || at->second.exported.empty())
    return rm::kInvalidArgument;
  return ImportBlock(call, p->parent, &p->object, at->second.exported[0]);
}

uint32_t ResourceManager::ExportMany(Call* call) {
  const auto* const p = call->params.As<rm::ExportManyToFdParams>();
  constexpr uint32_t kMax = std::size(decltype(p->objects){});
  if (call->other == 0 || p->index + p->count > kMax || p->max_objects > kMax ||
      p->index + p->count > p->max_objects)
    return rm::kInvalidArgument;
  auto& exported = descriptors_[call->other].exported;
  exported.resize(p->max_objects);
  for (uint32_t i = 0; i < p->count; ++i) {
    if (p->objects[i] == 0) continue;
    Object* const object = call->client->Find(p->objects[i]);
    if (object == nullptr || object->block == nullptr)
      return rm::kInvalidObject;
    exported[p->index + i] = {object->block, object->tag};
  }
  return rm::kOk;
}

uint32_t ResourceManager::ImportMany(Call* call) {
  auto* const p = call->params.As<rm::ImportManyFromFdParams>();
  const auto at = descriptors_.find(call->other);
  if (at == descriptors_.end() || p->count > std::size(p->objects) ||
      p->index + p->count > at->second.exported.size())
    return rm::kInvalidArgument;
  for (uint32_t i = 0; i < p->count; ++i) {
    const Exported& from = at->second.exported[p->index + i];
    if (from.block == nullptr) continue;
    const uint32_t status = ImportBlock(call, p->parent, &p->objects[i], from);
    if (status != rm::kOk) return status;
  }
  return rm::kOk;
}

uint32_t ResourceManager::ExportMemory(Call* call) {
  const auto* const p = call->params.As<rm::ExportMemParams>();
  if (p->index + p->count > std::size(p->handles)) return rm::kInvalidArgument;
  for (uint32_t i = 0; i < p->count; ++i) {
    Object* const object = call->client->Find(p->handles[i]);
    if (object == nullptr || object->block == nullptr)
      return rm::kInvalidObject;
    call->object->exported.push_back({object->block, object->tag});
  }
  return rm::kOk;
}

}  // namespace rondo::sim::driver
