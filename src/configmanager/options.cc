// SPDX-License-Identifier: Apache-2.0
#include "configmanager/options.h"

#include <signal.h>

#include <iostream>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "agent/own_options.h"
#include "base/status.h"
#include "base/usage.h"
#include "config/merge.h"

namespace rondo::configmanager {
namespace {

// Values as words; Check makes options of them.
struct Words {
  std::string oneshot = "false";
  std::string send_signal = "true";
  std::string signal;
  std::vector<std::string> fallbacks;
};

absl::StatusOr<bool> Bool(const char* name, const std::string& word) {
  if (word.empty()) return false;  // NVIDIA's meaning of set but empty
  if (const std::optional<bool> value = config::ParseBool(word)) return *value;
  return absl::InvalidArgumentError(
      absl::StrCat("--", name, " '", word, "' is neither true nor false"));
}

absl::Status Check(const Words& words, Options& options) {
  RONDO_ASSIGN_OR_RETURN(options.oneshot, Bool("oneshot", words.oneshot));
  RONDO_ASSIGN_OR_RETURN(options.send_signal,
                         Bool("send-signal", words.send_signal));
  if (!words.signal.empty() &&
      (!absl::SimpleAtoi(words.signal, &options.signal) || options.signal < 1 ||
       options.signal > SIGRTMAX))
    return absl::InvalidArgumentError(absl::StrCat(
        "--signal '", words.signal, "' is no number of a signal (1-", SIGRTMAX,
        "; 1 is SIGHUP)"));
  options.fallback_strategies = agent::SplitLists(words.fallbacks);
  const struct {
    const char* name;
    const std::string& value;
  } kRequired[] = {{"node-name", options.node_name},
                   {"node-label", options.node_label},
                   {"config-file-srcdir", options.source_dir},
                   {"config-file-dst", options.destination}};
  for (const auto& [name, value] : kRequired)
    if (value.empty())
      return absl::InvalidArgumentError(absl::StrCat(
          "--", name, " is required and must not be empty [$",
          absl::AsciiStrToUpper(absl::StrReplaceAll(name, {{"-", "_"}})), "]"));
  return absl::OkStatus();
}

}  // namespace

ParsedOptions ParseOptions(int argc, char** argv,
                           const config::Getenv& getenv) {
  Options options;
  Words words;
  words.signal = absl::StrCat(options.signal);
  CLI::App app(
      "Links the config that the node's label names, and signals the process "
      "that reads it: what NVIDIA's config-manager does beside the device "
      "plugin and GPU Feature Discovery.",
      "rondo config-manager");
  auto add = [&](const char* flag, const char* variable, std::string& value,
                 const char* help) {
    return agent::AddOption(app, getenv, {flag, variable, help}, value);
  };
  // Go's form: --x, --x=true, --x=false.
  auto add_bool = [&](const char* flag, const char* variable,
                      std::string& value, const char* help) {
    add(flag, variable, value, help)
        ->expected(0, 1)
        ->default_str("true")
        ->option_text("[=BOOL]");
  };
  add_bool("--oneshot", "ONESHOT", words.oneshot,
           "link the config once, then end; default: false");
  add("--kubeconfig", "KUBECONFIG", options.kubeconfig,
      "how to reach the API server; empty = as a pod of the cluster");
  agent::AddOption(app, getenv, agent::kNodeName, options.node_name);
  agent::AddOption(app, getenv, agent::kNodeLabel, options.node_label);
  add("--config-file-srcdir", "CONFIG_FILE_SRCDIR", options.source_dir,
      agent::kConfigFolderHelp);
  add("--config-file-dst", "CONFIG_FILE_DST", options.destination,
      "the link to the chosen one");
  agent::AddOption(app, getenv, agent::kDefaultConfig, options.default_config);
  agent::AddOption(app, getenv, agent::kFallbackStrategies, words.fallbacks);
  add_bool("--send-signal", "SEND_SIGNAL", words.send_signal,
           "signal the process when its config changed; default: true");
  add("--signal", "SIGNAL", words.signal, "the signal's number");
  add("--process-to-signal", "PROCESS_TO_SIGNAL", options.process,
      "the process, by its argv[0]");
  app.footer(kExitHelp);
  try {
    app.parse(agent::ReversedWords(argc, argv));
  } catch (const CLI::ParseError& error) {
    return {std::nullopt, ReportParse(app, error, std::cout, std::cerr)};
  }
  if (const absl::Status status = Check(words, options); !status.ok()) {
    std::cerr << "config-manager: " << status.message() << "\n";
    return {std::nullopt, kExitUsage};
  }
  return {options, kExitOk};
}

}  // namespace rondo::configmanager
