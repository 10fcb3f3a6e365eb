// SPDX-License-Identifier: Apache-2.0
//
// The agent's ledger beside what driver and NVML say. For pods_on_gpu; thread
// and failure as pods.h.

#ifndef RONDO_TEST_DEVICE_LEDGER_H_
#define RONDO_TEST_DEVICE_LEDGER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "pods.h"

namespace rondo::device {

// Says whether, for so many programs in these slots, the ledger's bytes are the
// driver's, and NVML's where it lists them, and the audit found no difference.
absl::Status SayLedger(Pods& pods, const std::string& claim,
                       const std::vector<std::string>& slots, size_t programs);

}  // namespace rondo::device

#endif  // RONDO_TEST_DEVICE_LEDGER_H_
