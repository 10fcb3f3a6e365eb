// SPDX-License-Identifier: Apache-2.0
//
// Numbers that people write: in the config, in annotations of pods, as options
// of programs. What is wrong with one is told in the same words everywhere.
// Pure; any thread.

#ifndef RONDO_CONFIG_AMOUNT_H_
#define RONDO_CONFIG_AMOUNT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace rondo::config {

// Two halves of a sentence about a text: "has no unit: it means 8 bytes" and
// "write 8Gi". Neither repeats the whole text, which may be long.
struct Mistake {
  std::string wrong;
  std::string remedy;
};

// A text as messages show it: in quotes, printable, and not too long.
std::string Shown(absl::string_view text);

// `"8" has no unit: it means 8 bytes: write 8Gi`
std::string Describe(absl::string_view text, const Mistake& mistake);

// Bytes of GPU memory that a slot may have: at least kLeastSlotMemory. How
// much a GPU has is not looked at.
std::optional<Mistake> ReadSlotMemory(absl::string_view text, uint64_t& bytes);

struct NumberRange {
  double least;
  double most;
  bool above_least;      // least itself is outside
  bool is_part;          // of a whole: who writes 50 or 50% means 0.5
  std::string accepted;  // "write a number from 1 to 5, such as 3"
};

std::optional<Mistake> ReadNumber(absl::string_view text,
                                  const NumberRange& range, double& number);

}  // namespace rondo::config

#endif  // RONDO_CONFIG_AMOUNT_H_
