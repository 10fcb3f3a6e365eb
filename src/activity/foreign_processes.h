// SPDX-License-Identifier: Apache-2.0
//
// Processes that use a shared GPU and are nobody's: attached to none of its
// slots, because they run without the library (a static program, a cleared
// environment, a program of the host). A list of NVML's and one of the slots
// are not of the same moment, so a process counts when it was in no slot for
// two seconds; one that lives shorter is not noticed.
//
// Pure but for one log line a process. One thread.

#ifndef RONDO_ACTIVITY_FOREIGN_PROCESSES_H_
#define RONDO_ACTIVITY_FOREIGN_PROCESSES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "activity/stats.h"
#include "base/clock.h"
#include "nvml/backend.h"

namespace rondo::activity {

class ForeignProcesses {
 public:
  // What a pid is called; empty: not known.
  using NameOf = std::function<std::string(uint32_t pid)>;

  static constexpr MonotonicTime kPatience = std::chrono::seconds(2);
  // No more lines than this a minute: a pod that starts programs one after the
  // other must not fill the log.
  static constexpr int kLinesPerMinute = 10;

  // own_pid: not foreign, whatever it holds.
  ForeignProcesses(uint32_t own_pid, NameOf name_of)
      : own_pid_(own_pid), name_of_(std::move(name_of)) {}

  // processes: all of that GPU, as NVML lists them now. attached: to a slot of
  // it; empty: one of them cannot be seen in this pid namespace, so nobody can
  // be told from it. account: of the GPU; null: GPU time is not known.
  void Update(const std::string& uuid,
              const std::vector<nvml::Process>& processes,
              const std::optional<std::set<uint32_t>>& attached,
              const GpuAccount* account, MonotonicTime now);
  // The GPU is not known any more: nothing of it is told.
  void Forget(const std::string& uuid) { gpus_.erase(uuid); }

  std::vector<ForeignView> View() const;

 private:
  struct Process {
    MonotonicTime since{};
    bool counts = false;
    std::optional<uint64_t> bytes;
    std::string name;
    uint64_t busy_ns = 0;  // last seen in the account
  };
  struct Gpu {
    bool known = false;
    std::map<uint32_t, Process> processes;
    // Of all that ever counted; empty: not known.
    std::optional<uint64_t> busy_ns;
  };

  void Tell(const std::string& uuid, uint32_t pid, const Process& process,
            MonotonicTime now);

  const uint32_t own_pid_;
  const NameOf name_of_;
  std::map<std::string, Gpu> gpus_;
  MonotonicTime minute_{};  // when the present one began
  int lines_ = 0;           // in it
};

// "python3", by /proc; printable.
std::string ProcessName(uint32_t pid);

}  // namespace rondo::activity

#endif  // RONDO_ACTIVITY_FOREIGN_PROCESSES_H_
