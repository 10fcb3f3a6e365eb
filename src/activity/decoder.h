// SPDX-License-Identifier: Apache-2.0
//
// From the hardware's context-switch records to GPU time per process: exact, no
// sampling. Pure: records and the wall clock come in, reports come out; any
// thread, one at a time. Never fails: a record that makes no sense is counted
// and set aside, and time is never counted twice or below zero.
//
// Source: FECS event log, records of rm/control.h. Tag 6: a process starts on
// the GPU, 7: it leaves. Foreign records carry pid 0 where the reader lacks
// CAP_SYS_ADMIN, 0xFFFFFFFF for the driver's own work: both are "others".

#ifndef RONDO_ACTIVITY_DECODER_H_
#define RONDO_ACTIVITY_DECODER_H_

#include <cstdint>
#include <map>
#include <vector>

#include "base/clock.h"
#include "rm/control.h"

namespace rondo::activity {

// What happened since the last report. Times in ns.
struct Report {
  struct Process {
    uint32_t pid = 0;
    uint64_t busy_ns = 0;
    uint64_t idle_ns = 0;  // since it was last on the GPU; 0 = on it now
    uint64_t stays = 0;    // times that it came onto the GPU
    // Its longest time on it in one go, with what lay before the interval.
    uint64_t longest_ns = 0;
    // Stays that ended, and their lengths, with what lay before the interval.
    uint64_t ended = 0, ended_ns = 0;
  };
  uint64_t interval_ns = 0;
  // The interval's end by RealClock(). Filled in by SwitchLog, which reads both
  // clocks together: what comes after may wait for the driver.
  MonotonicTime ended{};
  std::vector<Process> processes;  // those that ran, by pid
  uint64_t other_ns = 0;           // time of work that is no process's
  uint64_t odd_records = 0;        // set aside
};

class Decoder {
 public:
  // start_ns: wall clock of the first moment to be counted.
  explicit Decoder(uint64_t start_ns) : reported_ns_(start_ns) {}

  void Add(const rm::SwitchRecord& record);
  // Records were lost (a full ring): what stood open is not known to have run
  // on, so it ends where it was last seen.
  void Lost();
  // now_ns: wall clock of the moment up to which records were added. A process
  // that is still on the GPU is counted up to now.
  Report Take(uint64_t now_ns);

 private:
  struct Used {
    uint64_t busy_ns = 0;
    uint64_t last_ns = 0;
    uint64_t stays = 0;
    uint64_t longest_ns = 0;
    uint64_t ended = 0, ended_ns = 0;
  };

  void Close(uint64_t at_ns);
  void Count(uint32_t pid, uint64_t from_ns, uint64_t to_ns);

  uint64_t reported_ns_;    // end of the last report
  uint64_t latest_ns_ = 0;  // of all records: they come in order
  bool open_ = false;
  uint32_t open_pid_ = 0;
  uint64_t open_ns_ = 0;  // counted up to here
  uint64_t came_ns_ = 0;  // when it came
  std::map<uint32_t, Used> used_;
  uint64_t other_ns_ = 0;
  uint64_t odd_ = 0;
};

}  // namespace rondo::activity

#endif  // RONDO_ACTIVITY_DECODER_H_
