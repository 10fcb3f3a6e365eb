// SPDX-License-Identifier: Apache-2.0
//
// Memory under librondo.so: metered, refused, given back, shown.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/shim/fake_agent.h"
#include "test/shim/tenant_process.h"

namespace rondo {
namespace {

using testing::HasSubstr;

constexpr uint64_t kGiB = 1ull << 30;
constexpr char kDenied[] = "81 ";  // NO_MEMORY

class ShimMemory : public testing::Test {
 protected:
  FakeAgent::Options agent_options;
  RunDir dir;
  std::string Socket() { return dir.Socket(kGpu, 0); }
  static std::string Alloc(int handle, uint64_t bytes,
                           const std::string& form = "48") {
    return "alloc " + std::to_string(handle) + " " + std::to_string(bytes) +
           " " + form;
  }
};

auto Uses(uint64_t bytes) {
  return [bytes](const FakeAgentState& s) { return s.Used() == bytes; };
}

TEST_F(ShimMemory, MetersAndRefuses) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  ASSERT_EQ(tenant.Do("open"), "ok");
  EXPECT_EQ(tenant.Do(Alloc(1000, 6 * kGiB)), "0 6442450944");
  EXPECT_TRUE(agent.Wait(Uses(6 * kGiB)));
  EXPECT_THAT(tenant.Do(Alloc(1001, 3 * kGiB)), HasSubstr(kDenied));
  EXPECT_EQ(tenant.Do("in_use"), "6442450944") << "the driver was not asked";
  // And carries on: what fits is given.
  EXPECT_EQ(tenant.Do(Alloc(1002, 2 * kGiB)), "0 2147483648");
  EXPECT_EQ(tenant.Do("free 1000"), "0");
  EXPECT_TRUE(agent.Wait(Uses(2 * kGiB)));
  EXPECT_EQ(tenant.Do(Alloc(1003, 3 * kGiB)), "0 3221225472");
  EXPECT_EQ(agent.Get().hello.driver, std::string("580.159.04"));
  EXPECT_EQ(tenant.Finish(), 0);
  EXPECT_TRUE(agent.Wait([](const auto& s) { return s.connections == 0; }));
  EXPECT_EQ(tenant.Errors(), "");
}

class ShimForms : public ShimMemory,
                  public testing::WithParamInterface<const char*> {};

// Every way to video memory (driver-abi: RM_ALLOC in both sizes, wrapped in D3,
// VID_HEAP_CONTROL 2, 6 and 0xE), and both ways to free it.
TEST_P(ShimForms, AreMeteredAndRefused) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  EXPECT_EQ(tenant.Do(Alloc(1000, 5 * kGiB, GetParam())), "0 5368709120");
  EXPECT_TRUE(agent.Wait(Uses(5 * kGiB)));
  EXPECT_THAT(tenant.Do(Alloc(1001, 5 * kGiB, GetParam())), HasSubstr(kDenied));
  EXPECT_EQ(tenant.Do("free 1000"), "0");
  EXPECT_TRUE(agent.Wait(Uses(0)));
  EXPECT_EQ(tenant.Do(Alloc(1002, 5 * kGiB, GetParam())), "0 5368709120");
  EXPECT_EQ(tenant.Do("heap_free 1002"), "0");
  EXPECT_TRUE(agent.Wait(Uses(0)));
}
INSTANTIATE_TEST_SUITE_P(All, ShimForms,
                         testing::Values("48", "32", "wrapped", "2", "6", "e"));

TEST_F(ShimMemory, HostMemoryIsNotCounted) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  EXPECT_EQ(tenant.Do(Alloc(1000, 20 * kGiB, "host")), "0 21474836480");
  EXPECT_EQ(agent.Get().asked, 0);
}

TEST_F(ShimMemory, FailedDriverCallGivesBack) {
  agent_options.policy.limit = 200 * kGiB;
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  EXPECT_THAT(tenant.Do(Alloc(1000, 100 * kGiB)), HasSubstr(kDenied));
  EXPECT_TRUE(
      agent.Wait([](const auto& s) { return s.asked == 1 && s.Used() == 0; }));
}

TEST_F(ShimMemory, RoundingUpPastTheLimitIsUndone) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do("round " + std::to_string(2 << 20));
  EXPECT_EQ(tenant.Do(Alloc(1000, 1)), "0 2097152");
  EXPECT_TRUE(agent.Wait(Uses(2 << 20)));
  EXPECT_THAT(tenant.Do(Alloc(1001, 8 * kGiB - (2 << 20) - 1)),
              HasSubstr("0 "));
  EXPECT_THAT(tenant.Do(Alloc(1002, 1)), HasSubstr(kDenied));
  EXPECT_EQ(tenant.Do("free 1000"), "0");
  // 2 MiB are free; 1 byte more than that rounds to 4 MiB.
  EXPECT_THAT(tenant.Do(Alloc(1003, (2 << 20) - 1)), HasSubstr("0 2097152"));
  EXPECT_EQ(tenant.Do("in_use"), std::to_string(8 * kGiB));
}

TEST_F(ShimMemory, ChildrenGoWithTheirParents) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  for (int i = 0; i < 100; ++i) tenant.Do(Alloc(1000 + i, 1 << 20));
  EXPECT_TRUE(agent.Wait(Uses(100 << 20)));
  EXPECT_EQ(tenant.Do("free 256"), "0");  // the device
  EXPECT_TRUE(agent.Wait(Uses(0)));
}

TEST_F(ShimMemory, AClientsFreeTakesAll) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do(Alloc(1000, 1 << 20));
  EXPECT_EQ(tenant.Do("free_all"), "0");
  EXPECT_TRUE(agent.Wait(Uses(0)));
}

TEST_F(ShimMemory, FreeOfAnUnknownHandlePassesThrough) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  EXPECT_EQ(tenant.Do("free 4711"), "51");  // the driver's own answer
}

TEST_F(ShimMemory, DupsAreChargedOnceUntilTheLastIsGone) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do(Alloc(1000, kGiB));
  EXPECT_EQ(tenant.Do("dup 1000 1001"), "0");
  EXPECT_EQ(tenant.Do("free 1000"), "0");
  tenant.Do(Alloc(1002, 1));  // orders what follows after the free
  EXPECT_EQ(agent.Get().Used(), kGiB + 1);
  EXPECT_EQ(tenant.Do("free 1001"), "0");
  EXPECT_TRUE(agent.Wait(Uses(1)));
}

TEST_F(ShimMemory, ExportedMemoryStaysChargedWhileItsDescriptorIsOpen) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do(Alloc(1000, 5 * kGiB));
  const std::string fd = tenant.Do("export 1000");
  tenant.Do("free 1000");
  EXPECT_THAT(tenant.Do(Alloc(1001, 5 * kGiB)), HasSubstr(kDenied));
  EXPECT_EQ(tenant.Do("import " + fd + " 1002"), "0");
  EXPECT_EQ(tenant.Do("close " + fd), "0");
  EXPECT_THAT(tenant.Do(Alloc(1001, 5 * kGiB)), HasSubstr(kDenied))
      << "the imported handle holds it";
  EXPECT_EQ(tenant.Do("free 1002"), "0");
  EXPECT_TRUE(agent.Wait(Uses(0))) << "told at once";
  EXPECT_EQ(tenant.Do(Alloc(1001, 5 * kGiB)), "0 5368709120");
}

// Nothing was refused before, and no thread of ours looks.
TEST_F(ShimMemory, ExportedAndClosedItGoesWithItsLastHandle) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do(Alloc(1000, 5 * kGiB));
  tenant.Do("close " + tenant.Do("export 1000"));
  EXPECT_EQ(tenant.Do("tasks"), "1");
  EXPECT_EQ(tenant.Do("free 1000"), "0");
  EXPECT_TRUE(agent.Wait(Uses(0)));
}

struct Way {
  const char* take;  // exports two blocks, answers what holds them
  const char* drop;  // ends that
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.take; }

class ShimExports : public ShimMemory,
                    public testing::WithParamInterface<Way> {};

TEST_P(ShimExports, StayChargedWhileTheyAreHeld) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do(Alloc(1000, 3 * kGiB));
  tenant.Do(Alloc(1001, 2 * kGiB));
  const std::string holder =
      tenant.Do(std::string(GetParam().take) + " 1000 1001");
  EXPECT_EQ(tenant.Do("free 1000"), "0");
  EXPECT_EQ(tenant.Do("free 1001"), "0");
  EXPECT_THAT(tenant.Do(Alloc(1002, 4 * kGiB)), HasSubstr(kDenied));
  EXPECT_EQ(agent.Get().Used(), 5 * kGiB);
  EXPECT_EQ(tenant.Do(std::string(GetParam().drop) + " " + holder), "0");
  EXPECT_EQ(tenant.Do(Alloc(1002, 8 * kGiB)), "0 8589934592");
}
INSTANTIATE_TEST_SUITE_P(All, ShimExports,
                         testing::Values(Way{"export_many", "close"},
                                         Way{"dma_buf", "close"},
                                         Way{"dma_buf_old", "close"},
                                         Way{"hold_by_object", "free"}));

TEST_F(ShimMemory, WhatIsImportedTogetherIsHeldByItsHandles) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do(Alloc(1000, 3 * kGiB));
  tenant.Do(Alloc(1001, 2 * kGiB));
  const std::string fd = tenant.Do("export_many 1000 1001");
  EXPECT_EQ(tenant.Do("import_many " + fd + " 1002 1003"), "0");
  EXPECT_EQ(tenant.Do("close " + fd), "0");
  EXPECT_EQ(tenant.Do("free 1000"), "0");
  EXPECT_EQ(tenant.Do("free 1001"), "0");
  EXPECT_THAT(tenant.Do(Alloc(1004, 4 * kGiB)), HasSubstr(kDenied));
  EXPECT_EQ(tenant.Do("free 1002"), "0");
  EXPECT_TRUE(agent.Wait(Uses(2 * kGiB)));
  EXPECT_EQ(tenant.Do("free 1003"), "0");
  EXPECT_TRUE(agent.Wait(Uses(0)));
}

TEST_F(ShimMemory, WhatLeavesTheProcessIsTaggedAndTheAgentTold) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do(Alloc(1000, kGiB));
  tenant.Do("dup 1000 1001");
  EXPECT_TRUE(agent.Wait(Uses(kGiB)));
  EXPECT_TRUE(agent.Get().shared.empty()) << "nothing left yet";
  tenant.Do("export 1000");
  EXPECT_TRUE(agent.Wait([](const auto& s) { return s.shared.size() == 1; }));
  tenant.Do("export 1001");  // a handle that is older than the tag
  EXPECT_THAT(tenant.Do("log"),
              HasSubstr("export with tag 1,export with tag 1"));
  tenant.Do(Alloc(1002, kGiB));
  EXPECT_EQ(tenant.Do("share 1002"), "0");
  ASSERT_TRUE(agent.Wait([](const auto& s) { return s.shared.size() == 2; }));
  const auto shared = agent.Get().shared;
  EXPECT_NE(shared.begin()->second, shared.rbegin()->second);
}

TEST_F(ShimMemory, MemoryOfAnotherProcessIsBorrowed) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  const std::string size = std::to_string(6 * kGiB);
  const std::string fd = tenant.Do("foreign " + size + " 77");
  EXPECT_EQ(tenant.Do("import " + fd + " 1000"), "0");
  ASSERT_TRUE(agent.Wait([](const auto& s) { return s.borrowed.size() == 1; }));
  const wire::Borrow told = agent.Get().borrowed.begin()->second;
  EXPECT_EQ(told.bytes, 6 * kGiB);
  EXPECT_EQ(told.tag, 77u);
  EXPECT_EQ(tenant.Do("import " + fd + " 1001"), "0");
  EXPECT_EQ(tenant.Do(Alloc(1002, 6 * kGiB)), "0 6442450944")
      << "nothing of it is charged here";
  EXPECT_EQ(agent.Get().borrowed.size(), 1u) << "one block, two names";
  EXPECT_EQ(tenant.Do("free 1000"), "0");
  EXPECT_EQ(tenant.Do("free 1002"), "0");
  EXPECT_TRUE(agent.Wait(Uses(0)));
  EXPECT_EQ(agent.Get().borrowed.size(), 1u);
  EXPECT_EQ(tenant.Do("free 1001"), "0");
  EXPECT_TRUE(agent.Wait([](const auto& s) { return s.borrowed.empty(); }));
}

TEST_F(ShimMemory, SoIsWhatIsDuppedFromAnotherProcess) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  EXPECT_EQ(tenant.Do("foreign_dup 1000 1048576 78"), "0");
  ASSERT_TRUE(agent.Wait([](const auto& s) { return s.borrowed.size() == 1; }));
  EXPECT_EQ(agent.Get().borrowed.begin()->second.tag, 78u);
}

// Its tag says so, whatever descriptor it came by.
TEST_F(ShimMemory, WhatComesBackIsOurOwn) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do(Alloc(1000, kGiB));
  tenant.Do("export 1000");
  ASSERT_TRUE(agent.Wait([](const auto& s) { return s.shared.size() == 1; }));
  const auto tag = std::to_string(agent.Get().shared.begin()->second);
  EXPECT_EQ(tenant.Do("foreign_dup 1001 1073741824 " + tag), "0");
  tenant.Do("free 1000");
  tenant.Do(Alloc(1002, 1));  // orders what follows
  EXPECT_TRUE(agent.Get().borrowed.empty());
  EXPECT_EQ(agent.Get().Used(), kGiB + 1);
}

TEST_F(ShimMemory, WithoutTagsAnImportIsToldBySize) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do("no_tags");
  tenant.Do(Alloc(1000, kGiB));
  const std::string own = tenant.Do("export 1000");
  EXPECT_EQ(tenant.Do("import " + own + " 1001"), "0");
  const std::string fd = tenant.Do("foreign 1048576 0");
  EXPECT_EQ(tenant.Do("import " + fd + " 1002"), "0");
  ASSERT_TRUE(agent.Wait([](const auto& s) { return s.borrowed.size() == 1; }));
  const FakeAgentState state = agent.Get();
  EXPECT_EQ(state.borrowed.begin()->second.bytes, 1048576u);
  EXPECT_EQ(state.borrowed.begin()->second.tag, 0u);
  EXPECT_TRUE(state.shared.empty());
  EXPECT_TRUE(agent.Wait(
      [](const auto& s) { return s.Counter(wire::Counter::kUntagged) == 1; }));
}

TEST_F(ShimMemory, AFreshAgentHearsWhatIsSharedAndBorrowed) {
  auto agent = std::make_unique<FakeAgent>(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do(Alloc(1000, kGiB));
  tenant.Do("export 1000");
  tenant.Do("import " + tenant.Do("foreign 1048576 77") + " 1001");
  ASSERT_TRUE(agent->Wait([](const auto& s) {
    return s.shared.size() == 1 && s.borrowed.size() == 1;
  }));
  const auto before = agent->Get();
  agent.reset();
  agent = std::make_unique<FakeAgent>(Socket(), agent_options);
  tenant.Do("group 10");  // the shim's thread reconnects
  ASSERT_TRUE(agent->Wait([](const auto& s) {
    return s.shared.size() == 1 && s.borrowed.size() == 1;
  }));
  EXPECT_EQ(agent->Get().shared, before.shared);
  EXPECT_EQ(agent->Get().borrowed.begin()->second.tag, 77u);
  EXPECT_EQ(agent->Get().Used(), kGiB);
}

TEST_F(ShimMemory, AClosedDriverDescriptorFreesItsClient) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do(Alloc(1000, 5 * kGiB));
  tenant.Do("close_driver");
  tenant.Do("open");
  EXPECT_EQ(tenant.Do(Alloc(1000, 5 * kGiB)), "0 5368709120");
}

TEST_F(ShimMemory, ShowsTheSlotInEveryForm) {
  agent_options.used_by_others = kGiB;
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do(Alloc(1000, kGiB));
  const std::string total = std::to_string(8 * kGiB / 1024);
  const std::string left = std::to_string(6 * kGiB / 1024);
  for (const char* size : {"436", "444", "460", "1028"}) {
    EXPECT_EQ(tenant.Do(std::string("view ") + size),
              total + " " + total + " " + total + " " + total + " " + left +
                  " " + left + " 4242 ")
        << size;
  }
  EXPECT_EQ(tenant.Do("view v1"), total + " " + left);
  EXPECT_EQ(tenant.Do("view heap"), total + " " + left + " " + left);
  EXPECT_EQ(tenant.Do("view 27"), total);
}

TEST_F(ShimMemory, ObserveCountsAndNeitherRefusesNorHides) {
  agent_options.policy.memory = wire::Memory::kObserve;
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  EXPECT_EQ(tenant.Do(Alloc(1000, 20 * kGiB)), "0 21474836480");
  EXPECT_TRUE(agent.Wait(Uses(20 * kGiB)));
  EXPECT_EQ(tenant.Do("view 27"), std::to_string(80 * kGiB / 1024));
  tenant.Do("free 1000");
  EXPECT_TRUE(agent.Wait(Uses(0)));
  tenant.Do("uvm_init");
  EXPECT_THAT(tenant.Do("log"), HasSubstr("hmm on"));
}

TEST_F(ShimMemory, OffCountsNothing) {
  agent_options.policy.memory = wire::Memory::kOff;
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  EXPECT_EQ(tenant.Do(Alloc(1000, 20 * kGiB)), "0 21474836480");
  EXPECT_EQ(tenant.Do("view 27"), std::to_string(80 * kGiB / 1024));
  EXPECT_EQ(agent.Get().Used(), 0u);
}

TEST_F(ShimMemory, ALimitChangesUnderARunningProgram) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do(Alloc(1000, 6 * kGiB));
  agent_options.policy.limit = 16 * kGiB;
  agent.SendPolicy(agent_options.policy);
  EXPECT_EQ(tenant.Do(Alloc(1001, 6 * kGiB)), "0 6442450944");
  agent_options.policy.limit = 4 * kGiB;
  agent.SendPolicy(agent_options.policy);
  EXPECT_THAT(tenant.Do(Alloc(1002, 1)), HasSubstr(kDenied));
  EXPECT_EQ(tenant.Do("view 27"), std::to_string(4 * kGiB / 1024));
}

TEST_F(ShimMemory, SeveralGpusHaveSlotsOfTheirOwn) {
  FakeAgent agent(Socket(), agent_options);
  FakeAgent::Options second;
  second.policy.limit = 2 * kGiB;
  FakeAgent other(dir.Socket(kSecondGpu, 3), second);
  TenantProcess tenant(
      dir, {.slots = std::string(kGpu) + "::0," + kSecondGpu + "::3"});
  tenant.Do("open");
  tenant.Do("second_gpu");
  EXPECT_EQ(tenant.Do(Alloc(1000, 6 * kGiB)), "0 6442450944");
  EXPECT_EQ(tenant.Do("alloc_under 512 2000 " + std::to_string(2 * kGiB)), "0");
  EXPECT_EQ(tenant.Do("alloc_under 512 2001 1"), "81");
  EXPECT_TRUE(agent.Wait(Uses(6 * kGiB)));
  EXPECT_TRUE(other.Wait(Uses(2 * kGiB)));
  // Given back where it was taken, whatever was used last.
  EXPECT_EQ(tenant.Do("free 2000"), "0");
  EXPECT_TRUE(other.Wait(Uses(0)));
  EXPECT_EQ(agent.Get().Used(), 6 * kGiB);
  EXPECT_EQ(tenant.Do("alloc_under 512 2001 " + std::to_string(2 * kGiB)), "0");
  EXPECT_EQ(tenant.Do("free 1000"), "0");
  EXPECT_TRUE(agent.Wait(Uses(0)));
  EXPECT_EQ(other.Get().Used(), 2 * kGiB);
}

TEST_F(ShimMemory, TwoSlotsOfOneGpuAddUp) {
  FakeAgent agent(Socket(), agent_options), more(dir.Socket(kGpu, 1), {});
  TenantProcess tenant(dir,
                       {.slots = std::string(kGpu) + "::0," + kGpu + "::1"});
  tenant.Do("open");
  EXPECT_EQ(tenant.Do("view 27"), std::to_string(16 * kGiB / 1024));
  EXPECT_EQ(tenant.Do(Alloc(1000, 6 * kGiB)), "0 6442450944");
  EXPECT_EQ(tenant.Do(Alloc(1001, 6 * kGiB)), "0 6442450944");
  EXPECT_THAT(tenant.Do(Alloc(1002, 6 * kGiB)), HasSubstr(kDenied));
}

TEST_F(ShimMemory, AGpuWithoutASlotOfOursIsNotOurs) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do("second_gpu");
  EXPECT_EQ(tenant.Do("alloc_under 512 2000 " + std::to_string(20 * kGiB)),
            "0");
  EXPECT_EQ(agent.Get().Used(), 0u);
}

TEST_F(ShimMemory, OfSeveralSlotsAnUnknownGpuIsNotChargedAndReported) {
  FakeAgent agent(Socket(), agent_options),
      other(dir.Socket(kSecondGpu, 0), {});
  TenantProcess tenant(
      dir, {.slots = std::string(kGpu) + "::0," + kSecondGpu + "::0"});
  tenant.Do("open");
  EXPECT_EQ(tenant.Do("device_only 768"), "0");
  EXPECT_EQ(tenant.Do("alloc_under 768 3000 4096"), "0");
  EXPECT_TRUE(agent.Wait([](const auto& s) {
    return s.Has(wire::Reason::kUnknownGpu) && s.Used() == 0 &&
           s.Counter(wire::Counter::kUncharged) == 1;
  }));
}

TEST_F(ShimMemory, WithoutRoomForItsTablesTheProgramRunsOn) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  for (int i = 0; i < 150; ++i) tenant.Do(Alloc(1000 + i, 4096));
  EXPECT_EQ(tenant.Do("no_more_memory"), "0");
  for (int i = 150; i < 250; ++i) {
    EXPECT_EQ(tenant.Do(Alloc(1000 + i, 4096)), "0 4096") << i;
  }
  EXPECT_TRUE(agent.Wait([](const auto& s) {
    return s.Has(wire::Reason::kTableFull) &&
           s.Counter(wire::Counter::kUncharged) > 0;
  }));
  for (int i = 0; i < 250; ++i) {
    EXPECT_EQ(tenant.Do("free " + std::to_string(1000 + i)), "0");
  }
  EXPECT_TRUE(agent.Wait(Uses(0)));
}

TEST_F(ShimMemory, EnforceAfterHmmWasLeftOnIsReported) {
  agent_options.policy.memory = wire::Memory::kObserve;
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do("group 10");
  tenant.Do("uvm_init");
  agent_options.policy.memory = wire::Memory::kEnforce;
  agent.SendPolicy(agent_options.policy);
  EXPECT_TRUE(
      agent.Wait([](const auto& s) { return s.Has(wire::Reason::kHmmOn); }));
}

TEST_F(ShimMemory, ManagedMemoryIsANumberOfItsOwn) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  EXPECT_EQ(tenant.Do("uvm_init"), "0");
  EXPECT_THAT(tenant.Do("log"), HasSubstr("hmm off"));
  const uint64_t at = 1ull << 44;
  const std::string here = std::to_string(at);
  EXPECT_EQ(tenant.Do("managed " + here + " " + std::to_string(3 * kGiB)),
            "ok");
  ASSERT_TRUE(agent.Wait(Uses(3 * kGiB)));
  const FakeAgentState state = agent.Get();
  for (const auto& [id, block] : state.held.begin()->second) {
    EXPECT_EQ(block.kind, wire::Kind::kManaged);
  }
  EXPECT_EQ(tenant.Do("managed " + std::to_string(at + 8 * kGiB) + " " +
                      std::to_string(6 * kGiB)),
            "errno 12");
  // A hole in the middle, an edge mapped over, then all of it.
  tenant.Do("unmap " + std::to_string(at + kGiB) + " " + std::to_string(kGiB));
  EXPECT_TRUE(agent.Wait(Uses(2 * kGiB)));
  tenant.Do("map_over " + here + " " + std::to_string(kGiB / 2));
  EXPECT_TRUE(agent.Wait(Uses(3 * kGiB / 2)));
  tenant.Do("unmap " + here + " " + std::to_string(4 * kGiB));
  EXPECT_TRUE(agent.Wait(Uses(0)));
}

TEST_F(ShimMemory, ManagedMemoryMayBeIgnored) {
  agent_options.policy.managed = wire::Managed::kIgnore;
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do("uvm_init");
  EXPECT_EQ(tenant.Do("managed " + std::to_string(1ull << 44) + " " +
                      std::to_string(100 * kGiB)),
            "ok");
  EXPECT_EQ(tenant.Do(Alloc(1000, 8 * kGiB)), "0 8589934592");
  EXPECT_TRUE(agent.Wait(Uses(8 * kGiB)));
}

TEST_F(ShimMemory, PoolsAndPeersAreNotManaged) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do("uvm_init");
  const std::string range = std::to_string(1ull << 44) + " 1048576";
  for (const std::string what : {"pool ", "p2p_range "}) {
    EXPECT_EQ(tenant.Do(what + range), "0");
    EXPECT_EQ(tenant.Do("managed " + range), "ok");
    EXPECT_EQ(agent.Get().Used(), 0u) << what;
    tenant.Do("unmap " + range);
    EXPECT_EQ(tenant.Do("managed " + range), "ok");
    EXPECT_TRUE(agent.Wait(Uses(1048576))) << "an ordinary range now";
    tenant.Do("unmap " + range);
    EXPECT_TRUE(agent.Wait(Uses(0)));
  }
}

TEST_F(ShimMemory, EightThreadsNeverPassTheLimit) {
  agent_options.policy.limit = 100 << 20;
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  EXPECT_EQ(tenant.Do("threads 8 300 1048576"), "100");
  EXPECT_EQ(tenant.Do("in_use"), std::to_string(100 << 20));
  EXPECT_TRUE(agent.Wait(Uses(100 << 20)));
}

TEST_F(ShimMemory, ErrnoIsKept) {
  FakeAgent agent(Socket(), agent_options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  EXPECT_EQ(tenant.Do("errno_kept 1000 1048576"), "77");
  EXPECT_EQ(tenant.Do("errno_kept 1001 " + std::to_string(100 * kGiB)), "77");
}

}  // namespace
}  // namespace rondo
