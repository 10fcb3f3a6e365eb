// SPDX-License-Identifier: Apache-2.0
//
// What config-manager is told from outside: NVIDIA's flags and environment
// variables, by their names. Command line > environment > default.

#ifndef RONDO_CONFIGMANAGER_OPTIONS_H_
#define RONDO_CONFIGMANAGER_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "config/choose.h"
#include "config/compile.h"

namespace rondo::configmanager {

struct Options {
  bool oneshot = false;
  std::string kubeconfig;  // empty: the cluster's own, as a pod sees it
  std::string node_name;
  std::string node_label = config::kConfigLabel;
  std::string source_dir;   // a mounted ConfigMap, one config a key
  std::string destination;  // the link
  std::string default_config;
  std::vector<std::string> fallback_strategies;
  bool send_signal = true;
  int signal = 1;                                // SIGHUP
  std::string process = "nvidia-device-plugin";  // its argv[0]
};

// Either options to run with, or an exit code: --help printed (0), or an error
// told on stderr (2).
struct ParsedOptions {
  std::optional<Options> options;
  int exit_code = 0;
};
ParsedOptions ParseOptions(int argc, char** argv, const config::Getenv& getenv);

}  // namespace rondo::configmanager

#endif  // RONDO_CONFIGMANAGER_OPTIONS_H_
