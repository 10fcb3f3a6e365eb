// SPDX-License-Identifier: Apache-2.0
//
// The CUDA driver as the tenant program uses it: libcuda.so.1 found at run
// time, so that one program runs on a real GPU and on a simulated one. Not
// thread-safe. Failure: absl::Status with CUDA's own name for the error.

#ifndef RONDO_SIM_DRIVER_TENANT_CUDA_H_
#define RONDO_SIM_DRIVER_TENANT_CUDA_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sim/driver/libcuda/functions.h"

namespace rondo::sim::tenant {

namespace cuda = rondo::sim::cuda;

struct Cuda {
#define X(name, symbol, parameters) cuda::symbol##Fn* symbol = nullptr;
  RONDO_CUDA_FUNCTIONS(X)
#undef X

  // Unavailable where there is no driver, Unimplemented where it lacks a
  // function that the tenant calls.
  static absl::StatusOr<Cuda> Load();
  // ResourceExhausted for "out of memory", Internal for the rest.
  absl::Status Check(cuda::Result result, const char* what) const;
  // The driver is simulated and has a time of its own.
  bool simulated() const { return rondoSimNow != nullptr; }
};

// A kernel of a chosen length on a context of its own.
class Spinner {
 public:
  static absl::StatusOr<Spinner> Create(const Cuda& cuda, int device);
  // Finds out how many turns of the kernel's loop take a microsecond. Do it
  // with the GPU otherwise idle.
  absl::Status Calibrate();
  double turns_per_us() const { return turns_per_us_; }
  void set_turns_per_us(double turns) { turns_per_us_ = turns; }

  absl::Status Launch(double us, cuda::Stream* stream) const;

  // Nanoseconds: of the simulation where there is one, else CLOCK_MONOTONIC.
  int64_t Now() const;
  void SleepUntil(int64_t ns) const;

 private:
  explicit Spinner(const Cuda* cuda) : cuda_(cuda) {}
  absl::Status LaunchTurns(uint64_t turns, cuda::Stream* stream) const;
  absl::StatusOr<double> Measure(uint64_t turns) const;

  const Cuda* cuda_;
  cuda::Function* kernel_ = nullptr;
  unsigned blocks_ = 0;
  double turns_per_us_ = 0;
};

}  // namespace rondo::sim::tenant

#endif  // RONDO_SIM_DRIVER_TENANT_CUDA_H_
