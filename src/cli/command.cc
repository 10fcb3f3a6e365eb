// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <algorithm>
#include <cstring>
#include <iomanip>
#include <ostream>
#include <string>

#include "base/status.h"
#include "base/suggest.h"
#include "base/usage.h"

namespace rondo::cli {
namespace {

void PrintTable(const CommandTable& table, std::ostream& out) {
  out << "rondo shares NVIDIA GPUs between pods by time-slicing.\n\n"
         "usage: rondo COMMAND [OPTION...]\n\n";
  size_t width = 0;
  for (const Command& c : table.commands)
    if (c.help != nullptr) width = std::max(width, strlen(c.name));
  for (const Command& c : table.commands)
    if (c.help != nullptr)
      out << "  " << std::left << std::setw(static_cast<int>(width)) << c.name
          << "  " << c.help << " (needs " << c.needs << ")\n";
  out << "\n`rondo COMMAND --help` tells the options of one.\n"
      << kExitHelp << "\n";
}

const Command* Find(const CommandTable& table, const std::string& name) {
  for (const Command& c : table.commands)
    if (name == c.name) return &c;
  return nullptr;
}

// A report that did not reach the disk must not look like one that did.
int Written(int code, std::ostream& out, std::ostream& err) {
  if (out.flush()) return code;
  err << "rondo: cannot write the output\n";
  return code == kExitOk ? kExitFailure : code;
}

}  // namespace

int Dispatch(const CommandTable& table, int argc, char** argv,
             std::ostream& out, std::ostream& err) {
  const char* slash = strrchr(argv[0], '/');
  const std::string executable = slash != nullptr ? slash + 1 : argv[0];
  for (const Alias& alias : table.aliases)
    if (executable == alias.executable) return alias.run(argc, argv);

  const std::string word = argc > 1 ? argv[1] : "help";
  if (word == "help" && argc > 2) {
    std::string option = "--help";
    char* help[] = {argv[0], argv[2], option.data(), nullptr};
    return Dispatch(table, 3, help, out, err);
  }
  if (word == "help" || word == "--help" || word == "-h") {
    PrintTable(table, out);
    return Written(kExitOk, out, err);
  }
  const Command* command = Find(table, word == "--version" ? "version" : word);
  if (command != nullptr)
    return Written(command->run(argc - 1, argv + 1), out, err);

  std::vector<std::string> names;
  for (const Command& c : table.commands)
    if (c.help != nullptr) names.emplace_back(c.name);
  err << "rondo: no command '" << word << "'";
  if (const std::string near = NearestWord(word, names); !near.empty())
    err << "; did you mean '" << near << "'?";
  err << " (`rondo help` lists them)\n";
  return kExitUsage;
}

}  // namespace rondo::cli
