// SPDX-License-Identifier: Apache-2.0
//
// Helpers around absl::Status, the project's one error vocabulary.
// "Failed" is never an empty value: a function that can fail returns Status or
// StatusOr. Exit codes of programs: 0 fine, 1 failure worth a retry, 2 bad
// usage or configuration (do not restart).

#ifndef RONDO_BASE_STATUS_H_
#define RONDO_BASE_STATUS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace rondo {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

// A configuration or usage error maps to kExitUsage; everything else is worth a
// retry.
inline int ExitCode(const absl::Status& status) {
  if (status.ok()) return kExitOk;
  return absl::IsInvalidArgument(status) ? kExitUsage : kExitFailure;
}

// The same code with "context: " in front of the message.
inline absl::Status Annotate(const absl::Status& status,
                             absl::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(context, ": ", status.message()));
}

}  // namespace rondo

#define RONDO_RETURN_IF_ERROR(expr)                               \
  do {                                                            \
    if (absl::Status rondo_status_ = (expr); !rondo_status_.ok()) \
      return rondo_status_;                                       \
  } while (false)

#define RONDO_CONCAT_INNER_(a, b) a##b
#define RONDO_CONCAT_(a, b) RONDO_CONCAT_INNER_(a, b)

// RONDO_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
#define RONDO_ASSIGN_OR_RETURN(lhs, expr) \
  RONDO_ASSIGN_OR_RETURN_IMPL_(RONDO_CONCAT_(rondo_or_, __LINE__), lhs, expr)
#define RONDO_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                                 \
  if (!tmp.ok()) return tmp.status();                \
  lhs = *std::move(tmp)

#endif  // RONDO_BASE_STATUS_H_
