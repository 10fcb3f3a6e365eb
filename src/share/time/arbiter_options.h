// SPDX-License-Identifier: Apache-2.0
//
// The arbiter's constants. Why each is as it is: docs/arbiter.md. Plain value.

#ifndef RONDO_SHARE_TIME_ARBITER_OPTIONS_H_
#define RONDO_SHARE_TIME_ARBITER_OPTIONS_H_

#include <cstdint>

#include "rm/facts.h"
#include "share/time/controls.h"

namespace rondo::share {

struct ArbiterOptions {
  int64_t period_us = 40'000;  // a rotation of two; see RotationUs
  int64_t turn_us = 500'000;
  bool standard_takes_turns = false;  // as batch tenants do
  uint32_t tiny_slice_us = 20;
  uint32_t latency_slice_us = 20'000;
  // Groups that share one turn must not be tiny: they switch between them.
  uint32_t shared_turn_slice_us = 1000;
  // One rotation of those who may run beside a latency tenant, if not alone.
  int64_t mixed_period_us = 4'000;
  // Of one of ours beside programs without Rondo: the driver's own.
  uint32_t crowded_slice_us = rm::kDefaultComputeSliceUs;
  // Several times what a switch costs (rm::kContextSwitchUs and kRefillUs).
  uint32_t least_slice_us = 500;
  int64_t duty_us = 200'000;      // of a limit: so much is its largest burst
  int64_t idle_start_us = 2'500;  // unused since the turn began: skip
  int64_t idle_us = 5'000;        // unused after having run: skip
  int64_t idle_sampled_us = 100'000;  // unused, by NVML's samples: skip
  uint32_t idle_slice_us = 250;       // of those that wait for nothing
  // No shorter for the sake of those that leave the GPU early: below, switches
  // take more than they give.
  int64_t short_slice_us = 2'000;
  int64_t gap_wait_us = 100'000;  // a due turn waits at most so long for a gap
  ControlOptions controls;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_ARBITER_OPTIONS_H_
