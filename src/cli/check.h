// SPDX-License-Identifier: Apache-2.0
//
// The core of `rondo check`: texts in, a report out. Reads no file, except in
// LoadSources. Any thread.

#ifndef RONDO_CLI_CHECK_H_
#define RONDO_CLI_CHECK_H_

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/check_node.h"
#include "config/node.h"
#include "config/nvidia.h"
#include "config/plan.h"
#include "config/problem.h"

namespace rondo::cli {

// One text and where it came from.
struct Source {
  std::string file;           // as the user named it; "-" is stdin
  std::string directory_key;  // name of the file, if found in a directory
  std::string text;
};

// Reads files, "-" (from `in`) and the files of a directory, by name.
absl::StatusOr<std::vector<Source>> LoadSources(
    const std::vector<std::string>& paths, std::istream& in);

struct CheckOptions {
  bool strict = false;  // warnings are errors
  std::optional<NodeFacts> node;
  std::vector<Source> against;  // the configs that are in force now
  bool compare = false;
  std::string default_key;  // DEFAULT_CONFIG
};

struct CheckedConfig {
  std::string file;
  std::string kind;  // config, configmap, helm, clusterpolicy, directory
  std::string name;  // of the ConfigMap
  std::string key;
  bool ok = false;
  std::string error;  // the first one, with its place
  config::NvidiaVerdict nvidia;
  std::optional<config::Plan> plan;
  config::DeviceGroups groups;  // of the node, or the smallest that would do
  bool on_node = false;         // they are those of the node
  std::vector<config::Advertised> advertise;
  std::vector<config::Problem> problems;
  bool chosen = false;  // with a node: this is the config it uses
  std::vector<config::Change> changes;  // against the config in force
};

struct CheckReport {
  std::vector<CheckedConfig> configs;
  std::string why;  // with a node: why the chosen config is chosen, or none is
  bool ok() const;
};

CheckReport Check(const std::vector<Source>& sources,
                  const CheckOptions& options);

// The two forms of the report. Text is for people, JSON a contract
// (docs/config.md).
void PrintText(const CheckReport& report, const CheckOptions& options,
               std::ostream& out);
void PrintJson(const CheckReport& report, const CheckOptions& options,
               std::ostream& out);

}  // namespace rondo::cli

#endif  // RONDO_CLI_CHECK_H_
