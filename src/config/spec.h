// SPDX-License-Identifier: Apache-2.0
//
// What stands in a config file, decoded but not yet merged with flags: plain
// structs that remember where each value stands. Between yaml::Node and Plan;
// used by src/config only. Decoding is pure, any thread, and collects all
// problems; it refuses exactly what NVIDIA's parser refuses, and in `rondo:`
// whatever is not known.

#ifndef RONDO_CONFIG_SPEC_H_
#define RONDO_CONFIG_SPEC_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/plan.h"
#include "config/problem.h"
#include "config/yaml.h"

namespace rondo::config {

// A flag's value as text: one for strings and booleans ("true"), any number for
// lists.
struct FlagValue {
  std::vector<std::string> values;
  yaml::Mark mark;
};

struct ResourceSpec {
  yaml::Mark mark;   // of the entry
  std::string name;  // full: "nvidia.com/gpu"
  yaml::Mark name_mark;
  std::string rename;  // full, empty if not given
  yaml::Mark rename_mark;
  int64_t replicas = 0;
  yaml::Mark replicas_mark;
  DeviceSelector devices;
  yaml::Mark devices_mark;  // line 0 if not given
};

// `timeSlicing:` or `mps:`.
struct ReplicatedSpec {
  yaml::Mark mark;
  bool rename_by_default = false;
  std::optional<bool> fail_requests_greater_than_one;
  std::vector<ResourceSpec> resources;
};

struct RondoSpec {
  RondoOptions options;
  std::optional<Injection> injection;
  yaml::Mark mark;
  yaml::Mark memory_mark;
  yaml::Mark injection_mark;
};

struct Spec {
  std::map<std::string, FlagValue> flags;  // by key of flag_table.h
  std::optional<ReplicatedSpec> time_slicing;
  std::optional<ReplicatedSpec> mps;
  std::vector<int64_t> imex_channels;
  yaml::Mark imex_mark;
  bool imex_required = false;
  RondoSpec rondo;
};

// The whole file. A null root is an empty file.
Spec DecodeSpec(const yaml::Node& root, std::vector<Problem>& problems);

// The parts; each in its own file. Null nodes are for the caller.
void DecodeFlags(const yaml::Node& flags, Spec& spec,
                 std::vector<Problem>& problems);
ReplicatedSpec DecodeReplicated(const yaml::Node& block,
                                const std::string& path,
                                std::vector<Problem>& problems);
void DecodeRondo(const yaml::Node& rondo, RondoSpec& spec,
                 std::vector<Problem>& problems);

// "gpu" -> "nvidia.com/gpu"; an error message as NVIDIA's parser words it when
// the result is no resource name.
std::string FullResourceName(const std::string& name, std::string& error);

// One item of a `devices` list: "0", "0:1", "GPU-<uuid>", "MIG-<uuid>".
std::optional<DeviceRef> ParseDeviceRef(const std::string& text);

}  // namespace rondo::config

#endif  // RONDO_CONFIG_SPEC_H_
