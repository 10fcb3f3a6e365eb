// SPDX-License-Identifier: Apache-2.0
//
// The thread that drains the context-switch logs of all GPUs, each at the rate
// that is wanted of it, and keeps the totals.
//
// Threads: everything may be called from any thread; reports come on the
// reader's own and must not block it (the agent posts them to its loop).
// Failure: a GPU whose log cannot be opened has its reason in the stats and is
// tried again after retry_open; nothing is ever made up for it.

#ifndef RONDO_ACTIVITY_READER_H_
#define RONDO_ACTIVITY_READER_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "activity/decoder.h"
#include "activity/stats.h"
#include "activity/switch_log.h"
#include "rm/client.h"
#include "rm/system.h"

namespace rondo::activity {

class Reader {
 public:
  using OnReport =
      std::function<void(const std::string& gpu_uuid, const Report& report)>;

  struct Options {
    std::string dev_dir = "/dev";
    // Slow enough to cost nothing, fast enough that no ring fills.
    std::chrono::microseconds interval{250'000};
    std::chrono::milliseconds retry_open{10'000};
    // Why the logs would tell too little to be read; empty: they are read.
    std::string unusable;
    SwitchLog::Options log;
  };

  // system must outlive the object. GPUs: those that the driver has attached.
  Reader(rm::System& system, Options options, OnReport on_report);
  ~Reader();  // waits for the drain in flight

  // At least 1 ms, at most a second; other values are taken to the nearer.
  void SetInterval(const std::string& gpu_uuid,
                   std::chrono::microseconds interval);

  AccountStats Snapshot() const;

  // Whether a GPU's log is read.
  struct LogState {
    bool tried = false;  // false: it is being opened for the first time
    bool ready = false;
    std::string problem;  // why not
  };
  LogState StateOf(const std::string& gpu_uuid) const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Log {
    std::unique_ptr<SwitchLog> log;
    Time due;
  };

  void Main();
  void Open();
  Time DrainDue(Time now);
  void Count(const std::string& uuid, const SwitchLog& log,
             const Report& report);
  std::chrono::microseconds IntervalOf(const std::string& uuid) const;

  rm::System& system_;
  const Options options_;
  const OnReport on_report_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;     // guarded by mutex_
  bool changed_ = false;  // guarded by mutex_: an interval
  std::map<std::string, std::chrono::microseconds> intervals_;  // ditto
  AccountStats stats_;                                          // ditto
  absl::Status opened_ = absl::UnavailableError("");            // ditto
  bool tried_ = false;                                          // ditto
  std::map<uint32_t, uint64_t> idle_ns_;  // thread's own, for forgetting

  // The thread's own. The client goes last: its objects are the logs'.
  std::unique_ptr<rm::Client> client_;
  std::map<std::string, Log> logs_;

  std::thread thread_;
};

}  // namespace rondo::activity

#endif  // RONDO_ACTIVITY_READER_H_
