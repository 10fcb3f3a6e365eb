// SPDX-License-Identifier: Apache-2.0
//
// How long to wait before the next attempt at something that is wanted for
// good, such as a watch. Pure; one thread.

#ifndef RONDO_KUBE_BACKOFF_H_
#define RONDO_KUBE_BACKOFF_H_

#include <algorithm>
#include <chrono>

namespace rondo::kube {

class Backoff {
 public:
  using Pause = std::chrono::milliseconds;
  // The first pause after a failure, and the longest.
  Backoff(Pause first, Pause longest)
      : first_(first), longest_(longest), next_(first) {}

  // An attempt ended. None after a good one, unless it ended at once. After
  // failures the pause doubles, until one comes only after longer than the
  // pause was: what worked so long was no failure to begin.
  Pause After(bool good, std::chrono::nanoseconds lasted) {
    if (good || lasted > next_) next_ = first_;
    if (good) return lasted > first_ ? Pause(0) : first_;
    const Pause pause = next_;
    next_ = std::min(next_ * 2, longest_);
    return pause;
  }

 private:
  const Pause first_, longest_;
  Pause next_;
};

}  // namespace rondo::kube

#endif  // RONDO_KUBE_BACKOFF_H_
