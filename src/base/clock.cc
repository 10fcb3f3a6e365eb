// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

namespace rondo {
namespace {

class MonotonicClock : public Clock {
 public:
  MonotonicTime Now() const override {
    return std::chrono::steady_clock::now().time_since_epoch();
  }
};

}  // namespace

const Clock& RealClock() {
  static const MonotonicClock clock;
  return clock;
}

}  // namespace rondo
