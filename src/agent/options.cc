// SPDX-License-Identifier: Apache-2.0
#include "agent/options.h"

#include <iostream>
#include <map>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "agent/own_options.h"
#include "base/status.h"
#include "base/usage.h"
#include "config/amount.h"
#include "config/flag_table.h"

namespace rondo::agent {
namespace {

void AddNvidias(CLI::App& app, std::map<std::string, std::string>& given) {
  for (const config::FlagInfo& flag : config::kFlags) {
    std::string names;
    for (const char* name : flag.names)
      if (name != nullptr)
        absl::StrAppend(&names, names.empty() ? "--" : ",--", name);
    std::string help = flag.help;
    for (const char* variable : flag.environment)
      if (variable != nullptr) absl::StrAppend(&help, " [$", variable, "]");
    const std::string key = flag.key;
    CLI::Option* option;
    if (flag.type == config::FlagType::kBool) {
      // Go's form: --x, --x=true, --x=false.
      option = app.add_option_function<std::string>(
          names, [&given, key](const std::string& v) { given[key] = v; }, help);
      // The default is what the bare flag means, not what holds without it:
      // keep it out of the help.
      option->expected(0, 1)->default_str("true")->option_text("[=BOOL]");
    } else {
      option = app.add_option_function<std::vector<std::string>>(
          names,
          [&given, key](const std::vector<std::string>& values) {
            given[key] = absl::StrJoin(values, ",");
          },
          help);
      // A list flag may be given several times; of any other the last counts.
      if (flag.type == config::FlagType::kStringList ||
          flag.type == config::FlagType::kIntList)
        option->take_all();
      else
        option->take_last();
      option->expected(1);
    }
    if (flag.type != config::FlagType::kBool)
      option->type_name(flag.type == config::FlagType::kString ? "VALUE"
                                                               : "LIST");
    option->group("NVIDIA's flags");
  }
}

}  // namespace

ParsedOptions ParseOptions(int argc, char** argv,
                           const config::Getenv& getenv) {
  Options options;
  std::vector<std::string> fallbacks = {
      absl::StrJoin(options.fallback_strategies, ",")};
  std::string recovery_quiet = "5s";
  std::string log_level = "info";
  CLI::App app("The node agent: shares this node's GPUs through kubelet.",
               "rondo agent");
  AddNvidias(app, options.overrides.command_line);
  auto own = [&](const char* flag, const char* environment, std::string& value,
                 const char* help) {
    AddOption(app, getenv, {flag, environment, help}, value);
  };
  own("--config-dir", "CONFIG_DIR", options.config_dir, kConfigFolderHelp);
  AddOption(app, getenv, kDefaultConfig, options.default_config);
  AddOption(app, getenv, kFallbackStrategies, fallbacks);
  AddOption(app, getenv, kNodeName, options.node_name);
  AddOption(app, getenv, kNodeLabel, options.node_label);
  own("--listen", "RONDO_LISTEN", options.listen,
      "address of /metrics, /healthz, /readyz and /api; empty = none");
  own("--device-plugin-dir", "RONDO_DEVICE_PLUGIN_DIR",
      options.device_plugin_dir, "kubelet's folder of plugin sockets");
  own("--pod-resources-socket", "RONDO_POD_RESOURCES_SOCKET",
      options.pod_resources_socket,
      "where kubelet tells which pod holds which device");
  own("--pods-api-socket", "RONDO_PODS_API_SOCKET", options.pods_api_socket,
      "where kubelet tells the annotations of pods (Kubernetes 1.37)");
  own("--api-server", "RONDO_API_SERVER", options.api_server,
      "its address, such as that of kubectl proxy; empty = the cluster's");
  own("--cdi-dir", "RONDO_CDI_DIR", options.cdi_dir,
      "where CDI specifications are written");
  own("--state-dir", "RONDO_STATE_DIR", options.state_dir,
      "remembers the last good config; empty = does not");
  own("--root", "RONDO_ROOT", options.root,
      "where /proc, /sys and /dev are read");
  own("--recovery-quiet", "RONDO_RECOVERY_QUIET", recovery_quiet,
      "how long a GPU must stay quiet after an Xid to be healthy again: 250ms, "
      "5s, 2m");
  own("--log-level", "RONDO_LOG_LEVEL", log_level,
      "debug, info, warning, error or off");
  app.footer(kExitHelp);
  try {
    app.parse(ReversedWords(argc, argv));
  } catch (const CLI::ParseError& error) {
    return {std::nullopt, ReportParse(app, error, std::cout, std::cerr)};
  }
  const std::optional<LogLevel> level = ParseLogLevel(log_level);
  if (!level) {
    std::cerr << "rondo agent: --log-level: " << config::Shown(log_level)
              << " is none of " << kLogLevelNames << "\n";
    return {std::nullopt, kExitUsage};
  }
  absl::Duration quiet;
  if (!absl::ParseDuration(recovery_quiet, &quiet) ||
      quiet < absl::ZeroDuration() || quiet > absl::Hours(24)) {
    std::cerr << "rondo agent: --recovery-quiet: "
              << config::Shown(recovery_quiet)
              << " is not a duration of at most 24h: write for example 5s\n";
    return {std::nullopt, kExitUsage};
  }
  options.recovery_quiet = absl::ToChronoMilliseconds(quiet);
  options.log_level = *level;
  options.fallback_strategies = SplitLists(fallbacks);
  if (auto set = getenv("CONFIG_FILE")) options.config_file = *set;
  if (const auto given = options.overrides.command_line.find("configFile");
      given != options.overrides.command_line.end())
    options.config_file = given->second;
  return {options, kExitOk};
}

}  // namespace rondo::agent
