// SPDX-License-Identifier: Apache-2.0
//
// Compares the ledger with what the driver itself charges each process. Pure.
//
// A difference is never absorbed: it is a number in the stats, and an alarm
// when it was there in two rounds running. Once alone is no news: a program
// allocates between our two readings. For the same reason the ledger is read
// before and after the driver, and only what lies outside of both counts. A
// program that allocates all the time has a reservation on its way at every
// reading: less than the ledger is an alarm only where the ledger stood still.
//
// Where the driver knows none of the pids, we are in another pid namespace than
// it is (or no process has memory): then nothing is known, and no alarm.

#ifndef RONDO_SHARE_MEMORY_AUDIT_H_
#define RONDO_SHARE_MEMORY_AUDIT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rondo::share {

class Audit {
 public:
  struct Process {
    std::string slot;
    uint32_t pid = 0;
    uint64_t before_bytes = 0;  // the ledger's, before the driver was asked
    uint64_t after_bytes = 0;   // ... and when it had answered
  };
  struct Alarm {
    std::string slot;
    uint32_t pid = 0;
    int64_t difference = 0;  // driver - ledger; positive = unseen memory
  };

  // One round over one GPU. Several connections of one pid are added up.
  // Returns the new alarms; about one difference again only when it doubled or
  // halved.
  std::vector<Alarm> Compare(const std::vector<Process>& ledger,
                             const std::map<uint32_t, uint64_t>& driver);

  // Of the last round. Empty: no round has covered it.
  std::optional<int64_t> difference(const std::string& slot) const;
  std::optional<uint64_t> driver_bytes(uint32_t pid) const;
  uint64_t alarms(const std::string& slot) const;

 private:
  struct Seen {
    int64_t difference = 0;
    int64_t alarmed = 0;  // the last amount that was an alarm
    uint64_t ledger_bytes = 0;
  };

  std::map<std::pair<std::string, uint32_t>, Seen> seen_;
  std::map<std::string, int64_t> differences_;
  std::map<std::string, uint64_t> alarms_;
  std::map<uint32_t, uint64_t> driver_;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_MEMORY_AUDIT_H_
