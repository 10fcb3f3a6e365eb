// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "deviceplugin/test_node.h"
#include "proto/deviceplugin/v1beta1.pb.h"

namespace rondo::deviceplugin {
namespace {

using ::testing::ElementsAre;

struct IdCase {
  std::string id;
  bool ok;
  std::string uuid;
  uint32_t replica;
  bool is_replica;
};

TEST(DeviceIds, TakenApartAtTheFirstColons) {
  for (const IdCase& row : {
           IdCase{"GPU-a", true, "GPU-a", 0, false},
           IdCase{"GPU-a::0", true, "GPU-a", 0, true},
           IdCase{"GPU-a::16383", true, "GPU-a", 16383, true},
           IdCase{"MIG-GPU-a/1/0::2", true, "MIG-GPU-a/1/0", 2, true},
           IdCase{"", true, "", 0, false},
           IdCase{"GPU-a::", false, "", 0, false},
           IdCase{"GPU-a::01", false, "", 0, false},
           IdCase{"GPU-a::-1", false, "", 0, false},
           IdCase{"GPU-a::1::2", false, "", 0, false},
           IdCase{"GPU-a::4294967296", false, "", 0, false},
       }) {
    const auto parsed = ParseDeviceId(row.id);
    ASSERT_EQ(parsed.has_value(), row.ok) << row.id;
    if (!row.ok) continue;
    EXPECT_EQ(parsed->uuid, row.uuid) << row.id;
    EXPECT_EQ(parsed->replica, row.replica) << row.id;
    EXPECT_EQ(parsed->is_replica, row.is_replica) << row.id;
  }
}

TEST(DeviceIds, SocketNames) {
  EXPECT_EQ(SocketName("nvidia.com/gpu"), "nvidia-gpu.sock");
  EXPECT_EQ(SocketName("nvidia.com/gpu.shared"), "nvidia-gpu.shared.sock");
  EXPECT_EQ(SocketName("nvidia.com/mig-1g.5gb"), "nvidia-mig-1g.5gb.sock");
}

std::vector<std::string> Listed(const View& view) {
  v1beta1::ListAndWatchResponse list;
  const std::string bytes = view.EncodeList();
  EXPECT_EQ(bytes.size(), view.EncodedSize());
  EXPECT_TRUE(list.ParseFromString(bytes));
  // Byte for byte what protobuf itself writes.
  EXPECT_EQ(list.SerializeAsString(), bytes);
  std::vector<std::string> lines;
  for (const v1beta1::Device& device : list.devices()) {
    std::string line = absl::StrCat(device.id(), " ", device.health());
    for (const v1beta1::NUMANode& node : device.topology().nodes())
      absl::StrAppend(&line, " numa", node.id());
    lines.push_back(line);
  }
  return lines;
}

TEST(View, EncodesWhatKubeletReads) {
  EXPECT_THAT(Listed(*TestView({{"A", 2}, {"B", 0}})),
              ElementsAre("A::0 Healthy", "A::1 Healthy", "B Healthy"));
  EXPECT_TRUE(Listed(*TestView({})).empty());
}

TEST(View, HealthAndTopology) {
  Resource resource;
  resource.name = "nvidia.com/gpu";
  for (const char* uuid : {"A", "B"}) {
    Device device;
    device.uuid = uuid;
    device.replicas = 2;
    resource.devices.push_back(device);
  }
  resource.devices[0].numa_node = 0;
  resource.devices[1].numa_node = 300;
  EXPECT_THAT(Listed(MakeView(resource, {true, false}, {})),
              ElementsAre("A::0 Healthy numa0", "A::1 Healthy numa0",
                          "B::0 Unhealthy numa300", "B::1 Unhealthy numa300"));
}

TEST(View, RetiredIdsAreListedUnhealthyAndStayKnown) {
  Resource resource;
  resource.name = "nvidia.com/gpu";
  Device a;
  a.uuid = "A";
  a.replicas = 2;
  resource.devices = {a};
  Device gone = a;
  gone.uuid = "B";
  const View view = MakeView(
      resource, {true},
      {{"A::2", a}, {"A::3", a}, {"A::5", a}, {"A", a}, {"B::0", gone}});
  EXPECT_THAT(Listed(view),
              ElementsAre("A::0 Healthy", "A::1 Healthy", "A Unhealthy",
                          "A::2 Unhealthy", "A::3 Unhealthy", "A::5 Unhealthy",
                          "B::0 Unhealthy"));
  EXPECT_EQ(view.runs().size(), 5u);
  EXPECT_EQ(view.Find(*ParseDeviceId("A::3")), 0);
  EXPECT_EQ(view.Find(*ParseDeviceId("A::4")), -1);
  EXPECT_EQ(view.Find(*ParseDeviceId("A")), 0);
  EXPECT_EQ(view.Find(*ParseDeviceId("B::0")), 1);
  EXPECT_EQ(view.Find(*ParseDeviceId("B")), -1);
  EXPECT_EQ(view.Find(*ParseDeviceId("C")), -1);
}

TEST(View, K8s109304SizeOfALongListIsKnownBeforehand) {
  const auto view = TestView({{GpuUuid(0), 60000}});
  EXPECT_EQ(view->EncodedSize(), view->EncodeList().size());
  EXPECT_LT(view->EncodedSize(), size_t{4} << 20);
  EXPECT_EQ(view->runs().size(), 1u);
}

}  // namespace
}  // namespace rondo::deviceplugin
