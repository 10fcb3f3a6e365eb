// SPDX-License-Identifier: Apache-2.0
//
// Takes what processes report of their channels, and knows whose a driver
// client is. Pure: the slot server is the only caller.
//
// A client handle is node-wide and belongs to one process. The first to report
// it is believed; another may name it only if it is of the same slot, or the
// same process on its other GPU's socket. When the last that named it is gone,
// it is nobody's again. A pid may have been another process's before, so the
// same process is one that started at the same time too.

#ifndef RONDO_SHARE_CHANNEL_BOOK_H_
#define RONDO_SHARE_CHANNEL_BOOK_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rm/gpu.h"
#include "share/ids.h"
#include "wire/messages.h"

namespace rondo::share {

class ChannelBook {
 public:
  static constexpr size_t kMaxChannels = 4096;  // a process
  static constexpr size_t kMaxClients = 256;    // a process, of its channels
  // A slot. A context has some thirty.
  static constexpr size_t kMaxSlotChannels = 1 << 14;

  enum class Verdict {
    kNoted,
    kForeign,   // the client is another tenant's: nothing was noted
    kTooMany,   // the process is to be sent away
    kSlotFull,  // noted as far as the slot may have channels
  };

  // started: in the kernel's clock ticks. pid or started 0: not known, so not
  // the same as anybody's.
  void Add(ProcessId process, const std::string& slot, int32_t pid,
           uint64_t started);
  void Remove(ProcessId process);

  // channels: all that the process reported so far; brought up to date.
  Verdict Note(ProcessId process, const wire::Channels& message,
               std::vector<rm::Channel>* channels);

 private:
  struct Reporter {
    std::string slot;
    int32_t pid = 0;
    uint64_t started = 0;
    size_t channels = 0;
    std::set<uint32_t> clients;  // where users_ names it
  };

  static bool Same(const Reporter& a, const Reporter& b);
  bool MayUse(const Reporter& reporter, uint32_t client) const;
  void Count(Reporter& reporter, size_t channels);
  void Forget(ProcessId process, uint32_t client);

  std::map<ProcessId, Reporter> reporters_;
  std::map<std::string, size_t> slot_channels_;    // none that has 0
  std::map<uint32_t, std::set<ProcessId>> users_;  // by client; never empty
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_CHANNEL_BOOK_H_
