// SPDX-License-Identifier: Apache-2.0
#include "activity/decoder.h"

#include <random>

#include "activity/ring.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::activity {
namespace {

constexpr uint8_t kStart = 6, kEnd = 7;

rm::SwitchRecord Record(uint8_t tag, uint32_t pid, uint64_t ns) {
  rm::SwitchRecord record{};
  record.tag = tag;
  record.pid = pid;
  record.ns = ns;
  return record;
}

TEST(Decoder, CountsWhatEachProcessRan) {
  Decoder decoder(1000);
  decoder.Add(Record(kStart, 7, 1000));
  decoder.Add(Record(kEnd, 7, 1400));
  decoder.Add(Record(kStart, 8, 1450));
  decoder.Add(Record(kEnd, 8, 1500));
  decoder.Add(Record(kStart, 7, 1600));
  decoder.Add(Record(kEnd, 7, 1700));
  const Report report = decoder.Take(2000);
  EXPECT_EQ(report.interval_ns, 1000u);
  ASSERT_EQ(report.processes.size(), 2u);
  EXPECT_EQ(report.processes[0].pid, 7u);
  EXPECT_EQ(report.processes[0].busy_ns, 500u);
  EXPECT_EQ(report.processes[0].idle_ns, 300u);
  EXPECT_EQ(report.processes[0].stays, 2u);
  EXPECT_EQ(report.processes[0].longest_ns, 400u);
  EXPECT_EQ(report.processes[0].ended, 2u);
  EXPECT_EQ(report.processes[0].ended_ns, 500u);
  EXPECT_EQ(report.processes[1].busy_ns, 50u);
  EXPECT_EQ(report.other_ns, 0u);
}

TEST(Decoder, AStayAcrossReportsIsSplitBetweenThem) {
  Decoder decoder(0);
  decoder.Add(Record(kStart, 7, 100));
  Report report = decoder.Take(1000);
  EXPECT_EQ(report.processes[0].busy_ns, 900u);
  EXPECT_EQ(report.processes[0].idle_ns, 0u);
  EXPECT_EQ(report.processes[0].ended, 0u);
  report = decoder.Take(2000);
  ASSERT_EQ(report.processes.size(), 1u);
  EXPECT_EQ(report.processes[0].busy_ns, 1000u);
  decoder.Add(Record(kEnd, 7, 2100));
  report = decoder.Take(3000);
  EXPECT_EQ(report.processes[0].busy_ns, 100u);
  EXPECT_EQ(report.processes[0].idle_ns, 900u);
  EXPECT_EQ(report.processes[0].longest_ns, 2000u) << "since it came";
  EXPECT_EQ(report.processes[0].ended, 1u);
  EXPECT_EQ(report.processes[0].ended_ns, 2000u) << "told once, where it ends";
  EXPECT_TRUE(decoder.Take(4000).processes.empty());
}

TEST(Decoder, ARecordStampedPastTheClockIsCountedOnce) {
  Decoder decoder(0);
  decoder.Add(Record(kStart, 7, 900));
  decoder.Add(Record(kEnd, 7, 1100));
  EXPECT_EQ(decoder.Take(1000).processes[0].busy_ns, 200u);
  decoder.Add(Record(kStart, 8, 1100));
  EXPECT_EQ(decoder.Take(2000).processes[0].busy_ns, 900u);
}

TEST(Decoder, HiddenAndDriverWorkIsNobodys) {
  Decoder decoder(0);
  for (uint32_t pid : {0u, 0xffffffffu}) {
    decoder.Add(Record(kStart, pid, pid == 0 ? 100 : 300));
    decoder.Add(Record(kEnd, pid, pid == 0 ? 200 : 400));
  }
  const Report report = decoder.Take(1000);
  EXPECT_TRUE(report.processes.empty());
  EXPECT_EQ(report.other_ns, 200u);
}

TEST(Decoder, LostRecordsInventNoTime) {
  Decoder decoder(0);
  decoder.Add(Record(kEnd, 7, 500));  // its start is unknown
  decoder.Add(Record(kStart, 8, 600));
  decoder.Lost();
  decoder.Add(Record(kEnd, 8, 900));
  const Report report = decoder.Take(1000);
  EXPECT_EQ(report.odd_records, 2u);
  for (const Report::Process& process : report.processes)
    EXPECT_EQ(process.busy_ns, 0u);
}

TEST(Decoder, AStartWithoutAnEndEndsTheOneBefore) {
  Decoder decoder(0);
  decoder.Add(Record(kStart, 7, 100));
  decoder.Add(Record(kStart, 8, 300));
  const Report report = decoder.Take(400);
  EXPECT_EQ(report.processes[0].busy_ns, 200u);
  EXPECT_EQ(report.processes[1].busy_ns, 100u);
  EXPECT_EQ(report.odd_records, 1u);
}

// Whatever comes, one engine has no more time than the clock.
TEST(Decoder, NeverCountsMoreThanTheClock) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Decoder decoder(0);
    uint64_t now = 0, busy = 0, latest = 0;
    for (int i = 0; i < 300; ++i) {
      if (random() % 10 == 0) {
        now += random() % 5000;
        const Report report = decoder.Take(now);
        busy += report.other_ns;
        for (const auto& process : report.processes) busy += process.busy_ns;
      } else {
        const uint64_t ns =
            now + random() % 3000 - std::min<uint64_t>(now, 500);
        latest = std::max(latest, ns);
        decoder.Add(Record(4 + random() % 5, random() % 4, ns));
      }
      if (random() % 50 == 0) decoder.Lost();
      ASSERT_LE(busy, std::max(now, latest)) << seed;
    }
  }
}

TEST(Ring, ReadsAcrossTheEndAndFromItsOwnPlace) {
  rm::EventHeader header{};
  std::vector<rm::SwitchRecord> records(4);
  for (uint32_t i = 0; i < 4; ++i) records[i].pid = i;
  header.put = 1;
  header.get = 2;  // the driver has not taken our last place back yet
  header.drops = 9;
  const RingRead read = ReadRing(&header, records.data(), 4, 3);
  EXPECT_TRUE(read.sane);
  ASSERT_EQ(read.records.size(), 2u);
  EXPECT_EQ(read.records[0].pid, 3u);
  EXPECT_EQ(read.records[1].pid, 0u);
  EXPECT_EQ(read.next_get, 1u);
  EXPECT_EQ(read.drops, 9u);
  EXPECT_TRUE(ReadRing(&header, records.data(), 4, 1).records.empty());
}

TEST(Ring, APlaceOutsideTheRingReadsNothing) {
  rm::EventHeader header{};
  std::vector<rm::SwitchRecord> records(4);
  header.put = 4;
  EXPECT_FALSE(ReadRing(&header, records.data(), 4, 0).sane);
  header.put = 0;
  EXPECT_FALSE(ReadRing(&header, records.data(), 4, 17).sane);
  EXPECT_FALSE(ReadRing(&header, records.data(), 0, 0).sane);
}

}  // namespace
}  // namespace rondo::activity
