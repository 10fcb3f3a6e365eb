// SPDX-License-Identifier: Apache-2.0
//
// The decoders of NVIDIA's config types, one per Go type, with the rules and
// the messages of Go's encoding/json. Used by nvidia.cc only. Pure; any thread.

#ifndef RONDO_CONFIG_NVIDIA_DECODE_H_
#define RONDO_CONFIG_NVIDIA_DECODE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/yaml.h"

namespace rondo::config::nvidia {

// An error of Go's decoder. A type error gets its place in the outermost struct
// written in when it leaves the decoder.
struct Failure {
  std::string text;   // complete message, unless a type error
  std::string value;  // type error: what stood there ("number 4.5")
  std::string type;   // type error: Go's type that was wanted
};
using Result = std::optional<Failure>;

Result TypeError(const yaml::Node& node, std::string type);

// json.Unmarshal into string, bool and int. Null leaves the value alone.
Result GoString(const yaml::Node& node, std::string& value,
                const std::string& type = "string");
Result GoBool(const yaml::Node& node, bool& value);
Result GoInt(const yaml::Node& node, int64_t& value);

struct Entry {
  std::string name;
  std::string rename;
  bool all_devices = true;
  int64_t replicas = 0;
};

// `sharing.timeSlicing` and `sharing.mps`.
struct Replicated {
  bool rename_by_default = false;
  std::optional<bool> fail_requests;
  std::vector<Entry> resources;
};

Result ReplicatedBlock(const yaml::Node& node, Replicated& block);

// `resources.gpus[]` and `resources.mig[]`.
Result PatternEntry(const yaml::Node& node);

// `flags.plugin.deviceListStrategy`, `flags.gfd.sleepInterval`.
Result ListStrategy(const yaml::Node& node);
Result Duration(const yaml::Node& node);

}  // namespace rondo::config::nvidia

#endif  // RONDO_CONFIG_NVIDIA_DECODE_H_
