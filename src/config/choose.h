// SPDX-License-Identifier: Apache-2.0
//
// Which of several configs a node uses. Pure; any thread; "none can be chosen"
// is an error status, never an empty name.

#ifndef RONDO_CONFIG_CHOOSE_H_
#define RONDO_CONFIG_CHOOSE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rondo::config {

inline constexpr char kConfigLabel[] = "nvidia.com/device-plugin.config";

struct ChoiceInput {
  // A file named by --config-file or CONFIG_FILE; wins over everything.
  std::string explicit_file;
  // Keys of the ConfigMap, or names in the config folder. Names that start with
  // ".." are not candidates.
  std::vector<std::string> keys;
  // Value of the node label; empty or absent = not set.
  std::string label;
  std::string label_name = kConfigLabel;  // for the texts
  // DEFAULT_CONFIG.
  std::string default_key;
  // FALLBACK_STRATEGIES: "named", "single", "empty", in order.
  std::vector<std::string> fallbacks;
  // GPU models of the node, as NVML ("NVIDIA A100-SXM4-80GB") or as GPU Feature
  // Discovery ("NVIDIA-A100-SXM4-80GB-SHARED") spell them.
  std::vector<std::string> gpu_models;
};

enum class ChoiceRule {
  kExplicitFile,
  kLabel,
  kDefault,
  kModel,
  kNamed,
  kSingle,
  kEmpty
};

struct Choice {
  ChoiceRule rule = ChoiceRule::kEmpty;
  std::string key;  // the file for kExplicitFile; empty for kEmpty (no config)
  std::string why;  // one sentence for a user
};

// Order: explicit file; label; default key; fallbacks as given; GPU model. The
// fallback "empty" always succeeds, so the GPU model is tried just before it.
// A label or default that names no key is NotFound with the keys that exist.
absl::StatusOr<Choice> ChooseConfig(const ChoiceInput& input);

// "NVIDIA A100-SXM4-80GB" -> "NVIDIA-A100-SXM4-80GB": the product text of GPU
// Feature Discovery (drop all outside [A-Za-z0-9-_. ], join words with '-').
std::string ProductName(absl::string_view model);

// True if `key` names the model: same spelling as ProductName, with or without
// "NVIDIA-" in front on either side, any case, "-SHARED" removed.
bool KeyNamesModel(absl::string_view key, absl::string_view model);

}  // namespace rondo::config

#endif  // RONDO_CONFIG_CHOOSE_H_
