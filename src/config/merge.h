// SPDX-License-Identifier: Apache-2.0
//
// Flags of a config file, the environment and the command line -> the values
// that count: command line > environment > file > default. Pure; any thread.

#ifndef RONDO_CONFIG_MERGE_H_
#define RONDO_CONFIG_MERGE_H_

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "config/compile.h"
#include "config/plan.h"
#include "config/problem.h"
#include "config/spec.h"

namespace rondo::config {

// Fills `plan.flags` and `plan.imex` and checks every value; messages are those
// of NVIDIA's plugin at its start. A variable that is set but empty counts as
// set.
void MergeFlags(const Spec& spec, const Overrides& overrides,
                const Getenv& getenv, Plan& plan,
                std::vector<Problem>& problems);

// Go's strconv.ParseBool: 1, t, T, true, TRUE, True and their opposites; empty
// for any other word.
std::optional<bool> ParseBool(absl::string_view text);

// The words of the format, for the merger and for printing.
const char* ToWord(MigStrategy value);
const char* ToWord(DeviceListStrategy value);
const char* ToWord(DeviceIdStrategy value);
const char* ToWord(AllocationPolicy value);

}  // namespace rondo::config

#endif  // RONDO_CONFIG_MERGE_H_
