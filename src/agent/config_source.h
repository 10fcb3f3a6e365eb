// SPDX-License-Identifier: Apache-2.0
//
// Where the text of the config comes from: one file, or one of several in a
// folder (config/choose.h). Reads files; any thread; keeps nothing.

#ifndef RONDO_AGENT_CONFIG_SOURCE_H_
#define RONDO_AGENT_CONFIG_SOURCE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/options.h"

namespace rondo::agent {

struct ConfigText {
  std::string text;
  std::string origin;  // path of the file, or "" for built-in defaults
  std::string why;     // one sentence: why this one
};

// What the node says about itself, for the choice.
struct NodeFacts {
  std::string label;
  std::vector<std::string> gpu_models;
};

// Names in the folder that may be configs: no folders, nothing that starts with
// "..". Sorted.
absl::StatusOr<std::vector<std::string>> ConfigKeys(
    const std::string& directory);

// NotFound where the file, or the key that the label or the default names, does
// not exist; InvalidArgument where it is no regular file (a FIFO would block).
absl::StatusOr<ConfigText> ReadConfig(const Options& options,
                                      const NodeFacts& facts);

// The folders whose changes may change what ReadConfig gives: the file's own
// and, where the file is a symbolic link, the one that it points into.
std::vector<std::string> FoldersToWatch(const Options& options);

}  // namespace rondo::agent

#endif  // RONDO_AGENT_CONFIG_SOURCE_H_
