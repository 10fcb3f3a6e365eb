// SPDX-License-Identifier: Apache-2.0
//
// For log lines that somebody else can bring about as often as he likes: one a
// minute, which says how many were not written. Pure. One thread.

#ifndef RONDO_BASE_LOG_LIMIT_H_
#define RONDO_BASE_LOG_LIMIT_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/clock.h"

namespace rondo {

class LogLimit {
 public:
  static constexpr MonotonicTime kInterval = std::chrono::minutes(1);

  // To be put at the end of the line; empty optional: no line now.
  std::optional<std::string> Admit(MonotonicTime now) {
    if (last_ && now - *last_ < kInterval) {
      ++unsaid_;
      return std::nullopt;
    }
    std::string tail;
    if (unsaid_ > 0)
      tail = absl::StrCat(" (and ", unsaid_, " times since the last line)");
    last_ = now;
    unsaid_ = 0;
    return tail;
  }

 private:
  std::optional<MonotonicTime> last_;
  uint64_t unsaid_ = 0;
};

}  // namespace rondo

#endif  // RONDO_BASE_LOG_LIMIT_H_
