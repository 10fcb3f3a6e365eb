// SPDX-License-Identifier: Apache-2.0
//
// Why this process is not wholly governed and how often each degraded path was
// taken, to be told to the agent. Under the shim's lock.

#ifndef RONDO_SHIM_HEALTH_H_
#define RONDO_SHIM_HEALTH_H_

#include "wire/codec.h"

namespace rondo::shim {

class Health {
 public:
  void Count(wire::Counter counter) {
    ++state_.counters[static_cast<size_t>(counter)];
    ++version_;
  }
  void Set(wire::Reason reason) {
    const uint64_t bit = uint64_t{1} << static_cast<unsigned>(reason);
    if ((state_.reasons & bit) != 0) return;
    state_.reasons |= bit;
    ++version_;
  }
  void Clear(wire::Reason reason) {
    const uint64_t bit = uint64_t{1} << static_cast<unsigned>(reason);
    if ((state_.reasons & bit) == 0) return;
    state_.reasons &= ~bit;
    ++version_;
  }
  // Grows with each change: who sent version() has sent all.
  uint32_t version() const { return version_; }
  const wire::State& state() const { return state_; }
  void Forget() {
    state_ = wire::Make<wire::State>(0);
    version_ = 0;
  }

 private:
  wire::State state_ = wire::Make<wire::State>(0);
  uint32_t version_ = 0;
};

}  // namespace rondo::shim

#endif  // RONDO_SHIM_HEALTH_H_
