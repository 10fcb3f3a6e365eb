// SPDX-License-Identifier: Apache-2.0
//
// The driver behind its sockets: what a descriptor is worth across threads,
// fork and death.
#include "sim/driver/server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file.h"
#include "gtest/gtest.h"
#include "sim/driver/interpose/carry.h"
#include "sim/driver/test_client.h"

namespace rondo::sim::driver {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr std::chrono::seconds kDeadline{20};

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto dir = TempDir::Create("rondo-driver");
    ASSERT_TRUE(dir.ok());
    dir_.emplace(*std::move(dir));
    // All that the carrier wants of a node is this file beside the sockets.
    ASSERT_TRUE(
        WriteFileAtomically(absl::StrCat(dir_->path(), "/rondo-sim.state"), "")
            .ok());
    setenv("RONDO_SIM_STATE", dir_->path().c_str(), 1);
    Server::Options options;
    options.dir = dir_->path();
    options.cards.push_back(
        {.uuid = "GPU-0", .total_kib = 1024 * 1024, .heap_kib = 1000 * 1024});
    options.devices = {"nvidia0"};
    options.on_use = [this](size_t, const auto& use) {
      std::lock_guard lock(mutex_);
      use_ = use;
      changed_.notify_all();
    };
    auto server = Server::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void TearDown() override {
    server_.reset();
    unsetenv("RONDO_SIM_STATE");
  }

  static UniqueFd OpenControl() {
    return UniqueFd(Connect("nvidiactl", /*close_on_exec=*/true));
  }
  static TestClient Opened(int fd) {
    TestClient client([fd](uint32_t nr, void* arg, uint32_t size, void*,
                           uint32_t) {
      return CarryIoctl(fd, rm::MakeRequest(nr, size), arg) == 0 ? 0 : errno;
    });
    client.Open();
    return client;
  }
  // Waits until the processes together hold so much.
  bool WaitForBytes(uint64_t bytes) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&] {
      uint64_t sum = 0;
      for (const auto& [pid, u] : use_) sum += u.bytes;
      return sum == bytes;
    });
  }

  std::optional<TempDir> dir_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint32_t, ProcessUse> use_;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, KnowsItsDescriptors) {
  const UniqueFd control = OpenControl();
  const UniqueFd uvm(Connect("nvidia-uvm", true));
  const UniqueFd device(Connect("nvidia0", false));
  const UniqueFd plain(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(KindOf(control.get()), Kind::kRm);
  EXPECT_EQ(KindOf(uvm.get()), Kind::kUvm);
  EXPECT_EQ(KindOf(device.get()), Kind::kRm);
  EXPECT_EQ(KindOf(plain.get()), Kind::kOther);
  EXPECT_EQ(fcntl(control.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(fcntl(device.get(), F_GETFD), 0);
  EXPECT_EQ(Connect("nvidia7", true), -1);
  EXPECT_EQ(errno, ENXIO);
}

TEST_F(ServerTest, AClosedDescriptorFreesWhatItHeld) {
  UniqueFd fd = OpenControl();
  TestClient client = Opened(fd.get());
  uint64_t bytes = 10 * kMiB;
  uint32_t handle = 0;
  ASSERT_EQ(client.Memory(&bytes, &handle), rm::kOk);
  EXPECT_TRUE(WaitForBytes(10 * kMiB));
  EXPECT_EQ(use_.begin()->first, static_cast<uint32_t>(getpid()));
  fd.Reset();
  EXPECT_TRUE(WaitForBytes(0));
}

TEST_F(ServerTest, AForkedChildKeepsTheMemory) {
  UniqueFd fd = OpenControl();
  TestClient client = Opened(fd.get());
  uint64_t bytes = 10 * kMiB;
  uint32_t handle = 0;
  ASSERT_EQ(client.Memory(&bytes, &handle), rm::kOk);
  const pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  fd.Reset();
  // The driver has seen all that came before once it answers another one.
  const UniqueFd second = OpenControl();
  EXPECT_EQ(Opened(second.get()).FbInfo(rm::kFbHeapFree), 990u * 1024);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(WaitForBytes(0));
}

TEST_F(ServerTest, ThreadsShareADescriptor) {
  const UniqueFd fd = OpenControl();
  TestClient client = Opened(fd.get());
  std::vector<std::thread> threads;
  std::atomic<int> taken{0};
  // 16 x 100 of 2 MiB are more than the card has.
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 100; ++j) {
        TestClient mine = client;
        uint64_t bytes = 2 * kMiB;
        uint32_t handle = 0;
        if (mine.Memory(&bytes, &handle) == rm::kOk) ++taken;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(taken, 500);
  EXPECT_TRUE(WaitForBytes(1000 * kMiB));
}

// The child allocates and frees without end; whatever it was in the middle of,
// nothing of it stays.
TEST_F(ServerTest, KilledAtAnyMomentLeavesNothing) {
  const UniqueFd own = OpenControl();
  TestClient neighbour = Opened(own.get());
  uint64_t kept = 4 * kMiB;
  uint32_t handle = 0;
  ASSERT_EQ(neighbour.Memory(&kept, &handle), rm::kOk);
  for (int round = 0; round < 40; ++round) {
    int counter[2];
    ASSERT_EQ(pipe2(counter, O_CLOEXEC), 0);
    const pid_t child = fork();
    if (child == 0) {
      const UniqueFd fd = OpenControl();
      TestClient client = Opened(fd.get());
      for (uint32_t i = 1;; ++i) {
        uint64_t bytes = 2 * kMiB;
        uint32_t block = 0, group = 0, channel = 0;
        client.Memory(&bytes, &block);
        client.Group(&group, &channel);
        if (i % 3 != 0) client.Free(block);
        if (write(counter[1], "x", 1) != 1) _exit(1);
      }
    }
    // Once it has come so far, it dies at whatever it is doing.
    for (int i = 0; i <= round; ++i) {
      char c;
      ASSERT_EQ(read(counter[0], &c, 1), 1);
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(counter[0]);
    close(counter[1]);
  }
  const MonotonicTime end = RealClock().Now() + kDeadline;
  while (neighbour.FbInfo(rm::kFbHeapFree) != 996u * 1024 &&
         RealClock().Now() < end)
    continue;
  EXPECT_EQ(neighbour.FbInfo(rm::kFbHeapFree), 996u * 1024);
}

TEST_F(ServerTest, MapsWhatTheDescriptorWasGiven) {
  const UniqueFd fd = OpenControl();
  TestClient client = Opened(fd.get());
  uint64_t bytes = 2 * kMiB;
  uint32_t handle = 0;
  ASSERT_EQ(client.Memory(&bytes, &handle), rm::kOk);
  void* views[2];
  for (void*& view : views) {
    const UniqueFd shown = OpenControl();
    EXPECT_EQ(FetchMapping(shown.get()), -1);
    rm::MapMemoryArg arg{};
    arg.client = client.client;
    arg.device = client.device;
    arg.memory = handle;
    arg.length = bytes;
    arg.fd = shown.get();
    ASSERT_EQ(CarryIoctl(fd.get(),
                         rm::MakeRequest(rm::kEscMapMemory, sizeof(arg)), &arg),
              0);
    ASSERT_EQ(arg.status, rm::kOk);
    const UniqueFd memory(FetchMapping(shown.get()));
    view = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                memory.get(), 0);
    ASSERT_NE(view, MAP_FAILED);
  }
  static_cast<char*>(views[0])[12345] = 'x';
  EXPECT_EQ(static_cast<char*>(views[1])[12345], 'x');
  for (void* view : views) munmap(view, bytes);
}

TEST_F(ServerTest, UnwrapsAndReadsTheOlderSizes) {
  const UniqueFd fd = OpenControl();
  TestClient client = Opened(fd.get());
  rm::FbInfo list[2] = {{rm::kFbHeapSize, 0}, {rm::kFbHeapFree, 0}};
  rm::FbInfoParams params{2, 0, reinterpret_cast<uint64_t>(list)};
  rm::ControlArg control{};
  control.client = client.client;
  control.object = client.subdevice;
  control.cmd = rm::kCtrlFbInfo;
  control.params = reinterpret_cast<uint64_t>(&params);
  control.params_size = sizeof(params);
  rm::WrappedArg wrapped{rm::kEscControl, sizeof(control),
                         reinterpret_cast<uint64_t>(&control)};
  ASSERT_EQ(
      CarryIoctl(fd.get(), rm::MakeRequest(rm::kEscWrapped, sizeof(wrapped)),
                 &wrapped),
      0);
  EXPECT_EQ(control.status, rm::kOk);
  EXPECT_EQ(list[0].data, 1000u * 1024);
  EXPECT_EQ(list[1].data, 1000u * 1024);
}

TEST_F(ServerTest, CallsEndWhenTheDriverGoes) {
  const UniqueFd fd = OpenControl();
  TestClient client = Opened(fd.get());
  server_.reset();
  uint64_t bytes = 2 * kMiB;
  uint32_t handle = 0;
  client.Memory(&bytes, &handle);
  EXPECT_EQ(client.error, EIO);
  EXPECT_EQ(Connect("nvidiactl", true), -1);
  EXPECT_EQ(errno, ENXIO);
}

TEST_F(ServerTest, NonsenseHurtsNobody) {
  const UniqueFd fd = OpenControl(), bad = OpenControl();
  TestClient client = Opened(fd.get());
  for (const char* text : {"", "x", "some bytes that are no request at all"})
    send(bad.get(), text, strlen(text), MSG_NOSIGNAL);
  EXPECT_EQ(client.FbInfo(rm::kFbHeapSize), 1000u * 1024);
}

}  // namespace
}  // namespace rondo::sim::driver
