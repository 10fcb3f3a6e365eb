// SPDX-License-Identifier: Apache-2.0
//
// What is wrong, doubtful or worth knowing about a configuration. Every part of
// the config path appends Problems instead of stopping at the first one, so a
// user sees all of them at once. Plain values; any thread; nothing here fails.
//
// The list of codes below is the only one: docs/config.md explains each, and a
// test compares the two.

#ifndef RONDO_CONFIG_PROBLEM_H_
#define RONDO_CONFIG_PROBLEM_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rondo::config {

// Error: the config is refused. Warning: it is accepted, but something in it
// has no effect or a risk (`--strict` makes it an error). Info: worth knowing.
enum class Severity { kInfo, kWarning, kError };

// X(enumerator, code as printed, severity)
#define RONDO_CONFIG_PROBLEM_CODES(X)                   \
  X(kYamlSyntax, "yaml-syntax", kError)                 \
  X(kYamlLimit, "yaml-limit", kError)                   \
  X(kVersion, "version", kError)                        \
  X(kType, "type", kError)                              \
  X(kMissing, "missing", kError)                        \
  X(kResourceName, "resource-name", kError)             \
  X(kReplicas, "replicas", kError)                      \
  X(kDevices, "devices", kError)                        \
  X(kFlagValue, "flag-value", kError)                   \
  X(kImex, "imex", kError)                              \
  X(kMpsUnsupported, "mps-unsupported", kError)         \
  X(kListTooLong, "list-too-long", kError)              \
  X(kRenameClash, "rename-clash", kError)               \
  X(kDeviceMissing, "device-missing", kError)           \
  X(kRondoKey, "rondo-key", kError)                     \
  X(kRondoValue, "rondo-value", kError)                 \
  X(kSlotMemoryTooBig, "slot-memory-too-big", kError)   \
  X(kNoConfig, "no-config", kError)                     \
  X(kUnknownKey, "unknown-key", kWarning)               \
  X(kMisplacedKey, "misplaced-key", kWarning)           \
  X(kDuplicateKey, "duplicate-key", kWarning)           \
  X(kExtraDocument, "extra-document", kWarning)         \
  X(kFlagIgnored, "flag-ignored", kWarning)             \
  X(kResourcesIgnored, "resources-ignored", kWarning)   \
  X(kResourceUnmatched, "resource-unmatched", kWarning) \
  X(kResourceTwice, "resource-twice", kWarning)         \
  X(kReplicasHigh, "replicas-high", kWarning)           \
  X(kMigSharing, "mig-sharing", kWarning)               \
  X(kSlotMemoryLow, "slot-memory-low", kWarning)        \
  X(kRondoNoEffect, "rondo-no-effect", kWarning)        \
  X(kChoice, "choice", kError)                          \
  X(kOperator, "operator", kWarning)                    \
  X(kNvidiaDrops, "nvidia-drops", kInfo)                \
  X(kFlagOverridden, "flag-overridden", kInfo)          \
  X(kYamlTrap, "yaml-trap", kInfo)                      \
  X(kTraining, "training", kInfo)

enum class Code {
#define RONDO_X(name, text, severity) name,
  RONDO_CONFIG_PROBLEM_CODES(RONDO_X)
#undef RONDO_X
};

// "unknown-key"
absl::string_view CodeName(Code code);
// "error", "warning" or "info"
absl::string_view SeverityName(Severity severity);

struct Problem {
  Severity severity = Severity::kError;
  Code code = Code::kType;
  int line = 0;    // 1-based; 0 = no place in the file (a flag, a node fact)
  int column = 0;  // 1-based; 0 with line 0
  std::string message;
  std::string hint;  // what to do; may be empty
};

// Control characters written out: a config must not write to the terminal or to
// lines of the log of its own.
std::string Printable(absl::string_view text);

// A problem of the code's own severity, its message printable.
Problem MakeProblem(Code code, int line, int column, std::string message,
                    std::string hint = "");

bool HasErrors(const std::vector<Problem>& problems);

// By line and column; those without a place last.
void SortByPlace(std::vector<Problem>& problems);

// Warnings become errors (`--strict`); infos stay.
void MakeStrict(std::vector<Problem>& problems);

// "line 3, column 5: no replicas specified (add `replicas: 4`)"
std::string Describe(const Problem& problem);

// OK without errors; otherwise InvalidArgument with the first error's text and
// how many more there are.
absl::Status ToStatus(const std::vector<Problem>& problems);

}  // namespace rondo::config

#endif  // RONDO_CONFIG_PROBLEM_H_
