// SPDX-License-Identifier: Apache-2.0
//
// Which GPU an index means, asked of NVML once for all programs of a run
// folder: its start takes tens of milliseconds, and the driver lets programs
// that start it at one moment wait for each other.
//
// One thread. Find blocks while NVML starts (seconds where nothing keeps a
// machine's GPUs awake): the first time, and after an answer that may change.

#ifndef RONDO_RUN_GPUS_H_
#define RONDO_RUN_GPUS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/in_flight.h"

namespace rondo::run {

struct Gpu {
  int index = 0;
  std::string uuid;
  std::optional<uint64_t> memory_bytes;
};

class Gpus {
 public:
  // calls: where calls of NVML are noted; may be null.
  explicit Gpus(CallsInFlight* calls) : calls_(calls) {}

  // The GPU of that index, as nvidia-smi counts. InvalidArgument where there is
  // none, FailedPrecondition without a driver, with one that cannot be
  // governed, or in MIG mode; else the GPU's own error.
  absl::StatusOr<Gpu> Find(int index);
  // The GPU that one entry of CUDA_VISIBLE_DEVICES means: a UUID, the start of
  // one, or an index, which only with CUDA_DEVICE_ORDER=PCI_BUS_ID (bus_order)
  // counts as nvidia-smi does. Fails as Find does.
  absl::StatusOr<Gpu> FindVisible(const std::string& entry, bool bus_order);

 private:
  absl::Status Read();

  CallsInFlight* const calls_;
  struct Known {
    std::string uuid;  // empty where its GPU does not tell
    absl::StatusOr<Gpu> gpu;
  };
  // Empty until read; an error is read again.
  std::vector<Known> gpus_;
};

}  // namespace rondo::run

#endif  // RONDO_RUN_GPUS_H_
