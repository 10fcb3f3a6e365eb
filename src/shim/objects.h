// SPDX-License-Identifier: Apache-2.0
//
// What the process made through the driver, as far as it matters here: clients,
// devices, channel groups, memory ... by (client, handle). Freeing an object
// frees all below it. Under the shim's lock; memory of its own, no heap.
//
// Every object has a serial number. A free is looked up before the driver call
// and done after it; in between another thread may make a new object of the
// same handle, so a removal takes only what is not newer than the free.

#ifndef RONDO_SHIM_OBJECTS_H_
#define RONDO_SHIM_OBJECTS_H_

#include <cstdint>

#include "shim/driver_call.h"
#include "shim/mapped_array.h"

namespace rondo::shim {

struct Object {
  uint32_t client = 0, handle = 0, parent = 0;
  ObjectKind kind = ObjectKind::kNone;
  uint8_t gpu = 0;       // index into Gpus; 0 = not known
  bool off = false;      // a channel that the program itself suspended
  bool ours = false;     // a group that runs on a slice of ours
  bool compute = false;  // a group of the compute engine
  bool alone = false;    // ... the only one when it was last given a slice
  bool doomed = false;
  int32_t fd = -1;     // the descriptor that made it: only that one commands it
  uint32_t value = 0;  // memory: its block; group: its slice without us, in us
  uint64_t serial = 0;
};

class Objects {
 public:
  // Sets the serial. An object of the same name is replaced and comes back in
  // *replaced (kind kNone otherwise): its free has been seen late. False where
  // memory for the table is missing.
  bool Put(Object object, Object* replaced);

  Object* Find(uint32_t client, uint32_t handle);
  uint64_t last_serial() const { return serial_; }

  // Takes out (client, handle) and all below it, if not newer than `serial`;
  // gone(object) for each.
  template <typename F>
  void RemoveTree(uint32_t client, uint32_t handle, uint64_t serial, F gone) {
    if (!MarkTree(client, handle, serial)) return;
    for (size_t i = objects_.size(); i-- > 0;) {
      if (!objects_[i].doomed) continue;
      const Object object = objects_[i];
      RemoveAt(i);
      gone(object);
    }
  }

  // f must neither add nor remove.
  template <typename F>
  void ForEach(ObjectKind kind, F f) {
    for (Object& object : objects_) {
      if (object.kind == kind) f(object);
    }
  }
  size_t size() const { return objects_.size(); }

  void Forget();  // after fork

 private:
  bool MarkTree(uint32_t client, uint32_t handle, uint64_t serial);
  void RemoveAt(size_t position);
  bool Reindex(size_t buckets);
  uint32_t* Bucket(uint32_t client, uint32_t handle);

  MappedArray<Object> objects_;
  uint32_t* index_ = nullptr;  // position + 1 by hash, 0 = empty
  size_t buckets_ = 0;         // a power of two, at least twice the objects
  uint64_t serial_ = 0;
};

}  // namespace rondo::shim

#endif  // RONDO_SHIM_OBJECTS_H_
