// SPDX-License-Identifier: Apache-2.0

#include "cli/check_command.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "base/usage.h"
#include "cli/check.h"

namespace rondo::cli {
namespace {

struct Flags {
  std::vector<std::string> files;
  std::string node;
  std::string against;
  std::string output = "text";
  std::string default_key;
  bool strict = false;
};

void Define(CLI::App& app, Flags& flags) {
  app.add_option("FILE", flags.files,
                 "bare config, ConfigMap manifest, Helm values, ClusterPolicy, "
                 "or a directory of configs; - is stdin")
      ->required()
      ->type_name("");
  app.add_flag("--strict", flags.strict, "warnings are errors");
  app.add_option("--node", flags.node,
                 "output of `kubectl get node NAME -o json`: what this node "
                 "would choose and advertise; default: no node")
      ->type_name("FILE");
  app.add_option("--against", flags.against,
                 "the config in force: print what would change for pods; "
                 "default: none")
      ->type_name("FILE");
  app.add_option("--default-config", flags.default_key,
                 "key used by nodes without a label; default: none")
      ->type_name("KEY");
  app.add_option("--output", flags.output, "how to print: text or json")
      ->capture_default_str()
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}));
}

absl::Status Run(const Flags& flags, std::istream& in, std::ostream& out,
                 bool& ok) {
  CheckOptions options;
  options.strict = flags.strict;
  options.default_key = flags.default_key;
  RONDO_ASSIGN_OR_RETURN(const std::vector<Source> sources,
                         LoadSources(flags.files, in));
  if (!flags.against.empty()) {
    options.compare = true;
    RONDO_ASSIGN_OR_RETURN(options.against, LoadSources({flags.against}, in));
  }
  if (!flags.node.empty()) {
    RONDO_ASSIGN_OR_RETURN(const std::vector<Source> node,
                           LoadSources({flags.node}, in));
    absl::StatusOr<NodeFacts> facts = ReadNode(node[0].text);
    if (!facts.ok()) return Annotate(facts.status(), flags.node);
    options.node = *std::move(facts);
  }
  const CheckReport report = Check(sources, options);
  if (flags.output == "json") {
    PrintJson(report, options, out);
  } else {
    PrintText(report, options, out);
  }
  ok = report.ok();
  return absl::OkStatus();
}

}  // namespace

int RunCheckCommand(int argc, char** argv, std::istream& in, std::ostream& out,
                    std::ostream& err) {
  CLI::App app("Judges configs before a roll-out.", "rondo check");
  Flags flags;
  Define(app, flags);
  app.footer(
      "Exit status: 0 every config is accepted, 2 one is refused, or bad "
      "usage.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return ReportParse(app, error, out, err);
  }
  bool ok = false;
  if (absl::Status status = Run(flags, in, out, ok); !status.ok()) {
    err << "rondo check: " << status.message() << "\n";
    return kExitUsage;
  }
  return ok ? kExitOk : kExitUsage;
}

int CheckCommand(int argc, char** argv) {
  return RunCheckCommand(argc, argv, std::cin, std::cout, std::cerr);
}

}  // namespace rondo::cli
