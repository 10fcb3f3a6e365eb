// SPDX-License-Identifier: Apache-2.0

#include "shim/objects.h"

namespace rondo::shim {
namespace {

size_t Hash(uint32_t client, uint32_t handle) {
  uint64_t x = uint64_t{client} << 32 | handle;
  x *= 0x9e3779b97f4a7c15u;
  return x >> 32;
}

}  // namespace

// The bucket that holds the name, or the empty one where it belongs.
uint32_t* Objects::Bucket(uint32_t client, uint32_t handle) {
  for (size_t i = Hash(client, handle);; ++i) {
    uint32_t* bucket = &index_[i & (buckets_ - 1)];
    if (*bucket == 0) return bucket;
    const Object& object = objects_[*bucket - 1];
    if (object.client == client && object.handle == handle) return bucket;
  }
}

bool Objects::Reindex(size_t buckets) {
  auto* index = static_cast<uint32_t*>(sys::Map(buckets * sizeof(uint32_t)));
  if (index == nullptr) return false;
  if (index_ != nullptr) sys::Unmap(index_, buckets_ * sizeof(uint32_t));
  index_ = index;
  buckets_ = buckets;
  for (uint32_t i = 0; i < objects_.size(); ++i) {
    *Bucket(objects_[i].client, objects_[i].handle) = i + 1;
  }
  return true;
}

bool Objects::Put(Object object, Object* replaced) {
  *replaced = {};
  if ((objects_.size() + 1) * 2 > buckets_ &&
      !Reindex(buckets_ == 0 ? 1024 : buckets_ * 2)) {
    return false;
  }
  object.serial = ++serial_;
  uint32_t* bucket = Bucket(object.client, object.handle);
  if (*bucket != 0) {
    *replaced = objects_[*bucket - 1];
    objects_[*bucket - 1] = object;
    return true;
  }
  if (!objects_.Push(object)) return false;
  *bucket = static_cast<uint32_t>(objects_.size());
  return true;
}

Object* Objects::Find(uint32_t client, uint32_t handle) {
  if (buckets_ == 0) return nullptr;
  const uint32_t* bucket = Bucket(client, handle);
  return *bucket == 0 ? nullptr : &objects_[*bucket - 1];
}

bool Objects::MarkTree(uint32_t client, uint32_t handle, uint64_t serial) {
  Object* root = Find(client, handle);
  if (root == nullptr || root->serial > serial) return false;
  root->doomed = true;
  if (root->kind == ObjectKind::kMemory || root->kind == ObjectKind::kChannel) {
    return true;
  }
  // Whole clients go whatever lies between. Elsewhere a pass a level: objects
  // stand in any order, trees are four levels deep.
  const bool whole = root->kind == ObjectKind::kClient;
  for (bool more = true; more;) {
    more = false;
    for (Object& object : objects_) {
      if (object.doomed || object.client != client || object.serial > serial) {
        continue;
      }
      if (!whole) {
        const Object* parent = Find(client, object.parent);
        if (parent == nullptr || !parent->doomed) continue;
      }
      object.doomed = true;
      more = !whole;
    }
  }
  return true;
}

void Objects::RemoveAt(size_t position) {
  // Close the gap in the probe sequence behind the removed name.
  size_t hole = static_cast<size_t>(
      Bucket(objects_[position].client, objects_[position].handle) - index_);
  index_[hole] = 0;
  for (size_t i = hole + 1; index_[i & (buckets_ - 1)] != 0; ++i) {
    const size_t at = i & (buckets_ - 1);
    const Object& object = objects_[index_[at] - 1];
    const size_t home = Hash(object.client, object.handle) & (buckets_ - 1);
    if (((at - home) & (buckets_ - 1)) >= ((at - hole) & (buckets_ - 1))) {
      index_[hole] = index_[at];
      index_[at] = 0;
      hole = at;
    }
  }
  const size_t last = objects_.size() - 1;
  if (position != last) {
    *Bucket(objects_[last].client, objects_[last].handle) =
        static_cast<uint32_t>(position + 1);
  }
  objects_.RemoveAt(position);
}

void Objects::Forget() {
  objects_.Forget();
  index_ = nullptr;
  buckets_ = 0;
}

}  // namespace rondo::shim
