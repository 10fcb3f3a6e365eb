// SPDX-License-Identifier: Apache-2.0
//
// The shells that have threads of their own, without gRPC: this is what the
// thread sanitizer looks at.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "base/event_loop.h"
#include "base/file.h"
#include "base/unix_socket.h"
#include "deviceplugin/directory_watch.h"
#include "deviceplugin/health_watcher.h"
#include "deviceplugin/link_finder.h"
#include "deviceplugin/listener.h"
#include "deviceplugin/test_node.h"
#include "nvml/test_backend.h"

namespace rondo::deviceplugin {
namespace {

using std::chrono::milliseconds;

// Runs the loop on the test's own thread until done, for ten seconds at most.
void RunUntil(EventLoop& loop, const std::function<bool()>& done) {
  const MonotonicTime deadline = RealClock().Now() + std::chrono::seconds(10);
  while (!done() && RealClock().Now() < deadline)
    loop.RunOnce(milliseconds(100));
  EXPECT_TRUE(done());
}

std::vector<Device> Devices(int count) {
  std::vector<Device> devices(count);
  for (int i = 0; i < count; ++i)
    devices[i].uuid = devices[i].gpu_uuid = GpuUuid(i);
  return devices;
}

TEST(Threads, HealthIsReadWhileItChanges) {
  EventLoop loop;
  nvml::FakeBackend backend;
  Health::Options options;
  options.recovery_quiet = milliseconds(1);
  options.probe_interval = milliseconds(1);
  int changes = 0;
  HealthWatcher watcher(backend, RealClock(), XidFilter("", ""), options,
                        [&] { loop.Post([&] { ++changes; }); });
  for (int round = 0; round < 50; ++round) {
    watcher.SetDevices(Devices(1 + round % 3));
    backend.SendXid(GpuUuid(0), 79);
    (void)watcher.UnhealthyReason(GpuUuid(0));
    (void)watcher.counters();
  }
  RunUntil(loop, [&] { return watcher.counters().recoveries > 0; });
  RunUntil(loop, [&] { return changes > 1; });
  backend.SetWait(absl::InternalError("gone"));
  RunUntil(loop, [&] { return watcher.counters().wait_errors > 2; });
}

TEST(Threads, AWatcherCanGoAtAnyMoment) {
  for (int round = 0; round < 3; ++round) {
    nvml::FakeBackend backend;
    HealthWatcher watcher(backend, RealClock(), XidFilter("", ""), {}, [] {});
    if (round > 0) watcher.SetDevices(Devices(2));
    if (round > 1) backend.SetWait(absl::InternalError("gone"));
  }
}

TEST(Threads, LinksOfGpusThatComeLater) {
  EventLoop loop;
  nvml::FakeBackend backend;
  for (int a = 0; a < 4; ++a) {
    for (int b = a + 1; b < 4; ++b)
      backend.SetLink(a, b, {nvml::Ancestor::kSameCpu, a + b});
  }
  int found = 0;
  LinkFinder finder(loop, backend, [&] { ++found; });
  std::vector<nvml::Gpu> gpus;
  for (int i = 0; i < 4; ++i) gpus.push_back(TestGpu(i));
  finder.Want({gpus.begin(), gpus.begin() + 2});
  finder.Want(gpus);
  RunUntil(loop, [&] { return found == 2; });
  EXPECT_EQ(finder.scores()->size(), 6u);
  EXPECT_EQ(finder.scores()->at({GpuUuid(2), GpuUuid(3)}), 520);
  // All known: no third search.
  finder.Want({gpus[1], gpus[3]});
  loop.RunOnce(milliseconds(0));
  EXPECT_EQ(found, 2);
}

TEST(Threads, LinkScoresAreThePeers) {
  using nvml::Ancestor;
  EXPECT_EQ(LinkScore({Ancestor::kCrossCpu, 0}), 10);
  EXPECT_EQ(LinkScore({Ancestor::kSameBoard, 0}), 60);
  EXPECT_EQ(LinkScore({Ancestor::kSingleSwitch, 12}), 1250);
  EXPECT_EQ(LinkScore({Ancestor::kSameCpu, 19}), 1820);
  EXPECT_EQ(LinkScore({Ancestor::kUnknown, 0}), 0);
}

TEST(Threads, AListenerOpenedAnewKeepsItsConnections) {
  const auto dir = TempDir::Create();
  ASSERT_TRUE(dir.ok());
  const std::string path = dir->path() + "/s.sock";
  EventLoop loop;
  std::vector<UniqueFd> accepted;
  std::vector<UniqueFd> clients;
  Listener listener(loop, path, [&](UniqueFd connection) {
    accepted.push_back(std::move(connection));
  });
  EXPECT_FALSE(listener.Present());
  for (size_t round = 1; round <= 3; ++round) {
    ASSERT_TRUE(listener.Open().ok());
    EXPECT_TRUE(listener.Present());
    auto client = ConnectUnix(path);
    ASSERT_TRUE(client.ok());
    clients.push_back(*std::move(client));
    RunUntil(loop, [&] { return accepted.size() == round; });
    unlink(path.c_str());
    EXPECT_FALSE(listener.Present());
  }
  ASSERT_EQ(write(clients[0].get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(read(accepted[0].get(), &byte, 1), 1);
  EXPECT_FALSE(
      Listener(loop, dir->path() + std::string(200, 'x'), {}).Open().ok());
}

TEST(Threads, ADirectoryMadeAnewIsWatchedAgain) {
  const auto dir = TempDir::Create();
  ASSERT_TRUE(dir.ok());
  const std::string watched = dir->path() + "/watched";
  EventLoop loop;
  std::vector<std::string> names;
  DirectoryWatch watch(
      loop, watched, [&](absl::string_view name) { names.emplace_back(name); });
  const auto seen = [&](const std::string& name) {
    return [&names, name] {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
  };
  // It is looked for once a second.
  ASSERT_TRUE(MakeDirectories(watched).ok());
  RunUntil(loop, seen(""));
  ASSERT_TRUE(WriteFileAtomically(watched + "/a", "").ok());
  RunUntil(loop, seen("a"));
  names.clear();
  ASSERT_EQ(rename(watched.c_str(), (watched + ".old").c_str()), 0);
  ASSERT_TRUE(MakeDirectories(watched).ok());
  RunUntil(loop, seen(""));
  ASSERT_TRUE(WriteFileAtomically(watched + "/b", "").ok());
  RunUntil(loop, seen("b"));
}

}  // namespace
}  // namespace rondo::deviceplugin
