// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace rondo::deviceplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Shapes as kubelet 1.37 writes them; the AllocResp bytes are cut short.
constexpr char kTwoPods[] = R"({"Data":{"PodDeviceEntries":[
  {"PodUID":"p1","ContainerName":"c","ResourceName":"nvidia.com/gpu",
   "DeviceIDs":{"0":["GPU-a::0"],"1":["GPU-b::3"]},"AllocResp":"Cg=="},
  {"PodUID":"p2","ContainerName":"c","ResourceName":"nvidia.com/gpu",
   "DeviceIDs":{"-1":["GPU-a::1"]},"AllocResp":""},
  {"PodUID":"p2","ContainerName":"d","ResourceName":"example.com/nic",
   "DeviceIDs":{"-1":["eth1"]},"AllocResp":null}],
 "RegisteredDevices":{"nvidia.com/gpu":["GPU-a::0"]}},"Checksum":12345})";

TEST(Checkpoint, DevicesByResource) {
  const auto held = ParseCheckpoint(kTwoPods);
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_THAT(
      *held,
      ElementsAre(Pair("example.com/nic", ElementsAre("eth1")),
                  Pair("nvidia.com/gpu",
                       ElementsAre("GPU-a::0", "GPU-a::1", "GPU-b::3"))));
}

TEST(Checkpoint, EntriesNameTheContainer) {
  const auto entries = ParseCheckpointEntries(
      R"({"Data":{"PodDeviceEntries":[
          {"PodUID":"u","ContainerName":"init","ResourceName":"r",
           "DeviceIDs":{"0":["a"],"1":["b"]}},
          {"PodUID":1,"ResourceName":"r","DeviceIDs":["c"]}]}})");
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_THAT(*entries,
              ElementsAre(CheckpointEntry{"u", "init", "r", {"a", "b"}},
                          CheckpointEntry{"", "", "r", {"c"}}));
}

TEST(Checkpoint, NobodyHoldsAnything) {
  for (
      const char* text :
      {R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1})",
       R"({"Data":{"PodDeviceEntries":[]}})", R"({"Data":{}})"}) {
    const auto held = ParseCheckpoint(text);
    ASSERT_TRUE(held.ok()) << text;
    EXPECT_THAT(*held, IsEmpty()) << text;
  }
}

TEST(Checkpoint, ListOfIdsBefore120) {
  const auto held = ParseCheckpoint(
      R"({"Data":{"PodDeviceEntries":[{"ResourceName":"r",
          "DeviceIDs":["a","b"]}]}})");
  ASSERT_TRUE(held.ok());
  EXPECT_THAT(*held, ElementsAre(Pair("r", ElementsAre("a", "b"))));
}

TEST(Checkpoint, AnythingElseIsAnErrorNotAnEmptyAnswer) {
  for (
      const char* text :
      {"", "{", "[]", "null", R"({"Data":3})",
       R"({"Data":{"PodDeviceEntries":{}}})",
       R"({"Data":{"PodDeviceEntries":[1]}})",
       R"({"Data":{"PodDeviceEntries":[{"ResourceName":"r"}]}})",
       R"({"Data":{"PodDeviceEntries":[{"ResourceName":1,"DeviceIDs":[]}]}})",
       R"({"Data":{"PodDeviceEntries":[{"ResourceName":"r","DeviceIDs":{"0":[1]}}]}})",
       R"({"Data":{"PodDeviceEntries":[{"ResourceName":"r","DeviceIDs":{"0":"a"}}]}})"})
    EXPECT_EQ(ParseCheckpoint(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
}

TEST(Checkpoint, NoFileMeansNobody) {
  const auto dir = TempDir::Create();
  ASSERT_TRUE(dir.ok());
  const auto none = ReadCheckpoint(dir->path());
  ASSERT_TRUE(none.ok());
  EXPECT_THAT(*none, IsEmpty());
  ASSERT_TRUE(WriteFileAtomically(dir->path() + "/kubelet_internal_checkpoint",
                                  kTwoPods)
                  .ok());
  EXPECT_EQ(ReadCheckpoint(dir->path())->size(), 2u);
}

}  // namespace
}  // namespace rondo::deviceplugin
