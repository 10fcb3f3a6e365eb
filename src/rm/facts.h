// SPDX-License-Identifier: Apache-2.0
//
// How long things take the hardware and its driver: each figure once. All were
// measured on one H200 with driver 580.159.04 unless a line says otherwise;
// another card may differ. Freestanding, any thread.
//
// The slice below which two runnable groups make no progress stands elsewhere,
// since both ends of the wire keep to it: wire::kLeastSharedSliceUs.

#ifndef RONDO_RM_FACTS_H_
#define RONDO_RM_FACTS_H_

#include <cstdint>

namespace rondo::rm {

// --- what a channel group starts with ----------------------------------------
inline constexpr uint32_t kDefaultComputeSliceUs = 2048;  // libcuda's choice
inline constexpr uint32_t kDefaultCopySliceUs = 1024;     // the driver's

// --- a switch from one group to another that has work -----------------------
// By the context-switch log: from the end of one to the start of the next, 79
// to 83.
inline constexpr int64_t kContextSwitchUs = 82;
// What the next one loses of its slice besides, as its caches and state come
// back. Not measured by itself: it is the one value that explains all shares
// and latencies in docs/sim-driver.md. By docs/benchmarks.md a switch costs
// some 160 us of work, all told.
inline constexpr int64_t kRefillUs = 100;
// Between two kernels of one channel: a program of 100 us kernels that is alone
// has 0.973 of the time.
inline constexpr int64_t kLaunchGapNs = 2'700;

// --- setting a slice; takes the group off the GPU ---------------------------
inline constexpr int64_t kSetSliceUs = 165;  // the call
// ... with the message that asks the shim for it, and its answer.
inline constexpr int64_t kSetSliceByMessageUs = 260;
// By a client that did not make the group: refused.
inline constexpr int64_t kSetSliceRefusedUs = 37;
inline constexpr int64_t kPreemptUs = 324;

// --- suspending and resuming a process, in one call -------------------------
inline constexpr int64_t kSuspendUs = 600;  // mean; 695 at most
inline constexpr int64_t kResumeUs = 323;
// A training in PyTorch, with its 20 channels.
inline constexpr int64_t kSuspendTrainingUs = 900, kResumeTrainingUs = 550;

}  // namespace rondo::rm

#endif  // RONDO_RM_FACTS_H_
