// SPDX-License-Identifier: Apache-2.0
//
// What one GPU is, MIG devices included. Any thread; fails as Backend does,
// with the name of the NVML call.

#ifndef RONDO_NVML_GPU_READER_H_
#define RONDO_NVML_GPU_READER_H_

#include "absl/status/statusor.h"
#include "nvml/backend.h"
#include "nvml/symbols.h"

namespace rondo::nvml {

// Errors of memory leave memory_bytes empty (integrated GPUs have none of their
// own); any other error is the GPU's.
absl::StatusOr<Gpu> ReadGpu(const abi::Symbols& nvml, abi::Device device,
                            int index);

}  // namespace rondo::nvml

#endif  // RONDO_NVML_GPU_READER_H_
