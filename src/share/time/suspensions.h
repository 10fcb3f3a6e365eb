// SPDX-License-Identifier: Apache-2.0
//
// Which channels are suspended by us. The driver counts (measured on one H200,
// driver 580.159.04): a channel that was suspended twice runs only after two
// resumes, while a resume too many does nothing. So nobody here is suspended
// twice: whoever is, and shall be again because somebody else may have resumed
// it or because it has new channels, is resumed first.
//
// One thread, the suspender's. The driver is behind Call.

#ifndef RONDO_SHARE_TIME_SUSPENSIONS_H_
#define RONDO_SHARE_TIME_SUSPENSIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "rm/gpu.h"
#include "share/ids.h"

namespace rondo::share {

class Suspensions {
 public:
  using Channels = std::map<ProcessId, std::vector<rm::Channel>>;
  // rm::SwitchChannels: at most 64 channels, all of them or none.
  using Call = std::function<absl::Status(bool suspend,
                                          const std::vector<rm::Channel>&)>;

  // channels: all that each process has now; those that went are forgotten.
  // On an error some of the process's channels may be switched; asking again
  // is right whatever happened. Processes are switched in one call where they
  // fit, and one by one where that fails: a dying one must not keep the others
  // from being switched.
  std::map<ProcessId, absl::Status> Switch(bool suspend,
                                           const Channels& channels,
                                           const Call& call);
  void Forget(ProcessId process) { held_.erase(process); }

 private:
  using Key = std::pair<uint32_t, uint32_t>;  // client, handle

  absl::Status SwitchOne(bool suspend, ProcessId process,
                         const std::vector<rm::Channel>& channels,
                         const Call& call);
  void Note(bool suspend, ProcessId process,
            const std::vector<rm::Channel>& channels);

  std::map<ProcessId, std::set<Key>> held_;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_SUSPENSIONS_H_
