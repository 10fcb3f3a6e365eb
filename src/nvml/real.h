// SPDX-License-Identifier: Apache-2.0
//
// The Backend that asks the installed driver through libnvidia-ml.so.1, loaded
// at run time with our own declarations (nvml_abi.h). Where a call has several
// versions the newest that the library has is used, each with its own struct.
// The simulated node (sim/node.h) is served by the same code.
//
// Threads and failure: as Backend says. GPUs named "DGX Display" or "NVIDIA DGX
// Display" drive a screen and are left out; the others keep NVML's indices.

#ifndef RONDO_NVML_REAL_H_
#define RONDO_NVML_REAL_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/in_flight.h"
#include "nvml/backend.h"
#include "nvml/nvml_abi.h"

namespace rondo::nvml {

namespace abi {
class Symbols;
}

class Real : public Backend {
 public:
  // library: a path, or a name for the system's loader; see FindLibrary.
  // calls: where NVML's functions are noted while they run; outlives the
  // object. NotFound where it cannot be loaded, Unavailable where the driver
  // does not run, else as Backend.
  static absl::StatusOr<std::unique_ptr<Real>> Load(
      const std::string& library, CallsInFlight* calls = nullptr);
  ~Real() override;

  absl::StatusOr<std::string> DriverVersion() override;
  absl::StatusOr<int> CudaDriverVersion() override;
  absl::StatusOr<std::vector<absl::StatusOr<Gpu>>> ListGpus() override;
  absl::StatusOr<Link> LinkBetween(const Gpu& a, const Gpu& b) override;
  absl::StatusOr<Memory> MemoryInfo(absl::string_view uuid) override;
  absl::StatusOr<Utilization> UtilizationRates(absl::string_view uuid) override;
  absl::StatusOr<std::vector<Process>> ComputeProcesses(
      absl::string_view uuid) override;
  absl::StatusOr<std::vector<ProcessSample>> ProcessSamples(
      absl::string_view uuid, uint64_t since_us) override;
  absl::Status Probe(absl::string_view uuid) override;
  absl::Status RegisterXidEvents(absl::string_view uuid) override;
  absl::StatusOr<std::optional<XidEvent>> WaitForEvent(
      std::chrono::milliseconds timeout) override;

 private:
  explicit Real(std::unique_ptr<const abi::Symbols> nvml);
  absl::StatusOr<abi::Device> Handle(absl::string_view uuid);
  absl::StatusOr<abi::EventSet> EventSet();

  const std::unique_ptr<const abi::Symbols> nvml_;
  std::mutex events_mutex_;
  abi::EventSet event_set_ = nullptr;  // guarded by events_mutex_
  // Handle to UUID of what was registered: a lost GPU no longer tells its name.
  // Guarded by events_mutex_.
  std::map<abi::Device, std::string> registered_;
};

}  // namespace rondo::nvml

#endif  // RONDO_NVML_REAL_H_
