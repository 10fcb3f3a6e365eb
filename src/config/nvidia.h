// SPDX-License-Identifier: Apache-2.0
//
// What NVIDIA's device plugin 0.20 makes of a config text: its parser's verdict
// and message, and the sharing that it works with. Independent of our own
// decoder, so that the two can be compared. Pure; any thread.
//
// Behaviour observed with the v0.20.0 sources (api/config/v1): YAML to JSON,
// then Go's encoding/json with its own rules for errors. The text of YAML
// syntax errors is ours; all other messages are NVIDIA's. Flags are checked by
// NVIDIA after merging with the environment, so their values are no part of
// this.

#ifndef RONDO_CONFIG_NVIDIA_H_
#define RONDO_CONFIG_NVIDIA_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace rondo::config {

struct NvidiaVerdict {
  bool ok = false;
  // "unmarshal error: …" or "unknown version: …"; empty when ok.
  std::string error;
  // What it logs and then ignores.
  std::vector<std::string> warnings;
  // "none", "time-slicing" or "mps"; "none" when refused.
  std::string strategy = "none";
  // One line of JSON, after `rename` and `devices` were dropped:
  // {"timeSlicing":{...},"mps":{...}}; "{}" when refused.
  std::string sharing = "{}";
};

NvidiaVerdict JudgeAsNvidia(absl::string_view text);

}  // namespace rondo::config

#endif  // RONDO_CONFIG_NVIDIA_H_
