// SPDX-License-Identifier: Apache-2.0
#include "rm/client.h"

#include "gtest/gtest.h"
#include "rm/gpu.h"
#include "rm/test_driver.h"

namespace rondo::rm {
namespace {

TEST(Client, OpensAndListsGpus) {
  TestDriver driver;
  driver.uuids = {"GPU-a", "GPU-b"};
  const auto client = Client::Open(driver);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->driver_version(), "580.159.04");
  const auto gpus = ListGpus(**client);
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  ASSERT_EQ(gpus->size(), 2u);
  EXPECT_EQ((*gpus)[0].uuid, "GPU-a");
  EXPECT_EQ((*gpus)[1].uuid, "GPU-b");
  EXPECT_NE((*gpus)[0].subdevice, (*gpus)[1].subdevice);
  EXPECT_EQ(FindGpu(**client, "GPU-b")->uuid, "GPU-b");
  EXPECT_TRUE(absl::IsNotFound(FindGpu(**client, "MIG-a").status()));
}

TEST(Client, NoDriverIsNotFound) {
  TestDriver driver;
  driver.absent = true;
  EXPECT_TRUE(absl::IsNotFound(Client::Open(driver).status()));
}

TEST(Client, AnOldDriverIsRefused) {
  TestDriver driver;
  for (const char* version : {"525.147.05", "", "nonsense"}) {
    driver.version = version;
    EXPECT_TRUE(absl::IsUnimplemented(Client::Open(driver).status()))
        << version;
  }
}

TEST(Client, NoGpuAttachedIsAnError) {
  TestDriver driver;
  driver.uuids = {};
  const auto client = Client::Open(driver);
  ASSERT_TRUE(client.ok());
  EXPECT_FALSE(ListGpus(**client).ok());
}

TEST(Gpu, SwitchesUpTo64ChannelsInOneCall) {
  TestDriver driver;
  const auto client = Client::Open(driver);
  ASSERT_TRUE(client.ok());
  const Gpu gpu = *FindGpu(**client, "GPU-0");
  std::vector<Channel> channels;
  for (uint32_t i = 0; i < 64; ++i) channels.push_back({0xc1, i});
  ASSERT_TRUE(SwitchChannels(**client, gpu, true, channels).ok());
  ASSERT_TRUE(SwitchChannels(**client, gpu, true, {}).ok());
  EXPECT_EQ(driver.switch_counts, (std::vector<uint32_t>{64}));
  EXPECT_TRUE(driver.IsSuspended(0xc1, 0));
  EXPECT_TRUE(driver.IsSuspended(0xc1, 63));
  driver.on_switch = [](const DisableChannelsParams&) {
    return kInvalidObject;
  };
  EXPECT_TRUE(absl::IsNotFound(SwitchChannels(**client, gpu, false, channels)));
  channels.push_back({0xc1, 64});
  EXPECT_TRUE(
      absl::IsInvalidArgument(SwitchChannels(**client, gpu, false, channels)));
}

TEST(Gpu, TellsBytesOfMoreThan200Pids) {
  TestDriver driver;
  const auto client = Client::Open(driver);
  ASSERT_TRUE(client.ok());
  const Gpu gpu = ListGpus(**client)->front();
  std::vector<uint32_t> pids;
  for (uint32_t pid = 1; pid <= 250; ++pid) {
    pids.push_back(pid);
    driver.pid_bytes[pid] = pid << 20;
  }
  const auto bytes = PidBytes(**client, gpu, pids);
  ASSERT_TRUE(bytes.ok());
  ASSERT_EQ(bytes->size(), 250u);
  EXPECT_EQ(bytes->at(1), 1u << 20);
  EXPECT_EQ(bytes->at(250), 250u << 20);
}

}  // namespace
}  // namespace rondo::rm
