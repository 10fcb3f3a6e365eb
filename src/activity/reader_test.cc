// SPDX-License-Identifier: Apache-2.0
#include "activity/reader.h"

#include <atomic>

#include "gtest/gtest.h"
#include "rm/test_driver.h"

namespace rondo::activity {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A driver whose GPU runs process 7 for 30 of every 100 us of a fake clock that
// moves with each flush.
class Ring {
 public:
  explicit Ring(rm::TestDriver* driver) : driver_(driver) {
    driver->on_flush = [this] { Flush(); };
  }
  uint64_t now_ns() const { return now_ns_; }

 private:
  void Flush() {
    std::lock_guard lock(driver_->mutex);
    for (int i = 0; i < 10; ++i) {
      Put(6, now_ns_ + 10'000);
      Put(7, now_ns_ + 40'000);
      now_ns_ += 100'000;
    }
  }
  void Put(uint8_t tag, uint64_t ns) {
    const uint32_t capacity = static_cast<uint32_t>(driver_->ring.size());
    rm::EventHeader& header = driver_->ring_header;
    if ((header.put + 1) % capacity == header.get) {
      ++header.drops;
      return;
    }
    rm::SwitchRecord& record = driver_->ring[header.put];
    record = {};
    record.tag = tag;
    record.pid = 7;
    record.ns = ns;
    header.put = (header.put + 1) % capacity;
  }

  rm::TestDriver* const driver_;
  std::atomic<uint64_t> now_ns_{1'000'000'000};
};

Reader::Options OptionsFor(const Ring& ring, uint32_t records = 64) {
  Reader::Options options;
  options.interval = milliseconds(1);
  options.log.records = records;
  options.log.wall_clock = [&ring] { return ring.now_ns(); };
  return options;
}

// Waits for the n-th report.
class Reports {
 public:
  Reader::OnReport Callback() {
    return [this](const std::string& uuid, const Report& report) {
      std::lock_guard lock(mutex_);
      uuid_ = uuid;
      last_ = report;
      ++count_;
      came_.notify_all();
    };
  }
  bool Await(int n) {
    std::unique_lock lock(mutex_);
    return came_.wait_for(lock, std::chrono::seconds(20),
                          [&] { return count_ >= n; });
  }
  Report last() {
    std::lock_guard lock(mutex_);
    return last_;
  }
  std::string uuid() {
    std::lock_guard lock(mutex_);
    return uuid_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  int count_ = 0;
  Report last_;
  std::string uuid_;
};

TEST(Reader, ReportsAndAddsUp) {
  rm::TestDriver driver;
  Ring ring(&driver);
  Reports reports;
  Reader reader(driver, OptionsFor(ring), reports.Callback());
  ASSERT_TRUE(reports.Await(20));
  EXPECT_EQ(reports.uuid(), "GPU-0");
  const Report last = reports.last();
  ASSERT_EQ(last.processes.size(), 1u);
  EXPECT_EQ(last.processes[0].busy_ns, 300'000u);
  EXPECT_EQ(last.processes[0].idle_ns, 60'000u);
  EXPECT_EQ(last.interval_ns, 1'000'000u);
  const AccountStats stats = reader.Snapshot();
  const GpuAccount& gpu = stats.gpus.at("GPU-0");
  EXPECT_TRUE(gpu.ready);
  EXPECT_EQ(gpu.drops, 0u);
  EXPECT_EQ(gpu.processes.at(7).busy_ns * 10, gpu.observed_ns * 3);
}

TEST(Reader, AFullRingIsCountedAndInventsNothing) {
  rm::TestDriver driver;
  Ring ring(&driver);
  Reports reports;
  Reader reader(driver, OptionsFor(ring, 8), reports.Callback());
  ASSERT_TRUE(reports.Await(20));
  const GpuAccount gpu = reader.Snapshot().gpus.at("GPU-0");
  EXPECT_GT(gpu.drops, 0u);
  EXPECT_LE(gpu.processes.at(7).busy_ns * 10, gpu.observed_ns * 3);
}

TEST(Reader, ALogThatIsRefusedHasItsReasonInTheStats) {
  rm::TestDriver driver;
  driver.bind_status = 0x1b;
  Ring ring(&driver);
  Reports reports;
  Reader reader(driver, OptionsFor(ring), reports.Callback());
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (reader.Snapshot().gpus.empty() &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  const GpuAccount gpu = reader.Snapshot().gpus.at("GPU-0");
  EXPECT_FALSE(gpu.ready);
  EXPECT_NE(gpu.problem.find("0x1b"), std::string::npos) << gpu.problem;
}

TEST(Reader, ARaisedRateTakesEffectAtOnce) {
  rm::TestDriver driver;
  Ring ring(&driver);
  Reports reports;
  Reader::Options options = OptionsFor(ring);
  options.interval = std::chrono::hours(1);  // taken to a second at most
  Reader reader(driver, options, reports.Callback());
  ASSERT_TRUE(reports.Await(1));
  reader.SetInterval("GPU-0", microseconds(1));
  EXPECT_TRUE(reports.Await(50));
}

}  // namespace
}  // namespace rondo::activity
