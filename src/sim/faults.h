// SPDX-License-Identifier: Apache-2.0
//
// Faults on a running node: what each does to the shared state. The caller
// holds the lock on the state file. Events reach waiters in all processes at
// once.

#ifndef RONDO_SIM_FAULTS_H_
#define RONDO_SIM_FAULTS_H_

#include <cstdint>

#include "sim/state.h"

namespace rondo::sim {

// NVML_GPU_RECOVERY_ACTION_* that this Xid asks for by NVIDIA's catalogue; 0
// for those that end a program only and for those that are not known.
uint32_t RecoveryAction(uint64_t xid);

// mig: null = the event names the whole GPU.
void RaiseXid(NodeState* state, int gpu, uint64_t xid, const MigState* mig);
void LoseGpu(NodeState* state, int gpu);
void RaiseDoubleBitError(NodeState* state, int gpu);
void ResetGpu(NodeState* state, int gpu);

}  // namespace rondo::sim

#endif  // RONDO_SIM_FAULTS_H_
