// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/retired.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_join.h"

namespace rondo::deviceplugin {
namespace {

using std::chrono::seconds;

Resource Of(const std::vector<std::pair<std::string, int>>& devices) {
  Resource resource;
  for (const auto& [uuid, replicas] : devices) {
    Device device;
    device.uuid = uuid;
    device.replicas = replicas;
    resource.devices.push_back(device);
  }
  return resource;
}

std::string Ids(const Retired& retired) {
  std::vector<std::string> ids;
  for (const auto& [id, device] : retired.devices()) ids.push_back(id);
  return absl::StrJoin(ids, " ");
}

struct Case {
  std::string name;
  Resource before, after;
  std::string retired;
};

TEST(Retired, WhatAChangeRetires) {
  for (const Case& row : {
           Case{"fewer", Of({{"A", 4}}), Of({{"A", 2}}), "A::2 A::3"},
           Case{"more", Of({{"A", 2}}), Of({{"A", 4}}), ""},
           Case{"same", Of({{"A", 2}, {"B", 0}}), Of({{"A", 2}, {"B", 0}}), ""},
           Case{"share", Of({{"A", 0}}), Of({{"A", 2}}), "A"},
           Case{"unshare", Of({{"A", 2}}), Of({{"A", 0}}), "A::0 A::1"},
           Case{"gone", Of({{"A", 2}, {"B", 0}}), Of({}), "A::0 A::1 B"},
           Case{"new", Of({}), Of({{"A", 2}}), ""},
       }) {
    Retired retired;
    retired.OnChange(row.before, row.after, seconds(0));
    EXPECT_EQ(Ids(retired), row.retired) << row.name;
    // Back again: nothing is retired that is configured.
    retired.OnChange(row.after, row.before, seconds(1));
    for (const auto& [id, device] : retired.devices()) {
      Retired fresh;
      fresh.OnChange(row.after, row.before, seconds(1));
      EXPECT_EQ(fresh.devices().count(id), 1u) << row.name << " " << id;
    }
  }
}

TEST(Retired, GoesWhenTheTimeIsOverAndNobodyHoldsIt) {
  Retired retired;
  retired.OnChange(Of({{"A", 4}}), Of({{"A", 1}}), seconds(0));
  EXPECT_FALSE(retired.Prune({"A::1", "A::2"}, seconds(5), seconds(10)));
  EXPECT_TRUE(retired.Prune({"A::1", "A::2"}, seconds(10), seconds(10)));
  EXPECT_EQ(Ids(retired), "A::1 A::2");
  EXPECT_TRUE(retired.Prune({"A::2"}, seconds(11), seconds(10)));
  EXPECT_TRUE(retired.Prune({}, seconds(12), seconds(10)));
  EXPECT_TRUE(retired.empty());
  EXPECT_FALSE(retired.Prune({}, seconds(13), seconds(10)));
}

TEST(Retired, HeldIdsOfKnownDevicesOnly) {
  const Resource current = Of({{"A", 2}});
  Retired retired;
  retired.AddHeld({"A::1", "A::7", "A", "B::0", "0000:3b:00.1", "A::x"},
                  current, {{"A", current.devices[0]}}, seconds(0));
  EXPECT_EQ(Ids(retired), "A A::7");
}

// Whatever happens: an id is never both configured and retired, and a held id
// that was ever listed is one of the two.
TEST(Retired, NoHeldIdIsEverLost) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    Retired retired;
    Resource current = Of({});
    std::set<std::string> held;
    for (int step = 0; step < 20; ++step) {
      std::vector<std::pair<std::string, int>> devices;
      for (const char* uuid : {"A", "B"}) {
        if (random() % 4 != 0)
          devices.emplace_back(uuid, static_cast<int>(random() % 4));
      }
      const Resource next = Of(devices);
      retired.OnChange(current, next, seconds(step));
      current = next;
      std::set<std::string> listed;
      for (const Device& device : current.devices) {
        if (device.replicas == 0) listed.insert(device.uuid);
        for (int n = 0; n < device.replicas; ++n)
          listed.insert(ReplicaId(device.uuid, n));
      }
      for (const std::string& id : listed)
        EXPECT_EQ(retired.devices().count(id), 0u) << id;
      // Pods come and go.
      for (const std::string& id : listed) {
        if (random() % 3 == 0) held.insert(id);
      }
      if (!held.empty() && random() % 2 == 0) held.erase(held.begin());
      retired.Prune(held, seconds(step), seconds(random() % 3));
      for (const std::string& id : held)
        EXPECT_EQ(listed.count(id) + retired.devices().count(id), 1u) << id;
    }
  }
}

}  // namespace
}  // namespace rondo::deviceplugin
