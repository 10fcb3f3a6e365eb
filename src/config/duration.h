// SPDX-License-Identifier: Apache-2.0
//
// Go's duration text ("1h30m", "40ms") and Kubernetes' quantity text ("16Gi").
// Pure; any thread. Error messages are those of Go's time.ParseDuration, which
// users of NVIDIA's plugin know.

#ifndef RONDO_CONFIG_DURATION_H_
#define RONDO_CONFIG_DURATION_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rondo::config {

absl::StatusOr<std::chrono::nanoseconds> ParseGoDuration(
    absl::string_view text);

// Bytes. Binary (Ki Mi Gi Ti Pi Ei) and decimal (k M G T P E) suffixes, or an
// exponent ("8e9"); a fraction ("1.5Gi"). InvalidArgument for what is no
// quantity, OutOfRange, with a message that goes on from the text ("is …"), for
// one that is not a whole number of bytes or does not fit.
absl::StatusOr<uint64_t> ParseQuantity(absl::string_view text);

// A limit on GPU memory below this is a forgotten unit: no CUDA program fits.
inline constexpr uint64_t kLeastSlotMemory = 64 << 20;

// "16Gi" where that is exact, else the largest exact unit.
std::string FormatQuantity(uint64_t bytes);

// "40ms", "1.5s": the shortest text that ParseGoDuration reads back.
std::string FormatDuration(std::chrono::microseconds duration);

}  // namespace rondo::config

#endif  // RONDO_CONFIG_DURATION_H_
