// SPDX-License-Identifier: Apache-2.0
//
// What the agent is told from outside: NVIDIA's flags (config/flag_table.h) and
// its own. The only reader of the command line and of environment variables;
// everything below gets values.

#ifndef RONDO_AGENT_OPTIONS_H_
#define RONDO_AGENT_OPTIONS_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "config/choose.h"
#include "config/compile.h"

namespace rondo::agent {

struct Options {
  // NVIDIA's flags as given; merged with environment and file by
  // config::Compile on every load.
  config::Overrides overrides;
  // One file, NVIDIA's --config-file / CONFIG_FILE. Wins over config_dir.
  std::string config_file;
  // A mounted ConfigMap with one config a key; which one is chosen as
  // config/choose.h says.
  std::string config_dir;
  std::string default_config;
  std::vector<std::string> fallback_strategies = {"named", "single"};
  // Empty: the node's label is not looked at.
  std::string node_name;
  std::string node_label = config::kConfigLabel;
  // Empty: no HTTP.
  std::string listen = ":9400";
  std::string device_plugin_dir = "/var/lib/kubelet/device-plugins";
  std::string pod_resources_socket =
      "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string pods_api_socket = "/var/lib/kubelet/pods-api/pods-api.sock";
  // "http://127.0.0.1:8001"; empty: the cluster's own, with the pod's service
  // account.
  std::string api_server;
  std::string cdi_dir = "/var/run/cdi";
  // Remembers the last good config across restarts. Empty: does not.
  std::string state_dir = "/run/rondo";
  // Where /proc, /sys and /dev are read. A simulated node has its own.
  std::string root = "/";
  // How long a GPU must stay quiet after an Xid before it counts as healthy
  // again.
  std::chrono::milliseconds recovery_quiet{5000};
  LogLevel log_level = LogLevel::kInfo;
};

// Either options to run with, or an exit code: --help printed (0), or an error
// told on stderr (2).
struct ParsedOptions {
  std::optional<Options> options;
  int exit_code = 0;
};
ParsedOptions ParseOptions(int argc, char** argv, const config::Getenv& getenv);

}  // namespace rondo::agent

#endif  // RONDO_AGENT_OPTIONS_H_
