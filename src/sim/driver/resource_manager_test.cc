// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/resource_manager.h"

#include <cerrno>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rm/facts.h"
#include "rm/sharing.h"
#include "sim/driver/test_client.h"

namespace rondo::sim::driver {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr int64_t kMs = 1'000'000;

CardOptions H200() {
  return {.uuid = "GPU-00000000-0000-4000-8000-000000000000",
          .total_kib = 147221504,
          .heap_kib = 146591680};
}

class ResourceManagerTest : public testing::Test {
 protected:
  TestClient Connect(uint64_t connection, uint32_t pid = 100,
                     uint32_t uid = 1000) {
    return TestClient([=, this](uint32_t nr, void* arg, uint32_t size,
                                void* params, uint32_t params_size) {
      const Answer answer = rm_.Escape(
          {connection, pid, uid}, nr, {static_cast<uint8_t*>(arg), size},
          {static_cast<uint8_t*>(params), params_size}, other_);
      delay_ns_ = answer.delay_ns;
      return answer.error;
    });
  }
  TestClient Opened(uint64_t connection, uint32_t pid = 100,
                    uint32_t uid = 1000) {
    TestClient client = Connect(connection, pid, uid);
    client.Open();
    EXPECT_EQ(client.status, rm::kOk);
    return client;
  }
  uint32_t Take(TestClient* client, uint64_t bytes, uint32_t* handle) {
    return client->Memory(&bytes, handle);
  }

  Card card_{H200()}, second_{H200()};
  ResourceManager rm_{
      {&card_, &second_}, "580.159.04", SharedMemory::Create(sizeof(Doorbell))};
  uint64_t other_ = 0;
  int64_t delay_ns_ = 0;
};

TEST_F(ResourceManagerTest, RoundsMemoryByItsPages) {
  TestClient c = Opened(1);
  const struct {
    uint32_t attr;
    uint64_t asked, got;
  } kCases[] = {{3u << 23, 1, 2 * kMiB},
                {3u << 23, 70 * kMiB, 70 * kMiB},
                {0, 1, 64 << 10},
                {1u << 23, 4097, 8 << 10}};
  uint64_t sum = 0;
  for (const auto& t : kCases) {
    uint64_t bytes = t.asked;
    uint32_t handle = 0;
    EXPECT_EQ(c.Memory(&bytes, &handle, t.attr), rm::kOk);
    EXPECT_EQ(bytes, t.got);
    sum += bytes;
  }
  EXPECT_EQ(card_.used_bytes(), sum);
  EXPECT_EQ(second_.used_bytes(), 0u);
}

TEST_F(ResourceManagerTest, SaysNoMemoryWhenTheCardIsFullAndGoesOn) {
  TestClient c = Opened(1);
  uint32_t a = 0, b = 0, d = 0;
  EXPECT_EQ(Take(&c, 143000 * kMiB, &a), rm::kOk);
  EXPECT_EQ(Take(&c, 200 * kMiB, &b), rm::kNoMemory);
  EXPECT_EQ(c.error, 0);
  EXPECT_EQ(Take(&c, 100 * kMiB, &d), rm::kOk);
  EXPECT_EQ(c.Free(a), rm::kOk);
  b = 0;
  EXPECT_EQ(Take(&c, 200 * kMiB, &b), rm::kOk);
  EXPECT_EQ(card_.used_bytes(), 300 * kMiB);
}

TEST_F(ResourceManagerTest, FreesWithAnyAncestorAndWithTheDescriptor) {
  TestClient c = Opened(1), d = Opened(2);
  uint32_t handle = 0;
  Take(&c, 10 * kMiB, &handle);
  Take(&d, 20 * kMiB, &(handle = 0));
  EXPECT_EQ(c.Free(c.device), rm::kOk);
  EXPECT_EQ(card_.used_bytes(), 20 * kMiB);
  EXPECT_EQ(d.Free(d.client), rm::kOk);
  EXPECT_EQ(card_.used_bytes(), 0u);
  TestClient e = Opened(3);
  Take(&e, 30 * kMiB, &(handle = 0));
  rm_.CloseConnection(3);
  EXPECT_EQ(card_.used_bytes(), 0u);
}

TEST_F(ResourceManagerTest, RefusesWhatAnotherDescriptorMade) {
  TestClient c = Opened(1), d = Opened(2);
  uint32_t group = 0, channel = 0;
  ASSERT_EQ(c.Group(&group, &channel), rm::kOk);
  EXPECT_EQ(d.SetSlice(group, 100, c.client), rm::kInvalidClient);
  EXPECT_EQ(delay_ns_, 37'000);
  EXPECT_EQ(c.GetSlice(group), rm::kDefaultCopySliceUs);
}

TEST_F(ResourceManagerTest, DupsKeepMemoryAndChargeTheOldest) {
  TestClient a = Opened(1, 100), b = Opened(2, 100), other = Opened(3, 200);
  uint32_t block = 0, dup = 0, none = 0;
  ASSERT_EQ(Take(&a, 8 * kMiB, &block), rm::kOk);
  EXPECT_EQ(other.Dup(a.client, block, &none), kInsufficientPermissions);
  ASSERT_EQ(b.Dup(a.client, block, &dup), rm::kOk);
  EXPECT_EQ(card_.used_bytes(), 8 * kMiB);
  EXPECT_EQ(a.Charged(100).owned_bytes, 8 * kMiB);
  EXPECT_EQ(a.Free(block), rm::kOk);
  EXPECT_EQ(card_.used_bytes(), 8 * kMiB);
  EXPECT_EQ(a.Charged(100).private_bytes, 8 * kMiB);
  EXPECT_EQ(b.Free(dup), rm::kOk);
  EXPECT_EQ(card_.used_bytes(), 0u);
}

TEST_F(ResourceManagerTest, ExportedMemoryLivesWithItsDescriptor) {
  TestClient a = Opened(1, 100), b = Opened(2, 200);
  uint32_t block = 0;
  ASSERT_EQ(Take(&a, 8 * kMiB, &block), rm::kOk);
  rm::ExportToFdParams out{};
  out.object = block;
  other_ = 50;
  EXPECT_EQ(a.Control(a.client, rm::kCtrlExportToFd, &out, sizeof(out)),
            rm::kOk);
  EXPECT_EQ(a.Free(block), rm::kOk);
  EXPECT_EQ(card_.used_bytes(), 8 * kMiB);
  EXPECT_EQ(a.Charged(100).private_bytes, 0u);
  rm::ImportFromFdParams in{};
  in.parent = b.device;
  EXPECT_EQ(b.Control(b.client, rm::kCtrlImportFromFd, &in, sizeof(in)),
            rm::kOk);
  EXPECT_EQ(b.Charged(200).private_bytes, 8 * kMiB);
  other_ = 0;
  EXPECT_EQ(b.Free(in.object), rm::kOk);
  EXPECT_EQ(card_.used_bytes(), 8 * kMiB);
  rm_.CloseConnection(50);
  EXPECT_EQ(card_.used_bytes(), 0u);
}

TEST_F(ResourceManagerTest, ATagGoesAlongWithEveryNewHandle) {
  TestClient a = Opened(1, 100), b = Opened(2, 200);
  uint32_t block = 0, older = 0, dup = 0;
  ASSERT_EQ(Take(&a, 8 * kMiB, &block), rm::kOk);
  ASSERT_EQ(a.Dup(a.client, block, &older), rm::kOk);
  const auto tag = [](TestClient& c, uint32_t object) {
    rm::TagParams params{1};
    EXPECT_EQ(c.Control(object, rm::kCtrlGetTag, &params, sizeof(params)),
              rm::kOk);
    return params.tag;
  };
  rm::TagParams params{0xcafe};
  EXPECT_EQ(a.Control(block, rm::kCtrlSetTag, &params, sizeof(params)),
            rm::kOk);
  ASSERT_EQ(a.Dup(a.client, block, &dup), rm::kOk);
  EXPECT_EQ(tag(a, dup), 0xcafeu);
  EXPECT_EQ(tag(a, older), 0u) << "each handle has its own";
  rm::ExportToFdParams out{};
  out.object = block;
  other_ = 50;
  ASSERT_EQ(a.Control(a.client, rm::kCtrlExportToFd, &out, sizeof(out)),
            rm::kOk);
  rm::ImportFromFdParams in{};
  in.parent = b.device;
  ASSERT_EQ(b.Control(b.client, rm::kCtrlImportFromFd, &in, sizeof(in)),
            rm::kOk);
  EXPECT_EQ(tag(b, in.object), 0xcafeu);
  rm::SurfaceInfo list[] = {{rm::kSurfaceSize, 0},
                            {rm::kSurfaceAddressSpace, 0}};
  EXPECT_EQ(b.Control(in.object, rm::kCtrlSurfaceInfo, list, sizeof(list)),
            rm::kOk);
  EXPECT_EQ(list[0].data * rm::kSurfaceSizeUnit, 8 * kMiB);
  EXPECT_EQ(list[1].data, rm::kAddressSpaceVideo);
  EXPECT_EQ(b.Control(b.device, rm::kCtrlGetTag, &params, sizeof(params)),
            rm::kNotSupported);
}

TEST_F(ResourceManagerTest, ShowsMemoryAsTheCardDoes) {
  TestClient c = Opened(1);
  uint32_t handle = 0;
  Take(&c, 518 * kMiB, &handle);
  EXPECT_EQ(c.FbInfo(rm::kFbTotalRam), 147221504u);
  EXPECT_EQ(c.FbInfo(rm::kFbHeapSize), 146591680u);
  EXPECT_EQ(c.FbInfo(rm::kFbHeapFree), 146591680u - 518 * 1024);
  c.FbInfo(rm::kFbHeapFree, 460);
  EXPECT_EQ(c.status, rm::kInvalidParamStruct);
  EXPECT_EQ(c.Charged(100).private_bytes, 518 * kMiB);
  rm::VidHeapArg heap{};
  heap.client = c.client;
  heap.parent = c.device;
  heap.function = rm::kHeapInfo;
  rm_.Escape({1, 100, 0}, rm::kEscVidHeap,
             {reinterpret_cast<uint8_t*>(&heap), sizeof(heap)}, {}, 0);
  EXPECT_EQ(heap.status, rm::kOk);
  EXPECT_EQ(heap.free, (146591680ull - 518 * 1024) * 1024);
}

TEST_F(ResourceManagerTest, WantsExactSizes) {
  TestClient c = Opened(1);
  uint32_t group = 0, channel = 0;
  ASSERT_EQ(c.Group(&group, &channel), rm::kOk);
  rm::TimesliceParams slice{5};
  EXPECT_EQ(c.Control(group, rm::kCtrlSetTimeslice, &slice, 4),
            rm::kInvalidParamStruct);
  EXPECT_EQ(c.Control(group, 0xa06c0199, &slice, 8), rm::kNotSupported);
  EXPECT_EQ(c.Control(c.subdevice, rm::kCtrlSetTimeslice, &slice, 8),
            rm::kNotSupported);
  uint8_t arg[40] = {};
  EXPECT_EQ(rm_.Escape({1, 100, 0}, rm::kEscAlloc, {arg, 40}, {}, 0).error,
            EINVAL);
  uint32_t handle = 0;
  EXPECT_EQ(c.Alloc(c.device, 0x1234, nullptr, 0, &handle), kInvalidClass);
}

TEST_F(ResourceManagerTest, SlicesAreReadBackAndTakeTheirTime) {
  TestClient c = Opened(1);
  uint32_t group = 0, channel = 0;
  ASSERT_EQ(c.Group(&group, &channel), rm::kOk);
  EXPECT_EQ(c.SetSlice(group, 9000), rm::kOk);
  EXPECT_EQ(delay_ns_, 165'000);
  EXPECT_EQ(c.GetSlice(group), 9000u);
  EXPECT_EQ(c.SetSlice(group, 0), rm::kInvalidArgument);
}

// Work enters by the group's page, as from libcuda.
class WorkingTest : public ResourceManagerTest {
 protected:
  struct Tenant {
    TestClient client;
    uint32_t group = 0, channel = 0;
    GroupPage* page = nullptr;
    std::shared_ptr<SharedMemory> memory;
  };
  Tenant Busy(uint64_t connection, uint32_t pid, uint64_t slice_us) {
    Tenant t{Opened(connection, pid)};
    EXPECT_EQ(t.client.Group(&t.group, &t.channel), rm::kOk);
    EXPECT_EQ(t.client.SetSlice(t.group, slice_us), rm::kOk);
    t.memory = rm_.objects()->Find(t.client.client)->Find(t.group)->memory;
    t.page = t.memory->As<GroupPage>();
    Ring& ring = t.page->rings[0];
    for (uint32_t i = 0; i < kRingEntries; ++i)
      ring.entries[i] = {.duration_ns = 10 * kMs};
    ring.put = kRingEntries;
    card_.Poll(/*coupled_only=*/false);
    return t;
  }
};

TEST_F(WorkingTest, AnyClientSuspendsAndResumes) {
  Tenant a = Busy(1, 100, 2048), b = Busy(2, 200, 2048);
  TestClient agent = Opened(3, 300, 0);
  card_.AdvanceTo(100 * kMs);
  EXPECT_EQ(agent.Suspend(a.client.client, a.channel, true), rm::kOk);
  EXPECT_EQ(delay_ns_, 900'000);
  const uint64_t before = a.page->rings[0].done;
  const uint64_t b_before = b.page->rings[0].done;
  card_.AdvanceTo(1100 * kMs);
  EXPECT_LE(a.page->rings[0].done, before);
  EXPECT_GE(b.page->rings[0].done, b_before + 98);
  EXPECT_EQ(agent.Suspend(a.client.client, a.channel, false), rm::kOk);
  EXPECT_EQ(delay_ns_, 550'000);
  card_.AdvanceTo(2100 * kMs);
  EXPECT_GE(a.page->rings[0].done, before + 40);
  EXPECT_EQ(agent.Suspend(a.client.client, 0x1234, true), kInvalidChannel);
  EXPECT_EQ(agent.Suspend(0x1234, a.channel, true), kInvalidChannel);
}

TEST_F(WorkingTest, SuspensionsAreCountedAndResumesAreNot) {
  Tenant a = Busy(1, 100, 2048);
  TestClient agent = Opened(3, 300, 0);
  auto runs = [&, now = 100 * kMs]() mutable {
    const uint64_t before = a.page->rings[0].done;
    now += 300 * kMs;
    card_.AdvanceTo(now);
    return a.page->rings[0].done > before + 10;
  };
  const auto suspend = [&](bool off) {
    EXPECT_EQ(agent.Suspend(a.client.client, a.channel, off), rm::kOk);
  };
  suspend(false);
  EXPECT_TRUE(runs());
  suspend(true);
  EXPECT_FALSE(runs());
  suspend(true);
  suspend(false);
  EXPECT_FALSE(runs());
  suspend(false);
  EXPECT_TRUE(runs());
}

TEST_F(WorkingTest, TheCardCountsWhatIsDoneToIt) {
  Tenant a = Busy(1, 100, 2048), b = Busy(2, 200, 20);
  TestClient agent = Opened(3, 300, 0);
  EXPECT_EQ(agent.Suspend(b.client.client, b.channel, true), rm::kOk);
  EXPECT_EQ(agent.Suspend(b.client.client, 0x1234, true), kInvalidChannel);
  EXPECT_EQ(card_.counts()->slices, 2u);
  EXPECT_EQ(card_.counts()->least_slice_us, 20u);
  EXPECT_EQ(card_.counts()->most_slice_us, 2048u);
  EXPECT_EQ(card_.counts()->suspensions, 1u) << "a refused one is none";
  EXPECT_EQ(card_.counts()->resumptions, 0u);
  card_.AdvanceTo(100 * kMs);
  const uint64_t alone = card_.counts()->switches;
  EXPECT_LE(alone, 1u);
  EXPECT_EQ(agent.Suspend(b.client.client, b.channel, false), rm::kOk);
  EXPECT_EQ(card_.counts()->resumptions, 1u);
  card_.AdvanceTo(200 * kMs);
  EXPECT_GT(card_.counts()->switches, alone + 20);
}

TEST_F(WorkingTest, ATenantThatDiesSuspendedLeavesTheOtherTheCard) {
  Tenant a = Busy(1, 100, 2048), b = Busy(2, 200, 2048);
  TestClient agent = Opened(3, 300, 0);
  card_.AdvanceTo(100 * kMs);
  EXPECT_EQ(agent.Suspend(a.client.client, a.channel, true), rm::kOk);
  rm_.CloseConnection(1);
  const uint64_t before = b.page->rings[0].done;
  card_.AdvanceTo(1100 * kMs);
  EXPECT_GE(b.page->rings[0].done, before + 98);
}

// 9 ms : 3 ms come out as 3 : 1 in the log, with the gaps of the card.
TEST_F(WorkingTest, TheLogHoldsTheShares) {
  TestClient agent = Opened(9, 900, 0);
  uint32_t header = 0, records = 0, buffer = 0;
  rm::MemoryParams memory{};
  memory.attr = rm::kAttrCoherencyCached | rm::kAttrLocationPci;
  memory.size = SwitchLog::kHeaderBytes;
  memory.attr2 = rm::kAttr2UserReadOnly;
  ASSERT_EQ(agent.Alloc(agent.client, rm::kClassMemoryEventBuffer, &memory,
                        sizeof(memory), &header),
            rm::kOk);
  constexpr uint32_t kRecords = 4096;
  memory.size = kRecords * sizeof(rm::SwitchRecord);
  ASSERT_EQ(agent.Alloc(agent.client, rm::kClassMemoryEventBuffer, &memory,
                        sizeof(memory), &records),
            rm::kOk);
  rm::EventBufferParams params{};
  params.record_size = sizeof(rm::SwitchRecord);
  params.record_count = kRecords;
  params.subdevice = agent.subdevice;
  params.header_memory = header;
  params.record_memory = records;
  ASSERT_EQ(agent.Alloc(agent.client, rm::kClassEventBuffer, &params,
                        sizeof(params), &buffer),
            rm::kOk);
  rm::MapMemoryArg map{};
  map.client = map.device = agent.client;
  map.memory = header;
  map.length = SwitchLog::kHeaderBytes;
  for (const uint32_t access : {0u, rm::kMapReadOnly}) {
    map.flags = access;
    rm_.Escape({9, 900, 0}, rm::kEscMapMemory,
               {reinterpret_cast<uint8_t*>(&map), sizeof(map)}, {}, 77);
    EXPECT_EQ(map.status, access != 0 ? rm::kOk : rm::kInvalidArgument);
  }
  rm::BindFecsParams bind{};
  bind.event_buffer = buffer;
  bind.record_size = sizeof(rm::SwitchRecord);
  bind.level = 1;
  bind.all_users = 1;
  ASSERT_EQ(
      agent.Control(agent.subdevice, rm::kCtrlBindFecs, &bind, sizeof(bind)),
      rm::kOk);
  rm::EventEnableParams enable{.enable = 1, .pad = {}, .flags = 1};
  ASSERT_EQ(
      agent.Control(buffer, rm::kCtrlEventEnable, &enable, sizeof(enable)),
      rm::kOk);

  Tenant a = Busy(1, 100, 9000), b = Busy(2, 200, 3000);
  card_.AdvanceTo(5000 * kMs);
  ASSERT_EQ(agent.Control(buffer, rm::kCtrlEventFlush, nullptr, 0), rm::kOk);

  Client* const client = rm_.objects()->Find(agent.client);
  const auto* const head =
      client->Find(header)->memory->As<const rm::EventHeader>();
  const auto* const list =
      client->Find(records)->memory->As<const rm::SwitchRecord>();
  EXPECT_EQ(head->drops, 0u);
  EXPECT_EQ(head->count, head->put);
  ASSERT_GT(head->put, 700u);
  std::map<uint32_t, uint64_t> ran;
  for (uint32_t i = 1; i < head->put; ++i) {
    const rm::SwitchRecord &r = list[i], &before = list[i - 1];
    EXPECT_EQ(r.seqno, static_cast<uint16_t>(before.seqno + 1));
    if (r.tag == 7) {
      EXPECT_EQ(r.pid, before.pid);
      ran[r.pid] += r.ns - before.ns;
    } else {
      EXPECT_EQ(r.tag, 6);
      EXPECT_EQ(r.ns - before.ns, 82'000u);
    }
  }
  EXPECT_NEAR(ran[100] / 5e9, 0.740, 0.002);
  EXPECT_NEAR(ran[200] / 5e9, 0.247, 0.002);
}

TEST_F(WorkingTest, AFullLogDropsTheNewestAndCounts) {
  auto header = SharedMemory::Create(SwitchLog::kHeaderBytes);
  auto records = SharedMemory::Create(4 * sizeof(rm::SwitchRecord));
  SwitchLog log(header, records, 4);
  log.Bind(1000, /*admin=*/false);
  log.Enable(true);
  for (uint32_t i = 0; i < 5; ++i) log.Add({true, 1, i, i % 2 * 1000, i});
  log.Drain();
  const auto* const head = header->As<const rm::EventHeader>();
  const auto* const list = records->As<const rm::SwitchRecord>();
  EXPECT_EQ(head->put, 3u);
  EXPECT_EQ(head->drops, 2u);
  EXPECT_EQ(list[1].pid, 1u);
  // Of another user, seen without privilege.
  EXPECT_EQ(list[2].pid, 0u);
  EXPECT_EQ(list[2].context, 0u);
  log.SetGet(3);
  log.Add({true, 1, 9, 1000, 9});
  log.Drain();
  EXPECT_EQ(head->put, 0u);
  EXPECT_EQ(list[3].pid, 9u);
}

}  // namespace
}  // namespace rondo::sim::driver
