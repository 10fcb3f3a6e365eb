// SPDX-License-Identifier: Apache-2.0
//
// The whole of src/share over real sockets, with scripted shims and a driver
// behind rm::System.
#include "share/share.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>

#include "base/file.h"
#include "base/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rm/test_driver.h"
#include "share/channel_book.h"
#include "share/test_shim.h"

namespace rondo::share {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr char kGpu[] = "GPU-0";
constexpr char kOtherGpu[] = "GPU-1";
constexpr uint32_t kTiny = 200, kDriversOwn = 2048;

// A tenant of one process with one channel group: answers slices at once.
struct Tenant {
  explicit Tenant(EventLoop& loop) : shim(&loop) {}

  bool Attach(const std::string& path, uint32_t client) {
    this->client = client;
    return shim.Connect(path) && shim.Hello() &&
           shim.Channels(client, {0x10, 0x11});
  }
  void Pump() {
    char buffer[wire::kMaxMessage];
    for (;;) {
      const ssize_t n = recv(shim.fd(), buffer, sizeof(buffer), MSG_DONTWAIT);
      if (n <= 0) return;
      wire::Slice slice;
      wire::PolicyChange change;
      if (wire::Read(buffer, n, &slice)) {
        if (refuses) {
          shim.Refused(slice, kDriversOwn);
          continue;
        }
        slice_us = slice.us;
        if (answers) shim.Applied(slice);
      }
      if (wire::Read(buffer, n, &change)) policy = change.policy;
    }
  }

  TestShim shim;
  std::string gpu;
  uint32_t client = 0;
  uint32_t slice_us = 0;  // last asked for
  bool answers = true;
  bool refuses = false;
  wire::Policy policy{};
};

class ShareTest : public testing::Test {
 protected:
  ShareTest() : dir_(*TempDir::Create()) { SetLogLevel(LogLevel::kOff); }
  ~ShareTest() override { SetLogLevel(LogLevel::kInfo); }

  void Start() {
    ShareOptions options;
    options.run_dir = dir_.path();
    options.replay_window = milliseconds(20);
    options.audit_interval = milliseconds(10);
    auto share = Share::Create(loop_, RealClock(), driver_, options);
    ASSERT_TRUE(share.ok()) << share.status();
    share_ = *std::move(share);
    ASSERT_TRUE(share_->Configure(config_).ok());
  }
  void AddSlot(TenantSpec tenant, uint64_t limit = 1000,
               const char* gpu = kGpu) {
    SlotSpec spec;
    spec.gpu_uuid = gpu;
    spec.replica = static_cast<int>(config_.slots.size());
    spec.limit_bytes = limit;
    spec.memory = config::MemoryMode::kEnforce;
    spec.tenant = tenant;
    config_.slots.push_back(spec);
  }
  Tenant& Attach(int slot) {
    tenants_.push_back(std::make_unique<Tenant>(loop_));
    tenants_.back()->gpu = config_.slots[slot].gpu_uuid;
    EXPECT_TRUE(tenants_.back()->Attach(
        Path(slot), 0xc1d00010 + static_cast<uint32_t>(tenants_.size())));
    return *tenants_.back();
  }
  std::string Path(int slot) {
    return dir_.path() + "/" + config_.slots[slot].folder() + "/agent.sock";
  }
  bool Off(const Tenant& t) { return driver_.IsSuspended(t.client, 0x10); }
  // Somebody tells who runs, or tiny slices would not be used; of next to no
  // time, or nobody would seem to want a turn.
  void Report(const char* gpu) {
    share_->OnActivity(gpu, {.source = activity::Source::kSampling,
                             .ended = RealClock().Now(),
                             .interval = std::chrono::microseconds(1)});
  }

  // How many could run on a tiny slice right now.
  int TinyRunnable(const std::string& gpu) {
    int count = 0;
    for (const auto& t : tenants_)
      count +=
          t->gpu == gpu && t->slice_us != 0 && t->slice_us < kTiny && !Off(*t);
    return count;
  }
  bool Until(const std::function<bool()>& done) {
    return RunUntil(loop_, [&] {
      for (const auto& t : tenants_) t->Pump();
      EXPECT_LE(TinyRunnable(kGpu), 1);
      EXPECT_LE(TinyRunnable(kOtherGpu), 1);
      return done();
    });
  }
  SlotStats Slot(int i) { return share_->Snapshot().slots[i]; }

  TempDir dir_;
  rm::TestDriver driver_;
  EventLoop loop_;
  ShareConfig config_;
  std::unique_ptr<Share> share_;
  std::vector<std::unique_ptr<Tenant>> tenants_;
};

TEST_F(ShareTest, StandardTenantsGetSlicesByWeightAndLiveChanges) {
  AddSlot({.weight = 3});
  AddSlot({.weight = 1});
  Start();
  Tenant& a = Attach(0);
  Tenant& b = Attach(1);
  // Nobody tells who runs: the driver's own 2048 us on average.
  ASSERT_TRUE(Until([&] { return a.slice_us == 3072 && b.slice_us == 1024; }));
  ASSERT_TRUE(Until([&] { return Slot(0).slice_us == 3072u; }));
  EXPECT_EQ(Slot(0).processes.size(), 1u);
  EXPECT_EQ(Slot(0).cls, "standard");
  EXPECT_TRUE(Slot(0).governed);

  ASSERT_TRUE(share_
                  ->SetTenant(config_.slots[1].id(),
                              {.cls = TenantClass::kBatch, .weight = 3}, 2000)
                  .ok());
  ASSERT_TRUE(Until([&] { return a.slice_us == 2048 && b.slice_us == 2048; }));
  ASSERT_TRUE(Until([&] { return b.policy.limit == 2000; }));
  EXPECT_EQ(b.policy.cls, wire::Class::kBatch);
  EXPECT_TRUE(b.shim.Reserve(1, 2000));
  EXPECT_TRUE(absl::IsNotFound(share_->SetTenant("nobody", {}, {})));
}

TEST_F(ShareTest, BatchTenantsTakeTurnsBesideALatencyTenant) {
  AddSlot({.cls = TenantClass::kLatency});
  for (int i = 0; i < 3; ++i) AddSlot({.cls = TenantClass::kBatch});
  config_.turn = milliseconds(30);
  Start();
  Tenant& latency = Attach(0);
  for (int i = 1; i <= 3; ++i) Attach(i);
  std::set<int> held;
  ASSERT_TRUE(Until([&] {
    Report(kGpu);
    int off = 0;
    for (int i = 1; i <= 3; ++i) off += Off(*tenants_[i]);
    for (int i = 1; i <= 3; ++i)
      if (off == 2 && !Off(*tenants_[i]) && tenants_[i]->slice_us == 20)
        held.insert(i);
    return held.size() == 3;
  })) << "each has had its turn, alone and on a tiny slice";
  EXPECT_TRUE(Until([&] { return latency.slice_us == 20'000; }));
  EXPECT_FALSE(Off(latency));
  EXPECT_GT(Slot(1).suspensions, 0u);

  // The latency tenant leaves: all run, on slices that are long.
  latency.shim.Close();
  ASSERT_TRUE(Until([&] {
    int good = 0;
    for (int i = 1; i <= 3; ++i)
      good += !Off(*tenants_[i]) && tenants_[i]->slice_us > kTiny;
    return good == 3;
  }));
}

TEST_F(ShareTest, AStuckShimHoldsNobodyUp) {
  AddSlot({.cls = TenantClass::kLatency});
  for (int i = 0; i < 2; ++i) AddSlot({.cls = TenantClass::kBatch});
  config_.turn = milliseconds(30);
  Start();
  Attach(0);
  Tenant& stuck = Attach(1);
  stuck.answers = false;
  Tenant& other = Attach(2);
  bool stuck_ran = false, other_ran = false;
  ASSERT_TRUE(Until([&] {
    Report(kGpu);
    stuck_ran |= Off(other) && !Off(stuck);
    other_ran |= Off(stuck) && !Off(other);
    return stuck_ran && other_ran;
  }));
}

TEST_F(ShareTest, ASlowDriverCallOnOneGpuDelaysNoOther) {
  driver_.uuids = {kGpu, kOtherGpu};
  std::promise<void> release;
  // Calls come until the end of share_, which is after that of this function.
  const auto stuck = std::make_shared<std::atomic<bool>>(false);
  driver_.before_switch =
      [stuck, released = release.get_future().share()](uint32_t gpu) {
        if (gpu != 0) return;
        *stuck = true;
        released.wait();
      };
  for (const char* gpu : {kGpu, kOtherGpu}) {
    AddSlot({.cls = TenantClass::kLatency}, 1000, gpu);
    for (int i = 0; i < 2; ++i)
      AddSlot({.cls = TenantClass::kBatch}, 1000, gpu);
  }
  config_.turn = milliseconds(30);
  Start();
  for (int i = 0; i < 3; ++i) Attach(i);
  EXPECT_TRUE(Until([&] { return stuck->load(); }));
  for (int i = 3; i < 6; ++i) Attach(i);
  const Tenant &a = *tenants_[4], &b = *tenants_[5];
  bool a_ran = false, b_ran = false;
  EXPECT_TRUE(Until([&] {
    Report(kOtherGpu);
    a_ran |= Off(b) && !Off(a);
    b_ran |= Off(a) && !Off(b);
    return a_ran && b_ran;
  })) << "turns change there meanwhile";
  EXPECT_FALSE(Off(*tenants_[1]) || Off(*tenants_[2])) << "it is stuck still";
  release.set_value();
  EXPECT_TRUE(Until([&] { return Off(*tenants_[1]) || Off(*tenants_[2]); }));
}

TEST_F(ShareTest, WithoutADriverMemoryIsStillKeptAndTheStatsSayWhy) {
  driver_.absent = true;
  AddSlot({.cls = TenantClass::kLatency});
  AddSlot({.cls = TenantClass::kBatch});
  AddSlot({.cls = TenantClass::kBatch});
  Start();
  for (int i = 0; i < 3; ++i) Attach(i);
  EXPECT_TRUE(tenants_[0]->shim.Reserve(1, 1000));
  EXPECT_FALSE(tenants_[0]->shim.Reserve(2, 1));
  ASSERT_TRUE(Until([&] { return !Slot(1).governed || !Slot(2).governed; }));
  const ShareStats stats = share_->Snapshot();
  EXPECT_FALSE(stats.gpus[0].suspender_ready);
  EXPECT_NE(stats.gpus[0].suspender_problem, "");
  EXPECT_EQ(stats.slots[0].denials, 1u);
  EXPECT_FALSE(stats.slots[0].audit_difference_bytes.has_value());
}

TEST_F(ShareTest, WhatAShimSaysOfItselfMakesItsSlotUngoverned) {
  AddSlot({});
  AddSlot({});
  Start();
  Tenant& tenant = Attach(0);
  Attach(1);
  const auto reason = [&](uint64_t reasons) {
    EXPECT_TRUE(tenant.shim.State(reasons) && tenant.shim.View());
    const SlotStats slot = Slot(0);
    EXPECT_EQ(slot.governed, reasons == 0) << reasons;
    EXPECT_EQ(slot.processes[0].governed, reasons == 0) << reasons;
    EXPECT_TRUE(Slot(1).governed);
    return slot.reason;
  };
  uint64_t bit = 1;
  for (const char* text : {
#define RONDO_X(name, text) text,
           RONDO_WIRE_REASONS(RONDO_X)
#undef RONDO_X
       }) {
    EXPECT_EQ(reason(bit), text);
    bit <<= 1;
  }
  EXPECT_EQ(reason(bit), "a reason that this agent does not know");
  EXPECT_EQ(reason(bit | 6), "unknown size of a driver request")
      << "the first of several";
  EXPECT_EQ(reason(0), "");
  // Also while another one of the slot is as it should be.
  Attach(0);
  EXPECT_TRUE(tenant.shim.State(1) && tenant.shim.View());
  EXPECT_FALSE(Slot(0).governed);
  tenant.shim.Close();
  EXPECT_TRUE(Until([&] { return Slot(0).governed; })) << "it has gone";
}

TEST_F(ShareTest, HandlesOfAnotherTenantMakeASlotUngoverned) {
  AddSlot({});
  AddSlot({});
  Start();
  const Tenant& owner = Attach(0);
  ASSERT_TRUE(Until([&] { return owner.slice_us != 0; }));
  TestShim thief(&loop_);
  ASSERT_TRUE(thief.ConnectFromAChild(Path(1)));
  ASSERT_TRUE(thief.Hello() && thief.Channels(owner.client, {0x10}) &&
              thief.View());
  EXPECT_EQ(Slot(1).reason,
            "it reported driver handles that another tenant has");
  EXPECT_FALSE(Slot(1).governed);
  EXPECT_TRUE(Slot(0).governed);
}

TEST_F(ShareTest, AFolderThatWasRemovedIsMadeAgain) {
  AddSlot({});
  AddSlot({});
  Start();
  EXPECT_TRUE(share_->Complete());
  Tenant& tenant = Attach(0);
  EXPECT_TRUE(tenant.shim.Reserve(1, 600));
  const std::string folder = dir_.path() + "/" + config_.slots[0].folder();
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(share_->Complete());
  std::ofstream(folder) << "in its place";
  EXPECT_FALSE(share_->Configure(config_).ok());
  EXPECT_FALSE(share_->Complete());
  std::filesystem::remove(folder);
  EXPECT_TRUE(share_->Configure(config_).ok());
  EXPECT_TRUE(share_->Complete());
  EXPECT_EQ(Slot(0).device_bytes, 600u) << "who was there is there still";
  EXPECT_TRUE(tenant.shim.Reserve(2, 400));
  TestShim other(&loop_);
  ASSERT_TRUE(other.Connect(Path(0)) && other.Hello());
  EXPECT_FALSE(other.Reserve(1, 1)) << "under the same limit";
}

TEST_F(ShareTest, ASlotThatCouldNotBeMadeIsMadeLater) {
  AddSlot({});
  Start();
  AddSlot({});
  const std::string folder = dir_.path() + "/" + config_.slots[1].folder();
  std::ofstream(folder) << "in its place";
  EXPECT_FALSE(share_->Configure(config_).ok());
  EXPECT_FALSE(share_->Complete());
  std::filesystem::remove(folder);
  EXPECT_TRUE(share_->Configure(config_).ok());
  EXPECT_TRUE(share_->Complete());
  Attach(1);
  config_.slots.pop_back();
  EXPECT_TRUE(share_->Configure(config_).ok());
  EXPECT_TRUE(share_->Complete()) << "of those that are wanted";
}

TEST_F(ShareTest, ChannelsBeyondTheSlotsBoundMakeItUngoverned) {
  AddSlot({});
  AddSlot({});
  Start();
  constexpr size_t kEach = ChannelBook::kMaxChannels;
  std::vector<std::unique_ptr<TestShim>> shims;
  auto message = wire::Make<wire::Channels>(0);
  for (size_t all = 0; all < ChannelBook::kMaxSlotChannels;
       all += message.count) {
    if (all % kEach == 0) {
      shims.push_back(std::make_unique<TestShim>(&loop_));
      ASSERT_TRUE(shims.back()->Connect(Path(0)) && shims.back()->Hello());
      message.client = static_cast<uint32_t>(0xc000 + all);
    }
    message.count = wire::kMaxHandles;
    for (uint16_t i = 0; i < message.count; ++i)
      message.handles[i] = static_cast<uint32_t>(all + i);
    ASSERT_TRUE(shims.back()->Send(message));
  }
  ASSERT_TRUE(shims.back()->View());
  EXPECT_EQ(Slot(0).reason, "");
  TestShim last(&loop_);
  ASSERT_TRUE(last.Connect(Path(0)) && last.Hello());
  ASSERT_TRUE(last.Channels(0xbeef, {1}) && last.View()) << "it is kept on";
  EXPECT_EQ(Slot(0).reason, "its slot has more channels than are kept");
  EXPECT_FALSE(Slot(0).governed);
  EXPECT_EQ(Slot(0).refused_messages, 1u);
  EXPECT_TRUE(Slot(1).governed);
}

TEST_F(ShareTest, RefusedSlicesMakeASlotUngoverned) {
  AddSlot({});
  AddSlot({});
  Start();
  Tenant& tenant = Attach(0);
  Attach(1);
  tenant.refuses = true;
  ASSERT_TRUE(Until([&] { return !Slot(0).governed; }));
  EXPECT_EQ(Slot(0).reason, "the driver or the shim does not take time slices");
  EXPECT_EQ(Slot(0).slice_us, kDriversOwn);
  EXPECT_TRUE(Slot(1).governed);
  tenant.refuses = false;
  EXPECT_TRUE(Until([&] { return Slot(0).governed; })) << "it was asked again";
}

TEST_F(ShareTest, RefusedSuspensionsMakeASlotUngoverned) {
  driver_.on_switch = [](const rm::DisableChannelsParams&) {
    return rm::kNotSupported;
  };
  AddSlot({.cls = TenantClass::kLatency});
  for (int i = 0; i < 2; ++i) AddSlot({.cls = TenantClass::kBatch});
  Start();
  for (int i = 0; i < 3; ++i) Attach(i);
  const auto ungoverned = [&] {
    for (int i = 1; i <= 2; ++i)
      if (!Slot(i).governed) return Slot(i).reason;
    return std::string();
  };
  ASSERT_TRUE(Until([&] { return ungoverned() != ""; }));
  EXPECT_EQ(ungoverned(), "the driver does not suspend its channels");
}

TEST_F(ShareTest, TheAuditFindsWhatTheLedgerDoesNotKnow) {
  AddSlot({});
  Start();
  Tenant& tenant = Attach(0);
  EXPECT_TRUE(tenant.shim.Reserve(1, 600));
  const auto driver_says = [&](uint64_t bytes) {
    std::lock_guard lock(driver_.mutex);
    driver_.pid_bytes[getpid()] = bytes;
  };
  driver_says(600);
  ASSERT_TRUE(Until([&] { return Slot(0).audit_difference_bytes == 0; }));
  EXPECT_EQ(Slot(0).processes[0].driver_bytes, 600u);
  EXPECT_EQ(Slot(0).audit_alarms, 0u);
  SetLogLevel(LogLevel::kWarning);
  testing::internal::CaptureStderr();
  driver_says(700);
  EXPECT_TRUE(Until([&] { return Slot(0).audit_alarms == 1; }));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr(absl::StrCat("slot ", config_.slots[0].id(),
                                     ": the driver charges process ", getpid(),
                                     " with 100 bytes more than the ledger")));
  EXPECT_EQ(Slot(0).audit_difference_bytes, 100);
}

TEST_F(ShareTest, AConfigChangeKeepsConnectionsOfSlotsThatStay) {
  AddSlot({});
  AddSlot({});
  Start();
  Tenant& stays = Attach(0);
  Tenant& goes = Attach(1);
  EXPECT_TRUE(stays.shim.Reserve(1, 500));
  config_.slots.pop_back();
  config_.slots[0].limit_bytes = 800;
  ASSERT_TRUE(share_->Configure(config_).ok());
  ASSERT_TRUE(Until([&] { return stays.policy.limit == 800; }));
  EXPECT_FALSE(stays.shim.Reserve(2, 301));
  EXPECT_TRUE(stays.shim.Reserve(2, 300));
  char byte;
  ASSERT_TRUE(
      Until([&] { return recv(goes.shim.fd(), &byte, 1, MSG_DONTWAIT) == 0; }));
  EXPECT_EQ(share_->Snapshot().slots.size(), 1u);
}

TEST_F(ShareTest, ConfigChangesReachTenantsThatRun) {
  AddSlot({.cls = TenantClass::kLatency});
  for (int i = 0; i < 2; ++i) AddSlot({.cls = TenantClass::kBatch});
  config_.turn = std::chrono::hours(1);
  Start();
  const Tenant &a = Attach(1), &b = Attach(2);
  ASSERT_TRUE(Until([&] { return a.slice_us == 2048 && b.slice_us == 2048; }))
      << "no latency tenant: the driver's own";
  EXPECT_EQ(Slot(1).suspensions + Slot(2).suspensions, 0u);
  Attach(0);
  ASSERT_TRUE(Until([&] { return Off(a) || Off(b); }));
  const Tenant& waits = Off(a) ? a : b;
  config_.turn = milliseconds(30);
  ASSERT_TRUE(share_->Configure(config_).ok());
  EXPECT_TRUE(Until([&] { return !Off(waits); })) << "not only in an hour";
  const uint64_t suspended = Slot(1).suspensions + Slot(2).suspensions;
  const MonotonicTime since = RealClock().Now();
  EXPECT_TRUE(Until([&] {
    return Slot(1).suspensions + Slot(2).suspensions >= suspended + 10;
  }));
  EXPECT_LT(RealClock().Now() - since, milliseconds(4'000)) << "10 turns";
}

TEST_F(ShareTest, TellsShimsWhatToDoWhenTheAgentGoes) {
  AddSlot({});
  config_.slots[0].on_agent_loss = config::OnAgentLoss::kOpen;
  Start();
  TestShim shim(&loop_);
  ASSERT_TRUE(shim.Connect(Path(0)));
  EXPECT_EQ(shim.Hello()->policy.on_agent_loss, wire::OnAgentLoss::kOpen);
  config_.slots[0].on_agent_loss = config::OnAgentLoss::kClosed;
  ASSERT_TRUE(share_->Configure(config_).ok());
  const auto change = shim.Expect<wire::PolicyChange>();
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->policy.on_agent_loss, wire::OnAgentLoss::kClosed);
}

TEST_F(ShareTest, ANewAgentLearnsFromThoseWhoHold) {
  AddSlot({});
  Start();
  EXPECT_TRUE(Attach(0).shim.Reserve(1, 700));
  share_.reset();
  Start();
  TestShim again(&loop_);
  ASSERT_TRUE(again.Connect(dir_.path() + "/GPU-0-0/agent.sock"));
  ASSERT_TRUE(again.Hello(/*held=*/1));
  EXPECT_TRUE(again.SendReserve(1, 700, /*held=*/true));
  EXPECT_FALSE(again.Reserve(2, 301));
  EXPECT_TRUE(again.Reserve(2, 300));
}

TEST_F(ShareTest, TellsHowOftenReportsAreWanted) {
  AddSlot({.cls = TenantClass::kLatency});
  for (int i = 0; i < 2; ++i) AddSlot({.cls = TenantClass::kBatch});
  Start();
  std::chrono::microseconds rate{0};
  share_->OnSampleRate([&](const std::string& gpu, auto interval) {
    EXPECT_EQ(gpu, kGpu);
    rate = interval;
  });
  EXPECT_GE(rate, milliseconds(50));
  for (int i = 0; i < 3; ++i) Attach(i);
  EXPECT_TRUE(Until([&] { return rate <= milliseconds(5); }));
}

TEST(SlotSpec, IsFoundByItsId) {
  const auto slot = SlotSpec::Parse("GPU-x::12");
  ASSERT_TRUE(slot);
  EXPECT_EQ(slot->gpu_uuid, "GPU-x");
  EXPECT_EQ(slot->replica, 12);
  EXPECT_EQ(slot->folder(), "GPU-x-12");
  for (const char* other : {"", "GPU-x", "GPU-x::", "::1", "GPU-x::-1",
                            "GPU-x::01", "GPU-x::1::2", "GPU-x::1/.."})
    EXPECT_FALSE(SlotSpec::Parse(other)) << other;
}

}  // namespace
}  // namespace rondo::share
