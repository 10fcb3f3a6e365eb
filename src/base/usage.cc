// SPDX-License-Identifier: Apache-2.0
#include "base/usage.h"

#include <ostream>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/suggest.h"

namespace rondo {
namespace {

// The app whose words were read last: the subcommand, where there is one.
const CLI::App& Innermost(const CLI::App& app) {
  const std::vector<CLI::App*> subcommands = app.get_subcommands();
  return subcommands.empty() ? app : Innermost(*subcommands.back());
}

std::string UnknownWord(const CLI::App& app, const std::string& word) {
  const bool option = absl::StartsWith(word, "-");
  std::vector<std::string> known;
  for (const CLI::Option* each : app.get_options())
    for (const std::string& name : each->get_lnames())
      if (option) known.push_back("--" + name);
  for (const CLI::App* each : app.get_subcommands(nullptr))
    if (!option) known.push_back(each->get_name());
  const std::string name = word.substr(0, word.find('='));
  const std::string near = NearestWord(name, known);
  return absl::StrCat(
      option ? absl::StrCat("there is no option ", name)
             : absl::StrCat("'", word, "' is not expected"),
      near.empty() ? "" : absl::StrCat("; did you mean ", near, "?"));
}

std::string Wording(const CLI::App& app, const CLI::ParseError& error) {
  const std::string what = error.what();
  const std::string name = what.substr(0, what.find(": "));
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> words = app.remaining(/*recurse=*/true);
    if (!words.empty()) return UnknownWord(Innermost(app), words.front());
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
    return absl::StrCat(name, absl::EndsWith(what, " missing")
                                  ? " needs a value"
                                  : " stands more than once");
  return what;
}

}  // namespace

std::string UsageError(absl::string_view program, absl::string_view what) {
  return absl::StrCat(program, ": ", what, " (`", program,
                      " --help` tells the options)");
}

int ReportParse(const CLI::App& app, const CLI::ParseError& error,
                std::ostream& out, std::ostream& err) {
  if (error.get_exit_code() == 0) {
    app.exit(error, out, err);
    return kExitOk;
  }
  err << UsageError(app.get_name(), Wording(app, error)) << "\n";
  return kExitUsage;
}

}  // namespace rondo
