// SPDX-License-Identifier: Apache-2.0
//
// What Rondo asks of NVML, and nothing more. Real (real.h) finds and loads
// libnvidia-ml.so.1; tests pass their own.
//
// Threads: all methods may be called from any thread; WaitForEvent blocks and
// is meant for a thread of its own. Failure: NotFound for a GPU that is not
// there; Unavailable for a GPU that is lost or a driver that does not run;
// Unimplemented where this driver or GPU does not support the call;
// PermissionDenied; Internal otherwise. The message holds NVML's own words.
// Unknown is never 0. Source: NVML API reference; NVIDIA device plugin
// behaviour as noted at each member.

#ifndef RONDO_NVML_BACKEND_H_
#define RONDO_NVML_BACKEND_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rondo::nvml {

// One MIG device of a GPU.
struct MigDevice {
  int slot = 0;  // index in its GPU: "0:<slot>"
  std::string uuid;
  int gpu_instance = 0;
  int compute_instance = 0;
  int gpu_slices = 0;      // gpuInstanceSliceCount
  int compute_slices = 0;  // computeInstanceSliceCount
  uint64_t memory_mib = 0;
  std::string
      profile;  // "1g.5gb", "1c.3g.20gb", "1g.5gb+me": see nvml/mig_profile.h
};

struct Gpu {
  int index = 0;       // NVML's
  std::string uuid;    // "GPU-..."
  std::string name;    // "NVIDIA A100-SXM4-80GB"
  int minor = 0;       // /dev/nvidia<minor>
  std::string bus_id;  // NVML's spelling, "00000000:17:00.0"
  std::optional<uint64_t> memory_bytes;
  // Of that, what programs can have: less what the driver keeps for itself.
  std::optional<uint64_t> usable_bytes;
  int compute_major = 0;
  int compute_minor = 0;
  bool mig_enabled = false;
  std::vector<MigDevice> migs;
};

// How near two GPUs are. Values are the score that NVIDIA's plugin gives each
// (device-plugin reference, 2.6).
enum class Ancestor : int {
  kUnknown = 0,
  kCrossCpu = 10,
  kSameCpu = 20,
  kHostBridge = 30,
  kMultipleSwitches = 40,
  kSingleSwitch = 50,
  kSameBoard = 60,
};

struct Link {
  Ancestor ancestor = Ancestor::kUnknown;
  int nvlinks = 0;  // active NVLinks from the first GPU to the second
};

struct Memory {
  uint64_t total_bytes = 0;
  uint64_t used_bytes = 0;
  uint64_t free_bytes = 0;
};

struct Utilization {
  int gpu_percent = 0;
  int memory_percent = 0;
};

struct Process {
  uint32_t pid = 0;
  std::optional<uint64_t> used_bytes;  // empty where NVML says "not available"
};

// One process's part of one sample.
struct ProcessSample {
  uint32_t pid = 0;
  uint64_t time_us = 0;  // when the sample ended; us since the epoch
  int sm_percent = 0;    // of the sample's time; whole percents
};

// A critical Xid. uuid is empty where NVML could not name the GPU: it may be
// any.
struct XidEvent {
  std::string uuid;  // of the GPU, also for MIG
  uint64_t xid = 0;
  // Set where the event names one MIG device; NVML's 0xFFFFFFFF = not set.
  std::optional<uint32_t> gpu_instance;
  std::optional<uint32_t> compute_instance;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual absl::StatusOr<std::string> DriverVersion() = 0;
  // CUDA driver version as NVML gives it: 13000 = 13.0.
  virtual absl::StatusOr<int> CudaDriverVersion() = 0;

  // All GPUs in NVML's order. One that cannot be read (lost) is an error in its
  // own place, so that the others remain.
  virtual absl::StatusOr<std::vector<absl::StatusOr<Gpu>>> ListGpus() = 0;

  virtual absl::StatusOr<Link> LinkBetween(const Gpu& a, const Gpu& b) = 0;

  virtual absl::StatusOr<Memory> MemoryInfo(absl::string_view uuid) = 0;
  virtual absl::StatusOr<Utilization> UtilizationRates(
      absl::string_view uuid) = 0;
  virtual absl::StatusOr<std::vector<Process>> ComputeProcesses(
      absl::string_view uuid) = 0;

  // The driver's samples of who used the GPU that ended after since_us. One is
  // an average over a sixth of a second to a second, by model, and names only
  // processes that used the GPU within it: empty is normal. The driver keeps
  // the last ones. Unimplemented for a GPU in MIG mode.
  virtual absl::StatusOr<std::vector<ProcessSample>> ProcessSamples(
      absl::string_view uuid, uint64_t since_us) = 0;

  // Ok when the GPU answers and nothing says that it needs a reset: used to
  // find out whether a GPU that had an Xid is well again. FailedPrecondition
  // with the reason otherwise.
  virtual absl::Status Probe(absl::string_view uuid) = 0;

  // Asks for Xid events of this GPU. Unimplemented where the GPU has none: it
  // then counts as healthy.
  virtual absl::Status RegisterXidEvents(absl::string_view uuid) = 0;
  // The next event; empty after the timeout.
  virtual absl::StatusOr<std::optional<XidEvent>> WaitForEvent(
      std::chrono::milliseconds timeout) = 0;
};

}  // namespace rondo::nvml

#endif  // RONDO_NVML_BACKEND_H_
