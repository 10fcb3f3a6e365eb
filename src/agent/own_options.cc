// SPDX-License-Identifier: Apache-2.0
#include "agent/own_options.h"

#include <optional>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace rondo::agent {
namespace {

// CLI11 shows a default beside the name, if it is not empty.
std::string Help(const OwnOption& option, bool has_default) {
  const bool told = has_default || absl::StrContains(option.help, "empty = ");
  return absl::StrCat(option.help, told ? "" : "; default: none", " [$",
                      option.environment, "]");
}

}  // namespace

CLI::Option* AddOption(CLI::App& app, const config::Getenv& getenv,
                       const OwnOption& option, std::string& value) {
  if (auto set = getenv(option.environment)) value = *std::move(set);
  return app.add_option(option.flag, value, Help(option, !value.empty()))
      ->type_name("VALUE")
      ->capture_default_str();
}

CLI::Option* AddOption(CLI::App& app, const config::Getenv& getenv,
                       const OwnOption& option,
                       std::vector<std::string>& lists) {
  if (auto set = getenv(option.environment)) lists = {*std::move(set)};
  return app.add_option(option.flag, lists, Help(option, !lists.empty()))
      ->type_name("LIST")
      ->default_str(absl::StrJoin(lists, ","))
      ->expected(1)
      ->take_all();
}

std::vector<std::string> SplitLists(const std::vector<std::string>& lists) {
  std::vector<std::string> words;
  for (const std::string& list : lists)
    for (absl::string_view word : absl::StrSplit(list, ',')) {
      word = absl::StripAsciiWhitespace(word);
      if (!word.empty()) words.emplace_back(word);
    }
  return words;
}

std::vector<std::string> ReversedWords(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = argc - 1; i >= 1; --i) {
    std::string word = argv[i];
    if (word.size() > 3 && word.starts_with("--") && word.ends_with('=')) {
      words.emplace_back();
      word.pop_back();
    }
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace rondo::agent
