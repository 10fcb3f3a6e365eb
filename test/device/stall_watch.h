// SPDX-License-Identifier: Apache-2.0
//
// How long the machine gave a thread no processor that wanted one: what is
// measured by the clock meanwhile says nothing of the GPU.
//
// Any thread. Failure: none.

#ifndef RONDO_TEST_DEVICE_STALL_WATCH_H_
#define RONDO_TEST_DEVICE_STALL_WATCH_H_

#include <atomic>
#include <chrono>
#include <thread>

namespace rondo::device {

class StallWatch {
 public:
  StallWatch();
  ~StallWatch();
  // The longest since the last call, of a thread that wakes every 2 ms.
  std::chrono::nanoseconds TakeLongest() {
    return std::chrono::nanoseconds(longest_ns_.exchange(0));
  }

 private:
  void Main();

  std::atomic<bool> stop_{false};
  std::atomic<int64_t> longest_ns_{0};
  std::thread thread_;
};

}  // namespace rondo::device

#endif  // RONDO_TEST_DEVICE_STALL_WATCH_H_
