// SPDX-License-Identifier: Apache-2.0

#include "config/problem.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rondo::config {
namespace {

struct CodeInfo {
  const char* name;
  Severity severity;
};

constexpr CodeInfo kCodes[] = {
#define RONDO_X(name, text, severity) {text, Severity::severity},
    RONDO_CONFIG_PROBLEM_CODES(RONDO_X)
#undef RONDO_X
};

}  // namespace

absl::string_view CodeName(Code code) {
  return kCodes[static_cast<int>(code)].name;
}

absl::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "info";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "error";
}

std::string Printable(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppend(&out, "\\x", absl::Hex(byte, absl::kZeroPad2));
    } else {
      out.push_back(c);
    }
  }
  return out;
}

Problem MakeProblem(Code code, int line, int column, std::string message,
                    std::string hint) {
  Problem problem;
  problem.severity = kCodes[static_cast<int>(code)].severity;
  problem.code = code;
  problem.line = line;
  problem.column = column;
  problem.message = Printable(message);
  problem.hint = std::move(hint);
  return problem;
}

bool HasErrors(const std::vector<Problem>& problems) {
  return std::any_of(problems.begin(), problems.end(), [](const Problem& p) {
    return p.severity == Severity::kError;
  });
}

void SortByPlace(std::vector<Problem>& problems) {
  const auto place = [](const Problem& p) {
    return std::make_tuple(p.line == 0, p.line, p.column);
  };
  std::stable_sort(
      problems.begin(), problems.end(),
      [&](const Problem& a, const Problem& b) { return place(a) < place(b); });
}

void MakeStrict(std::vector<Problem>& problems) {
  for (Problem& problem : problems) {
    if (problem.severity == Severity::kWarning) {
      problem.severity = Severity::kError;
    }
  }
}

std::string Describe(const Problem& problem) {
  std::string out;
  if (problem.line > 0) {
    absl::StrAppend(&out, "line ", problem.line, ", column ", problem.column,
                    ": ");
  }
  absl::StrAppend(&out, problem.message);
  if (!problem.hint.empty()) absl::StrAppend(&out, " (", problem.hint, ")");
  return out;
}

absl::Status ToStatus(const std::vector<Problem>& problems) {
  const Problem* first = nullptr;
  int errors = 0;
  for (const Problem& problem : problems) {
    if (problem.severity != Severity::kError) continue;
    if (errors++ == 0) first = &problem;
  }
  if (first == nullptr) return absl::OkStatus();
  std::string text = Describe(*first);
  if (errors > 1) absl::StrAppend(&text, "; and ", errors - 1, " more");
  return absl::InvalidArgumentError(text);
}

}  // namespace rondo::config
