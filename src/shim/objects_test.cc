// SPDX-License-Identifier: Apache-2.0

#include "shim/objects.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace rondo::shim {
namespace {

Object Make(uint32_t client, uint32_t handle, uint32_t parent,
            ObjectKind kind) {
  Object object;
  object.client = client;
  object.handle = handle;
  object.parent = parent;
  object.kind = kind;
  return object;
}

std::set<uint32_t> Remove(Objects* objects, uint32_t client, uint32_t handle,
                          uint64_t serial = ~uint64_t{0}) {
  std::set<uint32_t> gone;
  objects->RemoveTree(client, handle, serial,
                      [&](const Object& o) { gone.insert(o.handle); });
  return gone;
}

class ObjectsTest : public testing::Test {
 protected:
  void Put(const Object& object) {
    Object replaced;
    ASSERT_TRUE(objects.Put(object, &replaced));
    last_replaced = replaced;
  }
  Objects objects;
  Object last_replaced;
};

TEST_F(ObjectsTest, FreeingTakesAllBelow) {
  Put(Make(1, 1, 0, ObjectKind::kClient));
  Put(Make(1, 10, 1, ObjectKind::kDevice));
  Put(Make(1, 30, 20, ObjectKind::kMemory));  // before its parent
  Put(Make(1, 20, 10, ObjectKind::kSubdevice));
  Put(Make(1, 40, 10, ObjectKind::kGroup));
  Put(Make(1, 41, 40, ObjectKind::kChannel));
  Put(Make(2, 41, 40, ObjectKind::kChannel));  // another client's
  EXPECT_EQ(Remove(&objects, 1, 40), (std::set<uint32_t>{40, 41}));
  EXPECT_EQ(Remove(&objects, 1, 10), (std::set<uint32_t>{10, 20, 30}));
  EXPECT_EQ(objects.size(), 2u);
}

TEST_F(ObjectsTest, AClientTakesWhatHangsFromTheUnknown) {
  Put(Make(1, 1, 0, ObjectKind::kClient));
  Put(Make(1, 30, 4711, ObjectKind::kMemory));
  EXPECT_EQ(Remove(&objects, 1, 1), (std::set<uint32_t>{1, 30}));
}

TEST_F(ObjectsTest, ALateFreeLeavesTheSuccessorAlone) {
  Put(Make(1, 30, 1, ObjectKind::kMemory));
  const uint64_t before = objects.last_serial();
  Put(Make(1, 30, 1, ObjectKind::kMemory));  // the handle is used again
  EXPECT_EQ(last_replaced.kind, ObjectKind::kMemory);
  EXPECT_TRUE(Remove(&objects, 1, 30, before).empty());
  EXPECT_NE(objects.Find(1, 30), nullptr);
}

TEST_F(ObjectsTest, UnknownHandlesAreNoOnes) {
  EXPECT_EQ(objects.Find(1, 1), nullptr);
  EXPECT_TRUE(Remove(&objects, 1, 1).empty());
}

// Against a map, over growth, collisions and removals.
TEST_F(ObjectsTest, AgreesWithAMap) {
  std::mt19937 random(7);
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> model;
  for (int i = 0; i < 60000; ++i) {
    const uint32_t client = 0xc1d00000 + random() % 3;
    const uint32_t handle = 0x5c000000 + random() % 3000;
    if (random() % 5 < 3) {
      Object object = Make(client, handle, 1, ObjectKind::kMemory);
      object.value = random();
      Put(object);
      model[{client, handle}] = object.value;
    } else {
      const bool known = model.erase({client, handle}) != 0;
      ASSERT_EQ(Remove(&objects, client, handle).size(), known ? 1u : 0u);
    }
  }
  EXPECT_EQ(objects.size(), model.size());
  for (const auto& [name, value] : model) {
    const Object* object = objects.Find(name.first, name.second);
    ASSERT_NE(object, nullptr);
    EXPECT_EQ(object->value, value);
  }
}

}  // namespace
}  // namespace rondo::shim
