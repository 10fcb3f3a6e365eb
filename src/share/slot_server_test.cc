// SPDX-License-Identifier: Apache-2.0
#include "share/slot_server.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <functional>
#include <latch>
#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "gtest/gtest.h"
#include "share/test_shim.h"

namespace rondo::share {
namespace {

using std::chrono::milliseconds;

class Seen : public SlotServer::Observer {
 public:
  void OnAttached(ProcessId p) override { attached.push_back(p); }
  void OnChannels(ProcessId) override { ++channels; }
  void OnApplied(ProcessId, const wire::Applied& a) override {
    const MonotonicTime until = RealClock().Now() + applied_takes;
    while (RealClock().Now() < until) continue;
    applied.push_back(a);
  }
  void OnDetached(ProcessId p) override { detached.push_back(p); }

  std::vector<ProcessId> attached, detached;
  std::vector<wire::Applied> applied;
  MonotonicTime applied_takes{};
  int channels = 0;
};

SlotPolicy Enforce(uint64_t limit) {
  return {.memory = wire::Memory::kEnforce, .limit_bytes = limit};
}

class SlotServerTest : public testing::Test {
 protected:
  SlotServerTest() : dir_(*TempDir::Create()) { Start(milliseconds(0)); }

  void Start(milliseconds window) {
    server_ = std::make_unique<SlotServer>(loop_, dir_.path(), &seen_, window);
    ASSERT_TRUE(server_->AddSlot("G::0", "G-0", Enforce(1000)).ok());
    ASSERT_TRUE(server_->AddSlot("G::1", "G-1", Enforce(1000)).ok());
  }
  std::string Path(int slot) {
    return dir_.path() + "/G-" + std::to_string(slot) + "/agent.sock";
  }
  // A shim that said hello.
  std::unique_ptr<TestShim> Attach(int slot = 0) {
    auto shim = std::make_unique<TestShim>(&loop_);
    EXPECT_TRUE(shim->Connect(Path(slot)));
    EXPECT_TRUE(shim->Hello().has_value());
    return shim;
  }
  const Ledger& ledger(int slot = 0) {
    return *server_->ledger("G::" + std::to_string(slot));
  }

  TempDir dir_;
  EventLoop loop_;
  Seen seen_;
  std::unique_ptr<SlotServer> server_;
};

TEST_F(SlotServerTest, WelcomesWithThePolicy) {
  TestShim shim(&loop_);
  ASSERT_TRUE(shim.Connect(Path(0)));
  const auto welcome = shim.Hello();
  ASSERT_TRUE(welcome.has_value());
  EXPECT_EQ(welcome->version, wire::kVersion);
  EXPECT_EQ(welcome->policy.limit, 1000u);
  EXPECT_EQ(welcome->policy.memory, wire::Memory::kEnforce);
  ASSERT_EQ(seen_.attached.size(), 1u);
  EXPECT_EQ(server_->process(seen_.attached[0])->pid, getpid());
  EXPECT_EQ(server_->process(seen_.attached[0])->driver_version, "580.159.04");
}

TEST_F(SlotServerTest, AnyUidMayConnect) {
  struct stat info;
  ASSERT_EQ(stat(Path(0).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666u);
  ASSERT_EQ(stat((dir_.path() + "/G-0").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0005, 0005u);
}

TEST_F(SlotServerTest, GrantsDeniesAndTellsWhatIsUsed) {
  const auto a = Attach(), b = Attach();
  EXPECT_TRUE(a->Reserve(1, 700));
  EXPECT_EQ(a->answer->used, 700u);
  EXPECT_EQ(a->answer->limit, 1000u);
  EXPECT_FALSE(b->Reserve(1, 301));
  EXPECT_EQ(b->answer->used, 700u);
  EXPECT_TRUE(b->Reserve(1, 300));
  EXPECT_TRUE(a->Release(1));
  EXPECT_TRUE(a->View()) << "messages of one connection keep their order";
  EXPECT_TRUE(b->Reserve(2, 700));
  EXPECT_EQ(b->View()->used, 1000u);
  EXPECT_EQ(ledger(1).charged_bytes(), 0u) << "slots are apart";
}

TEST_F(SlotServerTest, AClosedSocketGivesBackAll) {
  auto shim = Attach();
  EXPECT_TRUE(shim->Reserve(1, 400));
  EXPECT_TRUE(shim->Reserve(2, 400, wire::Kind::kManaged));
  shim->Close();
  EXPECT_TRUE(RunUntil(loop_, [&] { return ledger().charged_bytes() == 0; }));
  EXPECT_EQ(seen_.detached, seen_.attached);
}

TEST_F(SlotServerTest, AKilledProcessGivesBackAll) {
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    TestShim shim;
    const bool ok =
        shim.Connect(Path(0)) && shim.Hello() && shim.Reserve(1, 999);
    if (write(pipe_fds[1], ok ? "y" : "n", 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  ASSERT_TRUE(RunUntil(loop_, [&] { return ledger().charged_bytes() == 999; }));
  EXPECT_EQ(server_->process(seen_.attached[0])->pid, child);
  char said = 0;
  ASSERT_EQ(read(pipe_fds[0], &said, 1), 1);
  EXPECT_EQ(said, 'y');
  kill(child, SIGKILL);
  EXPECT_TRUE(RunUntil(loop_, [&] { return ledger().charged_bytes() == 0; }));
  waitpid(child, nullptr, 0);
  close(pipe_fds[0]);
  close(pipe_fds[1]);
}

TEST_F(SlotServerTest, NegotiatesTheVersion) {
  TestShim newer(&loop_), alien(&loop_);
  ASSERT_TRUE(newer.Connect(Path(0)));
  EXPECT_EQ(newer.Hello(0, wire::kVersion + 5)->version, wire::kVersion);
  ASSERT_TRUE(alien.Connect(Path(0)));
  SetLogLevel(LogLevel::kOff);
  EXPECT_FALSE(alien.Hello(0, wire::kVersion + 5, wire::kVersion + 1));
  SetLogLevel(LogLevel::kInfo);
  EXPECT_EQ(seen_.attached.size(), 1u);
}

TEST_F(SlotServerTest, SkipsWhatItDoesNotUnderstand) {
  TestShim early(&loop_);
  ASSERT_TRUE(early.Connect(Path(0)));
  EXPECT_TRUE(early.SendReserve(1, 10));  // before hello
  ASSERT_TRUE(early.Hello().has_value());
  EXPECT_EQ(ledger().charged_bytes(), 0u);

  const char junk[] = "x";
  EXPECT_TRUE(early.SendBytes(junk, 1));
  wire::Header unknown{static_cast<wire::Type>(77), sizeof(wire::Header), 0};
  EXPECT_TRUE(early.Send(unknown));
  auto liar = wire::Make<wire::Reserve>(1);
  liar.header.size = 900;  // longer than the datagram
  EXPECT_TRUE(early.Send(liar));
  auto kind = wire::Make<wire::Reserve>(1);
  kind.kind = static_cast<wire::Kind>(9);
  EXPECT_TRUE(early.Send(kind));
  auto many = wire::Make<wire::Channels>(0);
  many.count = 65;
  EXPECT_TRUE(early.Send(many));
  const std::string long_one(wire::kMaxMessage * 3, 'y');
  EXPECT_TRUE(early.SendBytes(long_one.data(), long_one.size()));

  EXPECT_TRUE(early.Reserve(1, 10)) << "still served";
  EXPECT_EQ(server_->refused_messages("G::0"), 7u);
}

TEST_F(SlotServerTest, AFloodByOneDoesNotKeepOthersWaiting) {
  const auto flood = Attach(0), calm = Attach(1);
  // Asks as fast as the socket takes it and never listens.
  const auto view = wire::Make<wire::View>(1);
  int sent = 0;
  for (uint64_t round = 1; round <= 50; ++round) {
    while (send(flood->fd(), &view, sizeof(view), MSG_DONTWAIT | MSG_NOSIGNAL) >
           0)
      ++sent;
    ASSERT_TRUE(calm->Reserve(round, 1));
  }
  EXPECT_GT(sent, 100);
  EXPECT_LT(sent, 50'000) << "it is not read without end";
  EXPECT_TRUE(calm->Reserve(100, 200));
  flood->Close();
  EXPECT_TRUE(RunUntil(loop_, [&] { return seen_.detached.size() == 1; }));
}

TEST_F(SlotServerTest, AFloodByManyOfOneSlotDoesNotKeepOthersWaiting) {
  const auto calm = Attach(1);
  std::vector<std::unique_ptr<TestShim>> flood;
  const auto applied = wire::Make<wire::Applied>(0);
  for (int i = 0; i < 40; ++i) flood.push_back(Attach(0));
  size_t sent = 0;
  for (const auto& shim : flood)
    while (send(shim->fd(), &applied, sizeof(applied),
                MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
      ++sent;
  seen_.applied_takes = std::chrono::microseconds(300);
  ASSERT_TRUE(calm->View());
  EXPECT_LT(seen_.applied.size(), 100u) << "of " << sent;
  seen_.applied_takes = {};
  EXPECT_TRUE(RunUntil(loop_, [&] { return seen_.applied.size() == sent; }));
}

TEST_F(SlotServerTest, APeerThatDoesNotReadIsToldOnlyTheNewest) {
  const auto slow = Attach();
  const ProcessId id = seen_.attached[0];
  for (uint32_t i = 1; i <= 5000; ++i) {
    server_->SendSlice(id, 1000 + i, i);
    server_->SetPolicy("G::0", Enforce(1000 + i));
  }
  uint32_t slice = 0;
  uint64_t limit = 0;
  int messages = 0;
  while (slice != 6000 || limit != 6000) {
    const std::string bytes = slow->Receive();
    ASSERT_FALSE(bytes.empty());
    ++messages;
    wire::Slice s;
    wire::PolicyChange p;
    if (wire::Read(bytes.data(), bytes.size(), &s)) slice = s.us;
    if (wire::Read(bytes.data(), bytes.size(), &p)) limit = p.policy.limit;
  }
  EXPECT_LT(messages, 9000) << "the rest was superseded";
  EXPECT_TRUE(slow->Reserve(1, 5500)) << "and it is served again";
}

TEST_F(SlotServerTest, PoliciesChangeLive) {
  const auto shim = Attach();
  EXPECT_TRUE(shim->Reserve(1, 900));
  SlotPolicy policy = Enforce(500);
  policy.cls = wire::Class::kLatency;
  server_->SetPolicy("G::0", policy);
  const auto change = shim->Expect<wire::PolicyChange>();
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->policy.limit, 500u);
  EXPECT_EQ(change->policy.used, 900u);
  EXPECT_EQ(change->policy.cls, wire::Class::kLatency);
  EXPECT_FALSE(shim->Reserve(2, 1));
  server_->SetPolicy("G::0", policy);
  EXPECT_EQ(shim->View()->limit, 500u) << "no second message for no change";
}

TEST_F(SlotServerTest, ChannelsComeAndGo) {
  const auto shim = Attach();
  const ProcessId id = seen_.attached[0];
  EXPECT_TRUE(shim->Channels(0xc1, {1, 2, 3}));
  EXPECT_TRUE(shim->Channels(0xc1, {2}));  // said twice
  EXPECT_TRUE(shim->Channels(0xc1, {1, 9}, /*gone=*/true));
  ASSERT_TRUE(shim->View());
  ASSERT_EQ(server_->process(id)->channels.size(), 2u);
  EXPECT_EQ(server_->process(id)->channels[0].handle, 2u);
  EXPECT_EQ(seen_.channels, 3);
}

TEST_F(SlotServerTest, AClientOfAnotherTenantIsRefused) {
  const auto owner = Attach(0);
  EXPECT_TRUE(owner->Channels(0xc1, {1}));
  ASSERT_TRUE(owner->View());
  // Another process, on another slot.
  const pid_t child = fork();
  if (child == 0) {
    TestShim thief;
    const bool ok = thief.Connect(Path(1)) && thief.Hello() &&
                    thief.Channels(0xc1, {1, 2}) && thief.View();
    _exit(ok ? 0 : 1);
  }
  SetLogLevel(LogLevel::kOff);
  ASSERT_TRUE(RunUntil(loop_, [&] { return seen_.detached.size() == 1; }));
  SetLogLevel(LogLevel::kInfo);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(server_->refused_messages("G::1"), 1u);
  EXPECT_EQ(seen_.channels, 1);
  // The same process on its other GPU's slot is no stranger.
  const auto other_gpu = Attach(1);
  EXPECT_TRUE(other_gpu->Channels(0xc1, {5}));
  ASSERT_TRUE(other_gpu->View());
  EXPECT_EQ(seen_.channels, 2);
}

// How often the text is in what the log says meanwhile.
int LinesWith(const std::string& text, const std::function<void()>& meanwhile) {
  testing::internal::CaptureStderr();
  meanwhile();
  const std::string log = testing::internal::GetCapturedStderr();
  int lines = 0;
  for (size_t at = 0; (at = log.find(text, at)) != std::string::npos; ++at)
    ++lines;
  return lines;
}

TEST_F(SlotServerTest, AProcessIsToldFromOthersByItsStart) {
  const auto before = Attach(0);
  char name[16];
  ASSERT_EQ(prctl(PR_GET_NAME, name), 0);
  ASSERT_EQ(prctl(PR_SET_NAME, "a) S 1 2 3 (b"), 0);
  const auto after = Attach(1);
  prctl(PR_SET_NAME, name);
  TestShim child(&loop_);
  ASSERT_TRUE(child.ConnectFromAChild(Path(0)));
  ASSERT_TRUE(child.Hello());
  const auto started = [&](size_t i) {
    return server_->process(seen_.attached[i])->started;
  };
  EXPECT_GT(started(0), 0u);
  EXPECT_EQ(started(1), started(0)) << "whatever it calls itself";
  EXPECT_EQ(started(2), 0u) << "it was gone before it could be seen";
}

TEST_F(SlotServerTest, ASlotCannotFillTheLog) {
  EXPECT_EQ(LinesWith("a shim speaks versions",
                      [&] {
                        for (int i = 0; i < 40; ++i) {
                          TestShim alien(&loop_);
                          ASSERT_TRUE(alien.Connect(Path(i % 2)));
                          EXPECT_FALSE(alien.Hello(0, 99, 99));
                        }
                      }),
            2)
      << "one of each slot";
  EXPECT_EQ(server_->refused_messages("G::0"), 20u);

  // A client that the other slot has, named by other processes.
  TestShim owner(&loop_);
  ASSERT_TRUE(owner.ConnectFromAChild(Path(0)));
  ASSERT_TRUE(owner.Hello());
  ASSERT_TRUE(owner.Channels(0xc1, {1}));
  ASSERT_TRUE(owner.View());
  EXPECT_EQ(LinesWith("that another tenant has",
                      [&] {
                        for (int i = 0; i < 20; ++i) {
                          const auto thief = Attach(1);
                          EXPECT_TRUE(thief->Channels(0xc1, {2}));
                          EXPECT_TRUE(thief->View());
                        }
                      }),
            1);
  EXPECT_EQ(server_->refused_messages("G::1"), 40u);
}

TEST_F(SlotServerTest, EndlessChannelsEndTheConnection) {
  const auto shim = Attach();
  for (uint32_t i = 0; i <= ChannelBook::kMaxChannels; ++i)
    if (!shim->Channels(0xc1, {i})) break;
  EXPECT_TRUE(RunUntil(loop_, [&] { return seen_.detached.size() == 1; }));
}

TEST_F(SlotServerTest, EndlessClientsEndTheConnectionAndAreForgotten) {
  const auto shim = Attach();
  for (uint32_t i = 0; i < ChannelBook::kMaxClients; ++i) {
    ASSERT_TRUE(shim->Channels(0xc1, {7}, /*gone=*/i % 2));
    ASSERT_TRUE(shim->Channels(1000 + i, {1, 2}));
    ASSERT_TRUE(shim->Channels(1000 + i, {1}, /*gone=*/1));
  }
  ASSERT_TRUE(shim->Channels(1000, {3}));
  ASSERT_TRUE(shim->View()) << "no more clients than it may have";
  shim->Channels(5000, {1});
  ASSERT_TRUE(RunUntil(loop_, [&] { return seen_.detached.size() == 1; }));
  EXPECT_EQ(server_->refused_messages("G::0"), 1u);
  // Nobody's now: whoever comes may name it.
  const auto other = Attach(1);
  EXPECT_TRUE(other->Channels(1000, {1}));
  ASSERT_TRUE(other->View());
  EXPECT_EQ(server_->refused_messages("G::1"), 0u);
}

TEST_F(SlotServerTest, AfterARestartHoldersTellBeforeAnybodyGetsMore) {
  server_.reset();
  Start(milliseconds(150));
  TestShim fresh(&loop_), holder(&loop_);
  ASSERT_TRUE(fresh.Connect(Path(0)));
  ASSERT_TRUE(fresh.Hello());
  ASSERT_TRUE(fresh.SendReserve(1, 500));
  ASSERT_TRUE(holder.Connect(Path(0)));
  ASSERT_TRUE(holder.Hello(/*held=*/1));
  EXPECT_TRUE(holder.SendReserve(1, 600, /*held=*/true));
  EXPECT_EQ(holder.View()->used, 600u);
  const auto answer = fresh.Expect<wire::Answer>();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->verdict, wire::Verdict::kDenied);
  EXPECT_TRUE(fresh.Reserve(2, 400));
}

TEST_F(SlotServerTest, SharedMemoryOutlivesItsMaker) {
  auto maker = Attach(0);
  const auto same = Attach(0), other = Attach(1);
  EXPECT_TRUE(maker->Reserve(1, 600));
  EXPECT_TRUE(maker->Share(1, 77));
  EXPECT_TRUE(maker->Reserve(2, 100));
  EXPECT_TRUE(maker->Share(2, 78));
  EXPECT_EQ(maker->View()->used, 700u);
  EXPECT_TRUE(same->Borrow(5, 600, 77));
  EXPECT_TRUE(other->Borrow(5, 100, 78));
  EXPECT_EQ(same->View()->used, 700u);
  EXPECT_EQ(other->View()->used, 0u);
  maker->Close();
  EXPECT_TRUE(RunUntil(loop_, [&] { return ledger(1).charged_bytes() == 100; }))
      << "another slot holds it now";
  EXPECT_EQ(same->View()->used, 600u);
  EXPECT_FALSE(same->Reserve(6, 401)) << "the limit counts it";
  EXPECT_TRUE(same->Release(5));
  EXPECT_EQ(same->View()->used, 0u);
  EXPECT_TRUE(other->Share(9, 5));  // what it does not hold
  ASSERT_TRUE(other->View());
  EXPECT_EQ(server_->refused_messages("G::1"), 1u);
}

TEST_F(SlotServerTest, AfterARestartLoansAreToldAgainToo) {
  server_.reset();
  Start(milliseconds(150));
  TestShim maker(&loop_), borrower(&loop_);
  ASSERT_TRUE(borrower.Connect(Path(0)));
  ASSERT_TRUE(borrower.Hello());
  EXPECT_TRUE(borrower.Borrow(1, 600, 77));
  EXPECT_EQ(borrower.View()->used, 600u);
  ASSERT_TRUE(maker.Connect(Path(0)));
  ASSERT_TRUE(maker.Hello(/*held=*/1));
  EXPECT_TRUE(maker.SendReserve(1, 600, /*held=*/true));
  EXPECT_TRUE(maker.Share(1, 77));
  EXPECT_EQ(maker.View()->used, 600u);
  maker.Close();
  ASSERT_TRUE(RunUntil(loop_, [&] { return seen_.detached.size() == 1; }));
  EXPECT_EQ(borrower.View()->used, 600u);
}

TEST_F(SlotServerTest, ARemovedSlotEndsItsConnectionsAndKeepsItsFolder) {
  const auto shim = Attach();
  EXPECT_TRUE(shim->Reserve(1, 10));
  server_->RemoveSlot("G::0");
  EXPECT_EQ(shim->Receive(), "");
  struct stat info;
  EXPECT_EQ(stat((dir_.path() + "/G-0").c_str(), &info), 0);
  EXPECT_NE(stat(Path(0).c_str(), &info), 0);
  EXPECT_EQ(server_->ledger("G::0"), nullptr);
}

TEST(SlotServerRace, SixteenThreadsNeverPassTheLimit) {
  TempDir dir = *TempDir::Create();
  EventLoop loop;
  Seen seen;
  SlotServer server(loop, dir.path(), &seen, milliseconds(0));
  constexpr uint64_t kLimit = 1'000'000;
  ASSERT_TRUE(server.AddSlot("G::0", "G-0", Enforce(kLimit)).ok());
  std::atomic<uint64_t> granted{0};
  std::atomic<int> failed{0};
  std::latch racing(16), left(16);
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      TestShim shim;
      if (!shim.Connect(dir.path() + "/G-0/agent.sock") || !shim.Hello())
        ++failed;
      for (uint64_t i = 0; i < 100; ++i) {
        const uint64_t bytes = 1 + (i * 7919 + t) % 1500;
        if (shim.Reserve(i, bytes)) granted += bytes;
        if (!shim.answer || shim.answer->used > kLimit) ++failed;
      }
      // Nobody leaves, and so gives back, before all are done.
      racing.arrive_and_wait();
      const auto view = shim.View();
      if (!view || view->used != granted) ++failed;
      left.arrive_and_wait();
    });
  }
  while (!left.try_wait()) loop.RunOnce(milliseconds(5));
  EXPECT_LE(granted.load(), kLimit);
  EXPECT_GT(granted.load(), kLimit - 1500);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  const Ledger& ledger = *server.ledger("G::0");
  EXPECT_TRUE(RunUntil(loop, [&] { return ledger.charged_bytes() == 0; }));
}

}  // namespace
}  // namespace rondo::share
