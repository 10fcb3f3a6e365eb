// SPDX-License-Identifier: Apache-2.0
//
// Log lines on stderr: time, level, text. Thread-safe. Never fails: a line that
// cannot be written is lost. Programs that print a product on stdout keep it
// free of log lines.

#ifndef RONDO_BASE_LOG_H_
#define RONDO_BASE_LOG_H_

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace rondo {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

inline constexpr const char* kLogLevelNames =
    "debug, info, warning, error, off";
// Empty where it is none of them.
std::optional<LogLevel> ParseLogLevel(absl::string_view name);

// Lines below this level are dropped. Default: kInfo.
void SetLogLevel(LogLevel level);
bool LogEnabled(LogLevel level);
void LogLine(LogLevel level, absl::string_view text);

template <typename... Args>
void LogDebug(const Args&... args) {
  if (LogEnabled(LogLevel::kDebug))
    LogLine(LogLevel::kDebug, absl::StrCat(args...));
}
template <typename... Args>
void LogInfo(const Args&... args) {
  if (LogEnabled(LogLevel::kInfo))
    LogLine(LogLevel::kInfo, absl::StrCat(args...));
}
template <typename... Args>
void LogWarning(const Args&... args) {
  if (LogEnabled(LogLevel::kWarning))
    LogLine(LogLevel::kWarning, absl::StrCat(args...));
}
template <typename... Args>
void LogError(const Args&... args) {
  if (LogEnabled(LogLevel::kError))
    LogLine(LogLevel::kError, absl::StrCat(args...));
}

}  // namespace rondo

#endif  // RONDO_BASE_LOG_H_
