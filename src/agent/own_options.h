// SPDX-License-Identifier: Apache-2.0
//
// Options beside NVIDIA's flags, as the agent and config-manager have them:
// command line > environment > default. The table holds those that both have,
// which say how a node's config is chosen (config/choose.h).
//
// Used while the command line is read, by one thread; the values and the app
// live until it is parsed.

#ifndef RONDO_AGENT_OWN_OPTIONS_H_
#define RONDO_AGENT_OWN_OPTIONS_H_

#include <string>
#include <vector>

#include "config/compile.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rondo::agent {

struct OwnOption {
  const char* flag;
  const char* environment;
  const char* help;
};

inline constexpr OwnOption kNodeName{"--node-name", "NODE_NAME",
                                     "this node; its label chooses the config"};
inline constexpr OwnOption kNodeLabel{"--node-label", "NODE_LABEL",
                                      "the label that names the config"};
inline constexpr OwnOption kDefaultConfig{
    "--default-config", "DEFAULT_CONFIG",
    "the config to use when the node has no label"};
inline constexpr OwnOption kFallbackStrategies{
    "--fallback-strategies", "FALLBACK_STRATEGIES",
    "then, in this order: named, single, empty"};
// The folder has a flag of its own in each.
inline constexpr char kConfigFolderHelp[] =
    "folder with one config a file; a mounted ConfigMap";

// value: the default, which the environment changes at once.
CLI::Option* AddOption(CLI::App& app, const config::Getenv& getenv,
                       const OwnOption& option, std::string& value);
// Lists with commas; the flag may be given several times.
CLI::Option* AddOption(CLI::App& app, const config::Getenv& getenv,
                       const OwnOption& option,
                       std::vector<std::string>& lists);
// The words of such lists, without spaces around them.
std::vector<std::string> SplitLists(const std::vector<std::string>& lists);

// The words for CLI11, last first as it wants them. It knows no empty value in
// `--name=`, which clears a default (`--kubelet-socket=` means "do not
// register"); as a word of its own it does.
std::vector<std::string> ReversedWords(int argc, char** argv);

}  // namespace rondo::agent

#endif  // RONDO_AGENT_OWN_OPTIONS_H_
