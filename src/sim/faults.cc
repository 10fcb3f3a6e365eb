// SPDX-License-Identifier: Apache-2.0
#include "sim/faults.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nvml/nvml_constants.h"

namespace rondo::sim {
namespace {

constexpr uint64_t kEventDoubleBitEcc = 2;

// The record first, then the count, then the wake-up: a reader that sees the
// count sees the record.
void Publish(NodeState* state, uint64_t type, uint64_t data, int gpu,
             const MigState* mig) {
  const uint64_t number = state->event_count.load(std::memory_order_relaxed);
  EventRecord& record = state->events[number % kEventRing];
  record.type = type;
  record.data = data;
  record.gpu = gpu;
  record.gpu_instance = mig ? mig->gpu_instance : nvml::abi::kInvalidInstance;
  record.compute_instance =
      mig ? mig->compute_instance : nvml::abi::kInvalidInstance;
  state->event_count.store(number + 1, std::memory_order_release);
  state->event_futex.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &state->event_futex, FUTEX_WAKE, INT_MAX, nullptr, nullptr,
          0);
}

}  // namespace

uint32_t RecoveryAction(uint64_t xid) {
  namespace abi = nvml::abi;
  switch (xid) {
    case 79:  // fell off the bus
      return abi::kRecoveryNodeReboot;
    case 63:  // row remapping recorded
    case 94:  // contained memory error
      return abi::kRecoveryDrainAndReset;
    case 46:   // GPU stopped processing
    case 48:   // double-bit ECC error
    case 62:   // microcontroller halted
    case 64:   // row remapping failed
    case 74:   // NVLink error
    case 95:   // uncontained memory error
    case 110:  // security fault
    case 119:  // GSP call timed out
    case 120:  // GSP error
    case 140:  // unrecovered ECC error
    case 143:  // GPU initialisation failed
      return abi::kRecoveryGpuReset;
    default:
      return abi::kRecoveryNone;
  }
}

void RaiseXid(NodeState* state, int gpu, uint64_t xid, const MigState* mig) {
  GpuState& g = state->gpus[gpu];
  g.last_xid = static_cast<uint32_t>(xid);
  if ((xid == 63 || xid == 48) && (g.flags & kHasRowRemap)) g.rows_pending = 1;
  if (xid == 64 && (g.flags & kHasRowRemap)) g.rows_failed = 1;
  if (const uint32_t action = RecoveryAction(xid); action != 0)
    g.recovery_action = action;
  Publish(state, nvml::abi::kEventXid, xid, gpu, mig);
}

void LoseGpu(NodeState* state, int gpu) {
  state->gpus[gpu].lost = 1;
  RaiseXid(state, gpu, 79, nullptr);
}

void RaiseDoubleBitError(NodeState* state, int gpu) {
  GpuState& g = state->gpus[gpu];
  ++g.ecc_uncorrected;
  ++g.ecc_uncorrected_ever;
  Publish(state, kEventDoubleBitEcc, 0, gpu, nullptr);
  RaiseXid(state, gpu, 48, nullptr);
}

void ResetGpu(NodeState* state, int gpu) {
  GpuState& g = state->gpus[gpu];
  if (g.rows_pending.exchange(0) != 0) ++g.rows_remapped;
  g.rows_failed = 0;
  g.ecc_corrected = 0;
  g.ecc_uncorrected = 0;
  g.last_xid = 0;
  g.recovery_action = nvml::abi::kRecoveryNone;
  g.lost = 0;
}

}  // namespace rondo::sim
