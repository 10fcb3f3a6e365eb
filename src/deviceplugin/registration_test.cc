// SPDX-License-Identifier: Apache-2.0
//
// Kubelet comes, goes, restarts and misbehaves.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "deviceplugin/test_plugin.h"

namespace rondo::deviceplugin {
namespace {

using demo::Admission;
using demo::ResourceCounts;

const std::string kGpu = "nvidia.com/gpu";

class RegistrationTest : public ::testing::Test {
 protected:
  demo::StandInKubelet& kubelet() { return node_.kubelet; }
  bool WaitForRegistrations(int count) {
    return kubelet().WaitFor(kGpu, [count](const ResourceCounts& counts) {
      return counts.registrations >= count && counts.allocatable > 0;
    });
  }
  std::string Socket(const std::string& name = "nvidia-gpu.sock") {
    return node_.options.socket_dir + "/" + name;
  }
  TestPlugin node_;
};

TEST_F(RegistrationTest, KubeletComesLater) {
  ASSERT_TRUE(node_.Apply(SharedPlan(4), TestGpus(1)).ok());
  EXPECT_FALSE(node_.manager().Ready());
  EXPECT_FALSE(node_.Stats(kGpu).registered);
  ASSERT_TRUE(kubelet().Start().ok());
  EXPECT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
}

TEST_F(RegistrationTest, K8s118559RegistersAtOnceAfterAKubeletRestart) {
  ASSERT_TRUE(kubelet().Start().ok());
  ASSERT_TRUE(node_.Apply(SharedPlan(4), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
  ASSERT_EQ(node_.kubelet.Admit("p", {{{kGpu, 1}}}).reason, "");
  for (int restart = 1; restart <= 3; ++restart) {
    kubelet().Stop();
    ASSERT_TRUE(kubelet().Start().ok());
    ASSERT_TRUE(WaitForRegistrations(1 + restart));
    EXPECT_EQ(kubelet().Counts(kGpu).registrations, 1 + restart);
    EXPECT_EQ(kubelet().Counts(kGpu).allocatable, 4);
  }
  EXPECT_EQ(node_.manager().Snapshot().kubelet_restarts, 3u);
  EXPECT_EQ(access(Socket().c_str(), F_OK), 0);
  // What the pod held is still taken.
  for (const char* pod : {"q", "r", "s"})
    EXPECT_EQ(node_.kubelet.Admit(pod, {{{kGpu, 1}}}).reason, "");
  EXPECT_EQ(node_.kubelet.Admit("t", {{{kGpu, 1}}}).phase,
            Admission::Phase::kPending);
}

TEST_F(RegistrationTest, D17AClosedStreamIsNoticedAndReplaced) {
  ASSERT_TRUE(kubelet().Start().ok());
  ASSERT_TRUE(node_.Apply(SharedPlan(4), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
  kubelet().DropPlugins();
  ASSERT_TRUE(WaitForRegistrations(2));
  EXPECT_EQ(kubelet().Counts(kGpu).allocatable, 4);
  // The health event goes to the new stream.
  ASSERT_TRUE(node_.backend.WaitForRegistrations(GpuUuid(0), 1));
  node_.backend.SetProbe(GpuUuid(0), absl::FailedPreconditionError("reset"));
  node_.backend.SendXid(GpuUuid(0), 79);
  EXPECT_TRUE(kubelet().WaitForAllocatable(kGpu, 0));
}

TEST_F(RegistrationTest, OwnSocketRemovedIsMadeAnewWithoutRegistering) {
  ASSERT_TRUE(kubelet().Start().ok());
  ASSERT_TRUE(node_.Apply(SharedPlan(4), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
  ASSERT_EQ(unlink(Socket().c_str()), 0);
  demo::PluginClient client(kGpu, Socket());
  absl::Status status = client.Connect();
  for (int i = 0; i < 10000 && !status.ok(); ++i) {
    node_.OnLoop([] { return 0; });
    status = client.Connect();
  }
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(kubelet().Counts(kGpu).registrations, 1);
  EXPECT_EQ(kubelet().Counts(kGpu).allocatable, 4);
}

TEST_F(RegistrationTest, ASocketThatKubelet137NeverForgetsIsLeftBehind) {
  ASSERT_TRUE(kubelet().Start().ok());
  ASSERT_TRUE(node_.Apply(SharedPlan(4), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
  // A second agent, as in a rolling update gone wrong: refused, it moves to
  // another socket, and the first one's name is spoiled.
  {
    TestPlugin other;
    other.options.socket_dir = node_.options.socket_dir;
    config::Plan plan = SharedPlan(3);
    plan.flags.kubelet_socket = kubelet().socket_path();
    std::unique_ptr<Manager> manager;
    EventLoop loop;
    std::thread thread([&] { loop.Run(); });
    std::promise<absl::Status> applied;
    loop.Post([&] {
      manager = std::make_unique<Manager>(loop, other.backend, other.options);
      applied.set_value(manager->Apply(plan, TestGpus(1)));
    });
    ASSERT_TRUE(applied.get_future().get().ok());
    EXPECT_TRUE(kubelet().WaitForAllocatable(kGpu, 3));
    EXPECT_EQ(manager->Snapshot().resources[0].socket,
              Socket("nvidia-gpu-1.sock"));
    loop.Post([&] {
      manager.reset();
      loop.Stop();
    });
    thread.join();
  }
  // The first agent comes back by the same way.
  kubelet().DropPlugins();
  EXPECT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
}

TEST_F(RegistrationTest, TheFolderItselfIsReplaced) {
  ASSERT_TRUE(kubelet().Start().ok());
  ASSERT_TRUE(node_.Apply(SharedPlan(4), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
  kubelet().Stop();
  const std::string aside = node_.dir() + "/aside";
  ASSERT_EQ(rename(node_.options.socket_dir.c_str(), aside.c_str()), 0);
  ASSERT_TRUE(kubelet().Start().ok());
  EXPECT_TRUE(WaitForRegistrations(2));
}

TEST_F(RegistrationTest, WithoutAKubeletSocketItServesAndDoesNotRegister) {
  ASSERT_TRUE(kubelet().Start().ok());
  EventLoop loop;
  std::thread thread([&] { loop.Run(); });
  std::unique_ptr<Manager> manager;
  std::promise<absl::Status> applied;
  config::Plan plan = SharedPlan(4);
  plan.flags.kubelet_socket = "";
  loop.Post([&] {
    manager = std::make_unique<Manager>(loop, node_.backend, node_.options);
    applied.set_value(manager->Apply(plan, TestGpus(1)));
  });
  ASSERT_TRUE(applied.get_future().get().ok());
  demo::PluginClient client(kGpu, Socket());
  ASSERT_TRUE(client.Connect().ok());
  std::promise<size_t> listed;
  client.Watch(
      [&](std::vector<demo::ListedDevice> list) {
        listed.set_value(list.size());
      },
      [] {});
  EXPECT_EQ(listed.get_future().get(), 4u);
  EXPECT_EQ(kubelet().Counts(kGpu).registrations, 0);
  EXPECT_TRUE(manager->Ready());
  loop.Post([&] {
    manager.reset();
    loop.Stop();
  });
  thread.join();
}

TEST_F(RegistrationTest, TwoStreamsBothGetTheLastList) {
  ASSERT_TRUE(kubelet().Start().ok());
  ASSERT_TRUE(node_.Apply(SharedPlan(4), TestGpus(1)).ok());
  ASSERT_TRUE(kubelet().WaitForAllocatable(kGpu, 4));
  demo::PluginClient second(kGpu, Socket());
  ASSERT_TRUE(second.Connect().ok());
  std::promise<void> saw_last;
  bool done = false;
  second.Watch(
      [&](std::vector<demo::ListedDevice> list) {
        if (list.size() == 50 && !std::exchange(done, true))
          saw_last.set_value();
      },
      [] {});
  for (int replicas = 5; replicas <= 50; ++replicas)
    ASSERT_TRUE(node_.Apply(SharedPlan(replicas), TestGpus(1)).ok());
  EXPECT_TRUE(kubelet().WaitForAllocatable(kGpu, 50));
  EXPECT_EQ(saw_last.get_future().wait_for(std::chrono::seconds(10)),
            std::future_status::ready);
  EXPECT_EQ(kubelet().Counts(kGpu).registrations, 1);
}

}  // namespace
}  // namespace rondo::deviceplugin
