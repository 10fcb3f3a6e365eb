// SPDX-License-Identifier: Apache-2.0
#include "nvml/mig_profile.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "nvml/nvml_constants.h"

namespace rondo::nvml {
namespace {

uint64_t MemoryGib(uint64_t memory_mib, uint64_t gpu_memory_bytes) {
  if (gpu_memory_bytes == 0) return (memory_mib + 1023) / 1024;
  const double gib = 1024.0 * 1024 * 1024;
  const double whole = std::ceil(static_cast<double>(gpu_memory_bytes) / gib);
  const double fraction = static_cast<double>(memory_mib) * 1024 * 1024 /
                          static_cast<double>(gpu_memory_bytes);
  return static_cast<uint64_t>(std::round(std::ceil(fraction * 8) / 8 * whole));
}

}  // namespace

std::string MigProfileText(const MigShape& shape) {
  std::string text;
  if (shape.compute_slices != shape.gpu_slices)
    text = absl::StrCat(shape.compute_slices, "c.");
  absl::StrAppend(&text, shape.gpu_slices, "g.",
                  MemoryGib(shape.memory_mib, shape.gpu_memory_bytes), "gb",
                  shape.suffix);
  return text;
}

absl::string_view MigProfileSuffix(uint32_t gpu_instance_profile) {
  switch (gpu_instance_profile) {
    case abi::kProfile1SliceMe:
    case abi::kProfile2SliceMe:
      return "+me";
    case abi::kProfile1SliceAllMe:
    case abi::kProfile2SliceAllMe:
      return "+me.all";
    case abi::kProfile1SliceGfx:
    case abi::kProfile2SliceGfx:
    case abi::kProfile3SliceGfx:
    case abi::kProfile4SliceGfx:
      return "+gfx";
    case abi::kProfile1SliceNoMe:
    case abi::kProfile2SliceNoMe:
      return "-me";
    default:
      return "";
  }
}

}  // namespace rondo::nvml
