// SPDX-License-Identifier: Apache-2.0
#include "share/slot_stats.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::share {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

TEST(AttachedPids, AreThoseOfTheGpusSlotsOrNotKnown) {
  ShareStats stats;
  const auto add = [&](const char* uuid, std::vector<ProcessStats> processes) {
    SlotStats slot;
    slot.gpu_uuid = uuid;
    slot.processes = std::move(processes);
    stats.slots.push_back(slot);
  };
  add("GPU-0", {{.pid = 20}, {.pid = 10}});
  add("GPU-0", {{.pid = 30}});
  add("GPU-1", {{.pid = 40}});
  EXPECT_THAT(AttachedPids(stats, "GPU-0"), Optional(ElementsAre(10, 20, 30)));
  EXPECT_THAT(AttachedPids(stats, "GPU-2"), Optional(IsEmpty()));
  add("GPU-1", {{.pid = 0}});
  EXPECT_FALSE(AttachedPids(stats, "GPU-1")) << "one that cannot be seen";
  EXPECT_TRUE(AttachedPids(stats, "GPU-0"));
}

}  // namespace
}  // namespace rondo::share
