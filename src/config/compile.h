// SPDX-License-Identifier: Apache-2.0
//
// The one way from text to Plan; `rondo check` and the agent both call it.
// Pure: reads no file, no environment, no clock. Any thread. Never throws;
// bad input becomes Problems.

#ifndef RONDO_CONFIG_COMPILE_H_
#define RONDO_CONFIG_COMPILE_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "config/plan.h"
#include "config/problem.h"

namespace rondo::config {

// The value of an environment variable, or nothing when it is not set. Set but
// empty is a value.
using Getenv =
    std::function<std::optional<std::string>(absl::string_view name)>;

// Flags given on the command line: key of config/flag_table.h (for example
// "plugin.deviceListStrategy") -> text as given ("true", "envvar,cdi-cri").
struct Overrides {
  std::map<std::string, std::string> command_line;
};

struct CompileResult {
  std::optional<Plan> plan;       // set when no problem is an error
  std::vector<Problem> problems;  // in the order of the file
  bool ok() const { return plan.has_value(); }
};

// Text of one config (an empty text means all defaults), merged with command
// line > environment > file > default, then validated.
CompileResult Compile(absl::string_view text, const Overrides& overrides = {},
                      const Getenv& getenv = {});

// The merged config as the indented JSON that NVIDIA's plugin logs after
// "Running with config:", same key names, plus "rondo". `indent` 0 = one line.
std::string RunningWithConfigJson(const Plan& plan, int indent = 2);

// How many replicas of each of `devices` devices one ListAndWatch message can
// hold: kubelet accepts at most 4 MiB of it (kubernetes #109304).
int MaxReplicasThatFit(int devices);

// An error for each advertised resource whose device list cannot pass kubelet.
// Compile has already asked this for one device of each resource; the agent
// asks again with the real counts: resource name as discovered
// ("nvidia.com/gpu") -> number of devices.
std::vector<Problem> CheckDeviceListSize(
    const Plan& plan, const std::map<std::string, int>& devices);

}  // namespace rondo::config

#endif  // RONDO_CONFIG_COMPILE_H_
