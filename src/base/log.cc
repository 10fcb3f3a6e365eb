// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <memory>
#include <string_view>

#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace rondo {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>(
        "rondo", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    // RFC 3339 in UTC: what log collectors of a cluster parse without rules.
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %L %v",
                      spdlog::pattern_time_type::utc);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

}  // namespace

std::optional<LogLevel> ParseLogLevel(absl::string_view name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  if (name == "off") return LogLevel::kOff;
  return std::nullopt;
}

void SetLogLevel(LogLevel level) { Logger().set_level(ToSpdlog(level)); }

bool LogEnabled(LogLevel level) { return Logger().should_log(ToSpdlog(level)); }

void LogLine(LogLevel level, absl::string_view text) {
  Logger().log(ToSpdlog(level), "{}",
               std::string_view(text.data(), text.size()));
}

}  // namespace rondo
