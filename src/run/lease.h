// SPDX-License-Identifier: Apache-2.0
//
// A slot held from the arbiter, as seen by `rondo run`: joins the arbiter of
// the run folder, or starts it. One thread. The slot is held until the object
// goes or the arbiter dies. The descriptor becomes readable then, or when there
// is a notice.

#ifndef RONDO_RUN_LEASE_H_
#define RONDO_RUN_LEASE_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "run/control.h"
#include "share/share.h"

namespace rondo::run {

class Lease {
 public:
  // An arbiter may be leaving just now, and holds its lock to the last: a round
  // meets or makes the next one. Mostly one of the first, each as long as a
  // process takes to start; all take longer than an arbiter whose driver hangs
  // (base/ending.h).
  static constexpr int kRounds = 50, kQuickRounds = 10;

  // executable: what is started as `<executable> run-arbiter <run_dir>` where
  // no arbiter answers.
  static absl::StatusOr<Lease> Take(const std::string& run_dir,
                                    const std::string& executable,
                                    const Request& request,
                                    int rounds = kRounds);

  // What the arbiter tells of the program; Unavailable where it has died.
  absl::StatusOr<std::string> Notice();

  // Its GPU and number; what it was asked for is not in it.
  const share::SlotSpec& slot() const { return slot_; }
  int fd() const { return fd_.get(); }

 private:
  Lease(UniqueFd fd, share::SlotSpec slot)
      : fd_(std::move(fd)), slot_(std::move(slot)) {}
  UniqueFd fd_;
  share::SlotSpec slot_;
};

}  // namespace rondo::run

#endif  // RONDO_RUN_LEASE_H_
