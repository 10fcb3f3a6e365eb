// SPDX-License-Identifier: Apache-2.0
//
// Finds the configs in whatever a user has at hand: a bare config, ConfigMap
// manifests, Helm values (of NVIDIA's device plugin chart or of the GPU
// Operator), a ClusterPolicy, or several of these in one stream. Pure; any
// thread. Text that cannot be read is a problem, never "no configs".

#ifndef RONDO_CONFIG_DOCUMENT_H_
#define RONDO_CONFIG_DOCUMENT_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "config/problem.h"
#include "config/yaml.h"

namespace rondo::config {

enum class InputKind { kConfig, kConfigMap, kHelmValues, kClusterPolicy };

// "config", "configmap", "helm", "clusterpolicy"
absl::string_view KindName(InputKind kind);

// One config text, and where it stands in the file.
struct Document {
  InputKind kind = InputKind::kConfig;
  std::string name;  // metadata.name of the ConfigMap; empty if none
  std::string key;   // key in its map; empty for a bare config
  std::string text;
  // A block scalar: line n of the text is line first_line + n - 1 of the file,
  // shifted right by `indent`. Otherwise (first_line 0) all of it is at `mark`.
  int first_line = 1;
  int indent = 0;
  yaml::Mark mark;
};

// What a ClusterPolicy or Helm values say about which config is used.
struct Selection {
  InputKind kind = InputKind::kClusterPolicy;
  yaml::Mark mark;
  std::string config_map;  // empty: not named
  std::string default_key;
  std::vector<std::string> fallbacks;
  // Variables that the chart or the operator sets for the plugin: stronger than
  // the config file.
  std::map<std::string, std::string> environment;
};

struct Documents {
  std::vector<Document> configs;
  std::optional<Selection> selection;  // the last one found
  std::vector<Problem> problems;       // about the manifests themselves
};

Documents ReadDocuments(absl::string_view text);

// Moves problems from the lines of `document.text` to those of the file.
void MoveToFile(const Document& document, std::vector<Problem>& problems);

}  // namespace rondo::config

#endif  // RONDO_CONFIG_DOCUMENT_H_
