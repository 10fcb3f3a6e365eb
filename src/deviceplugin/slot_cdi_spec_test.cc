// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/slot_cdi_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"

namespace rondo::deviceplugin {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

TEST(SlotCdiSpec, HasADeviceForEachSlotAndTheLibraryForAll) {
  const json spec = json::parse(SlotCdiSpec("/run/rondo", {"A::0", "B::12"}));
  EXPECT_EQ(spec["kind"], "rondo/slot");
  EXPECT_EQ(spec["containerEdits"], json::parse(R"({
      "env":["LD_PRELOAD=/usr/local/rondo/librondo.so"],
      "mounts":[{"hostPath":"/run/rondo/lib","containerPath":"/usr/local/rondo",
                 "options":["ro","nosuid","nodev","rbind","rprivate"]}]})"));
  ASSERT_EQ(spec["devices"].size(), 2u);
  EXPECT_EQ(spec["devices"][1], json::parse(R"({"name":"B::12",
      "containerEdits":{"mounts":[{"hostPath":"/run/rondo/B-12",
          "containerPath":"/run/rondo/B-12",
          "options":["ro","nosuid","nodev","rbind","rprivate"]}]}})"));
}

class KeepSlotCdiSpecTest : public ::testing::Test {
 protected:
  KeepSlotCdiSpecTest() {
    options_.cdi_dir = dir_.path() + "/cdi";
    options_.slot_dir = "/s";
    options_.held_devices = [this]() -> absl::StatusOr<HeldDevices> {
      return held_;
    };
  }
  static Inventory Offered(const std::string& uuid, int replicas) {
    Resource resource;
    resource.name = "nvidia.com/gpu";
    resource.devices.emplace_back();
    resource.devices.back().uuid = uuid;
    resource.devices.back().replicas = replicas;
    Inventory inventory;
    inventory.resources.push_back(resource);
    return inventory;
  }
  // Names of the devices of the spec on disk.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    const auto text = ReadFile(options_.cdi_dir + "/rondo-slot.json");
    if (!text.ok()) return {"(no file)"};
    const json spec = json::parse(*text);
    for (const json& device : spec["devices"]) names.push_back(device["name"]);
    return names;
  }

  TempDir dir_ = *TempDir::Create();
  ManagerOptions options_;
  HeldDevices held_;
};

TEST_F(KeepSlotCdiSpecTest, KeepsWhatPodsMayHaveBeenGiven) {
  const auto keep = [&](config::Injection injection, const Inventory& inventory,
                        const std::vector<SlotGroup>& groups) {
    EXPECT_TRUE(KeepSlotCdiSpec(options_, injection, inventory, groups).ok());
  };
  keep(config::Injection::kEnv, Offered("A", 2), {});
  EXPECT_THAT(Names(), ElementsAre("(no file)"));
  keep(config::Injection::kCdi, Inventory(), {});
  EXPECT_THAT(Names(), ElementsAre("(no file)"));
  keep(config::Injection::kCdi, Offered("A", 2), {});
  EXPECT_THAT(Names(), ElementsAre("A::0", "A::1"));
  // Another way in, fewer slots: those that are on the list or held stay.
  held_["nvidia.com/gpu"] = {"B::7", "B", "C::x"};
  keep(config::Injection::kNone, Offered("A", 0), {{"A", {}, 0, {1}}});
  EXPECT_THAT(Names(), ElementsAre("A::1", "B::7"));
  held_.clear();
  keep(config::Injection::kNone, Inventory(), {});
  EXPECT_THAT(Names(), ElementsAre("A::1", "B::7")) << "no devices, no spec";
}

TEST_F(KeepSlotCdiSpecTest, NeedsAFolderOfSlots) {
  options_.slot_dir.clear();
  EXPECT_TRUE(
      KeepSlotCdiSpec(options_, config::Injection::kCdi, Offered("A", 2), {})
          .ok());
  EXPECT_THAT(Names(), ElementsAre("(no file)"));
}

}  // namespace
}  // namespace rondo::deviceplugin
