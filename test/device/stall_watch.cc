// SPDX-License-Identifier: Apache-2.0
#include "stall_watch.h"

#include <algorithm>

namespace rondo::device {

StallWatch::StallWatch() : thread_([this] { Main(); }) {}

StallWatch::~StallWatch() {
  stop_ = true;
  thread_.join();
}

void StallWatch::Main() {
  using std::chrono::steady_clock;
  while (!stop_) {
    const auto due = steady_clock::now() + std::chrono::milliseconds(2);
    std::this_thread::sleep_until(due);
    const int64_t late_ns = (steady_clock::now() - due).count();
    int64_t longest_ns = longest_ns_;
    while (late_ns > longest_ns &&
           !longest_ns_.compare_exchange_weak(longest_ns, late_ns)) {
    }
  }
}

}  // namespace rondo::device
