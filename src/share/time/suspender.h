// SPDX-License-Identifier: Apache-2.0
//
// The agent's hand on one GPU: suspends and resumes processes of any tenant by
// their channels, and asks for the bytes that each process is charged with. It
// has a thread and a client of the driver of its own, since a driver call takes
// up to a millisecond and may wait for others: a GPU whose calls are slow
// delays its own turns and no other's. Calls are carried out in the order of
// asking.
//
// Threads: all methods on the loop's thread; answers are posted there. Failure:
// where the driver cannot be opened, or does not have the GPU (as it does not
// know a MIG device), every call answers with that reason, and it is tried
// again from time to time.

#ifndef RONDO_SHARE_TIME_SUSPENDER_H_
#define RONDO_SHARE_TIME_SUSPENDER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "rm/client.h"
#include "rm/gpu.h"
#include "rm/system.h"
#include "share/ids.h"
#include "share/time/suspensions.h"

namespace rondo::share {

class Suspender {
 public:
  using Channels = Suspensions::Channels;
  using SwitchDone =
      std::function<void(const std::map<ProcessId, absl::Status>& results)>;
  using BytesDone = std::function<void(
      const absl::StatusOr<std::map<uint32_t, uint64_t>>& bytes_by_pid)>;
  using ReadyChanged = std::function<void(const absl::Status& status)>;

  // system and clock must outlive the object. on_ready tells whether the GPU
  // could be opened: once after the start, then whenever that changes.
  Suspender(EventLoop& loop, const Clock& clock, rm::System& system,
            std::string dev_dir, std::string gpu_uuid, ReadyChanged on_ready);
  ~Suspender();  // waits for the call in flight; drops what waits and answers

  // One answer for each process (suspensions.h). DeadlineExceeded where it
  // could not begin by then, and nothing was done.
  void Switch(bool suspend, Channels channels, MonotonicTime not_after,
              SwitchDone done);
  // A process that is gone.
  void Forget(ProcessId process);
  void ReadBytes(std::vector<uint32_t> pids, BytesDone done);

 private:
  using Job = std::function<void()>;  // runs on the thread

  void Enqueue(Job job);
  void Main();
  absl::Status Open();
  absl::Status Ensure();  // the GPU is open, or why not
  std::map<ProcessId, absl::Status> SwitchAll(bool suspend,
                                              const Channels& channels,
                                              MonotonicTime not_after);
  // Posts to the loop, unless this object is gone by then.
  void Answer(std::function<void()> task);

  EventLoop& loop_;
  const Clock& clock_;
  rm::System& system_;
  const std::string dev_dir_;
  const std::string gpu_uuid_;
  const ReadyChanged on_ready_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;  // guarded by mutex_
  bool stop_ = false;     // guarded by mutex_

  // The thread's own.
  std::unique_ptr<rm::Client> client_;
  rm::Gpu gpu_;
  Suspensions suspensions_;
  absl::Status open_status_ = absl::UnavailableError("not opened yet");
  bool told_ = false;
  MonotonicTime tried_{};

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_SUSPENDER_H_
