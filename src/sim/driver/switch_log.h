// SPDX-License-Identifier: Apache-2.0
//
// One subscriber's context-switch log: records gather here and reach the shared
// ring when drained, as the driver does 30 times a second or when told to
// flush. A full ring drops the newest records and counts them. Not thread-safe.
// Layout: rm/control.h.

#ifndef RONDO_SIM_DRIVER_SWITCH_LOG_H_
#define RONDO_SIM_DRIVER_SWITCH_LOG_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "rm/control.h"
#include "sim/driver/shared_memory.h"

namespace rondo::sim::driver {

class SwitchLog {
 public:
  static constexpr size_t kHeaderBytes = 4096;

  // header holds an rm::EventHeader, records `count` rm::SwitchRecords.
  SwitchLog(std::shared_ptr<SharedMemory> header,
            std::shared_ptr<SharedMemory> records, uint32_t count)
      : header_(std::move(header)),
        records_(std::move(records)),
        count_(count) {}

  // Whose records carry pid and context: everybody's for an administrator, else
  // only those of the subscriber's own user.
  void Bind(uint32_t uid, bool admin) {
    uid_ = uid;
    admin_ = admin;
    bound_ = true;
  }
  bool bound() const { return bound_; }
  void Enable(bool on) { enabled_ = on; }

  struct Switch {
    bool starts;
    uint32_t context, pid, uid;
    uint64_t wall_ns;
  };
  void Add(const Switch& s);
  bool pending() const { return !pending_.empty(); }
  void Drain();
  // The subscriber has read up to there.
  void SetGet(uint32_t get);

 private:
  const std::shared_ptr<SharedMemory> header_, records_;
  const uint32_t count_;
  uint32_t put_ = 0, get_ = 0;
  uint64_t written_ = 0, drops_ = 0;
  uint16_t seqno_ = 0;
  uint32_t uid_ = 0;
  bool admin_ = false, bound_ = false, enabled_ = false;
  std::vector<rm::SwitchRecord> pending_;
};

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_SWITCH_LOG_H_
