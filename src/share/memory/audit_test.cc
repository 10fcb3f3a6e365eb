// SPDX-License-Identifier: Apache-2.0
#include "share/memory/audit.h"

#include "gtest/gtest.h"

namespace rondo::share {
namespace {

Audit::Process Holds(uint32_t pid, uint64_t bytes) {
  return {"G::0", pid, bytes, bytes};
}

TEST(Audit, EqualIsSilentAndKnown) {
  Audit audit;
  for (int round = 0; round < 3; ++round)
    EXPECT_TRUE(audit.Compare({Holds(7, 100)}, {{7, 100}}).empty());
  EXPECT_EQ(audit.difference("G::0"), 0);
  EXPECT_EQ(audit.driver_bytes(7), 100u);
  EXPECT_EQ(audit.alarms("G::0"), 0u);
}

TEST(Audit, UnseenMemoryIsAnAlarmInTheSecondRound) {
  Audit audit;
  EXPECT_TRUE(audit.Compare({Holds(7, 100)}, {{7, 150}}).empty());
  EXPECT_EQ(audit.difference("G::0"), 50) << "a number at once";
  const auto alarms = audit.Compare({Holds(7, 100)}, {{7, 150}});
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_EQ(alarms[0].pid, 7u);
  EXPECT_EQ(alarms[0].difference, 50);
  EXPECT_TRUE(audit.Compare({Holds(7, 100)}, {{7, 160}}).empty()) << "no news";
  EXPECT_EQ(audit.Compare({Holds(7, 100)}, {{7, 300}}).size(), 1u);
  EXPECT_EQ(audit.alarms("G::0"), 2u);
}

TEST(Audit, AMissingChargeIsADifferenceToo) {
  Audit audit;
  audit.Compare({Holds(7, 100)}, {{7, 60}});
  EXPECT_EQ(audit.Compare({Holds(7, 100)}, {{7, 60}})[0].difference, -40);
}

// A program that allocates all the time: each reading meets a reservation whose
// driver call is on its way.
TEST(Audit, AReservationOnItsWayIsNoMissingCharge) {
  Audit audit;
  for (uint64_t held : {100, 140, 180, 220})
    EXPECT_TRUE(audit.Compare({Holds(7, held)}, {{7, held - 40}}).empty());
  EXPECT_EQ(audit.Compare({Holds(7, 220)}, {{7, 180}}).size(), 1u)
      << "the ledger stood still";
}

TEST(Audit, ADifferenceThatGoesIsForgotten) {
  Audit audit;
  audit.Compare({Holds(7, 100)}, {{7, 150}});
  audit.Compare({Holds(7, 150)}, {{7, 150}});
  EXPECT_TRUE(audit.Compare({Holds(7, 150)}, {{7, 200}}).empty());
}

TEST(Audit, WhatMovedBetweenTheReadingsIsNoDifference) {
  Audit audit;
  const Audit::Process moving{"G::0", 7, 100, 300};
  for (uint64_t driver : {100, 200, 300}) {
    audit.Compare({moving}, {{7, driver}});
    EXPECT_EQ(audit.difference("G::0"), 0) << driver;
  }
}

TEST(Audit, ConnectionsOfOnePidAreOne) {
  Audit audit;
  audit.Compare({Holds(7, 100), Holds(7, 50)}, {{7, 150}});
  EXPECT_EQ(audit.difference("G::0"), 0);
}

TEST(Audit, InAnotherPidNamespaceNothingIsKnown) {
  Audit audit;
  for (int round = 0; round < 3; ++round)
    EXPECT_TRUE(
        audit.Compare({Holds(7, 100), Holds(8, 5)}, {{7, 0}, {8, 0}}).empty());
  EXPECT_FALSE(audit.difference("G::0").has_value());
  EXPECT_FALSE(audit.driver_bytes(7).has_value());
}

}  // namespace
}  // namespace rondo::share
