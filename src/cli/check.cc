// SPDX-License-Identifier: Apache-2.0

#include "cli/check.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <istream>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "config/choose.h"
#include "config/compile.h"
#include "config/document.h"
#include "config/yaml.h"

namespace rondo::cli {
namespace {

using config::Code;
using config::Document;
using config::Documents;
using config::InputKind;
using config::Problem;

// Also what is not there: reading it tells.
bool MayBeRegular(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode);
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Regular files by name. A mounted ConfigMap keeps its bookkeeping under "..".
absl::StatusOr<std::vector<std::string>> ListFiles(const std::string& path) {
  DIR* directory = opendir(path.c_str());
  if (directory == nullptr) return ErrnoStatus(absl::StrCat("open ", path));
  std::vector<std::string> names;
  while (const dirent* entry = readdir(directory)) {
    const std::string name = entry->d_name;
    if (name == "." || absl::StartsWith(name, "..")) continue;
    if (MayBeRegular(absl::StrCat(path, "/", name))) names.push_back(name);
  }
  closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

// Everything that all sources together say.
struct Input {
  struct Item {
    const Source* source;
    Document document;
  };
  std::vector<Item> items;
  std::optional<config::Selection> selection;
  const Source* selection_source = nullptr;
  std::vector<std::pair<const Source*, std::vector<Problem>>> problems;
};

Input ReadAll(const std::vector<Source>& sources) {
  Input input;
  for (const Source& source : sources) {
    Documents documents = config::ReadDocuments(source.text);
    if (documents.selection) {
      input.selection = documents.selection;
      input.selection_source = &source;
    }
    for (Document& document : documents.configs) {
      if (document.kind == InputKind::kConfig) {
        document.key = source.directory_key;
      }
      input.items.push_back({&source, std::move(document)});
    }
    if (!documents.problems.empty()) {
      input.problems.emplace_back(&source, std::move(documents.problems));
    }
  }
  return input;
}

std::string Kind(const Source& source, InputKind kind) {
  if (kind == InputKind::kConfig && !source.directory_key.empty()) {
    return "directory";
  }
  return std::string(config::KindName(kind));
}

// The selection speaks of this config.
bool Concerns(const config::Selection& selection, const Document& document) {
  return document.kind != InputKind::kConfig &&
         (document.name == selection.config_map ||
          selection.config_map.empty());
}

config::Getenv Environment(const std::optional<config::Selection>& selection,
                           const Document& document) {
  if (!selection || !Concerns(*selection, document)) return nullptr;
  return [&environment = selection->environment](
             absl::string_view name) -> std::optional<std::string> {
    const auto it = environment.find(std::string(name));
    if (it == environment.end()) return std::nullopt;
    return it->second;
  };
}

CheckedConfig CheckOne(const Input::Item& item, const Input& input) {
  CheckedConfig checked;
  checked.file = item.source->file;
  checked.kind = Kind(*item.source, item.document.kind);
  checked.name = item.document.name;
  checked.key = item.document.key;
  checked.nvidia = config::JudgeAsNvidia(item.document.text);
  config::CompileResult result = config::Compile(
      item.document.text, {}, Environment(input.selection, item.document));
  checked.plan = std::move(result.plan);
  checked.problems = std::move(result.problems);
  config::MoveToFile(item.document, checked.problems);
  return checked;
}

// A config that the node does not use is judged on a node that suits it.
void CheckDevices(const Document& document, const CheckOptions& options,
                  CheckedConfig& checked) {
  if (!checked.plan) return;
  checked.on_node = options.node && checked.chosen;
  checked.groups = checked.on_node ? options.node->groups
                                   : config::SmallestNode(*checked.plan);
  std::vector<Problem> problems =
      config::CheckOnNode(*checked.plan, checked.groups);
  config::MoveToFile(document, problems);
  checked.problems.insert(checked.problems.end(), problems.begin(),
                          problems.end());
}

// A ClusterPolicy, or Helm values that only name a ConfigMap: no config, but
// something to say.
CheckedConfig SelectionOnly(const Source& source,
                            const config::Selection& selection) {
  CheckedConfig checked;
  checked.file = source.file;
  checked.kind = std::string(config::KindName(selection.kind));
  checked.name = selection.config_map;
  checked.key = selection.default_key;
  checked.nvidia.ok = true;
  return checked;
}

CheckedConfig Unreadable(const Source& source) {
  CheckedConfig checked;
  checked.file = source.file;
  checked.kind = "unknown";
  return checked;
}

// Puts the problems of manifests on the first config of the same file, or on an
// entry of their own.
void AddManifestProblems(const Input& input, CheckReport& report) {
  for (const auto& [source, problems] : input.problems) {
    const std::string& file = source->file;
    const auto find = [&](bool policy) {
      return std::find_if(report.configs.begin(), report.configs.end(),
                          [&](const CheckedConfig& checked) {
                            return checked.file == file &&
                                   (!policy || checked.kind == "clusterpolicy");
                          });
    };
    auto it = find(/*policy=*/true);
    if (it == report.configs.end()) it = find(/*policy=*/false);
    if (it == report.configs.end()) {
      it = report.configs.insert(it, Unreadable(*source));
    }
    it->problems.insert(it->problems.begin(), problems.begin(), problems.end());
  }
}

config::ChoiceInput MakeChoice(const Input& input,
                               const CheckOptions& options) {
  config::ChoiceInput choice;
  std::set<std::string> keys;
  for (const Input::Item& item : input.items) {
    if (input.selection && item.document.kind != InputKind::kConfig &&
        !Concerns(*input.selection, item.document)) {
      continue;
    }
    keys.insert(item.document.key);
  }
  keys.erase("");
  choice.keys.assign(keys.begin(), keys.end());
  choice.fallbacks = {"named", "single"};
  if (input.selection) {
    choice.default_key = input.selection->default_key;
    if (!input.selection->fallbacks.empty()) {
      choice.fallbacks = input.selection->fallbacks;
    }
  }
  if (!options.default_key.empty()) choice.default_key = options.default_key;
  if (options.node) {
    choice.label = options.node->config_label;
    choice.gpu_models = options.node->models;
  }
  return choice;
}

// An entry for the config that was asked for and does not exist.
void AddChoiceProblem(const config::ChoiceInput& choice,
                      const std::string& message, CheckReport& report) {
  CheckedConfig missing;
  missing.file = report.configs.front().file;
  missing.kind = report.configs.front().kind;
  missing.name = report.configs.front().name;
  missing.key = choice.label.empty() ? choice.default_key : choice.label;
  missing.nvidia.error = message;
  missing.problems.push_back(config::MakeProblem(
      Code::kChoice, 0, 0, message,
      "set the node's label, the default or the name of a config accordingly"));
  report.configs.push_back(std::move(missing));
}

// Which config the node uses. A single bare config needs no choice.
void Choose(const Input& input, const CheckOptions& options,
            CheckReport& report) {
  config::ChoiceInput choice = MakeChoice(input, options);
  if (report.configs.empty()) return;
  if (!options.node) {
    // Without a node only the default can be wrong.
    if (choice.default_key.empty() || choice.keys.empty()) return;
    auto chosen = config::ChooseConfig(choice);
    if (!chosen.ok()) {
      AddChoiceProblem(choice, std::string(chosen.status().message()), report);
    }
    return;
  }
  if (choice.keys.empty()) {
    if (report.configs.size() == 1 && report.configs[0].kind == "config") {
      report.configs[0].chosen = true;
      report.why = "it is the only config given";
    } else {
      report.why = "bare configs have no names to choose by";
    }
    return;
  }
  auto chosen = config::ChooseConfig(choice);
  if (!chosen.ok()) {
    report.why = std::string(chosen.status().message());
    AddChoiceProblem(choice, report.why, report);
    return;
  }
  report.why = chosen->why;
  for (CheckedConfig& checked : report.configs) {
    const bool config = checked.plan || config::HasErrors(checked.problems);
    checked.chosen =
        config && !chosen->key.empty() && checked.key == chosen->key;
  }
}

void Compare(const CheckOptions& options, CheckReport& report) {
  CheckOptions plain;
  const CheckReport old = Check(options.against, plain);
  for (CheckedConfig& checked : report.configs) {
    if (!checked.plan) continue;
    const CheckedConfig* before = nullptr;
    for (const CheckedConfig& candidate : old.configs) {
      const bool only = old.configs.size() == 1 && report.configs.size() == 1;
      if (candidate.key == checked.key || only) before = &candidate;
    }
    if (before == nullptr) {
      checked.changes.push_back(
          {absl::StrCat("config ", checked.key, " is new"),
           "pods are touched only on nodes that switch to it"});
    } else if (!before->plan) {
      checked.changes.push_back(
          {"the config in force cannot be read", before->error});
    } else {
      checked.changes = config::CompareForPods(*before->plan, *checked.plan);
    }
  }
}

void Finish(const CheckOptions& options, CheckedConfig& checked) {
  config::SortByPlace(checked.problems);
  if (options.strict) config::MakeStrict(checked.problems);
  checked.ok = !config::HasErrors(checked.problems);
  if (checked.ok) {
    if (checked.plan) {
      checked.advertise = config::Advertise(*checked.plan, checked.groups);
    }
    return;
  }
  checked.plan.reset();
  for (const Problem& problem : checked.problems) {
    if (problem.severity != config::Severity::kError) continue;
    checked.error = config::Describe(problem);
    break;
  }
}

}  // namespace

absl::StatusOr<std::vector<Source>> LoadSources(
    const std::vector<std::string>& paths, std::istream& in) {
  std::vector<Source> sources;
  for (const std::string& path : paths) {
    if (path == "-") {
      sources.push_back(
          {path, "", std::string(std::istreambuf_iterator<char>(in), {})});
    } else if (IsDirectory(path)) {
      RONDO_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             ListFiles(path));
      if (names.empty()) {
        return absl::NotFoundError(absl::StrCat(path, ": no files in it"));
      }
      for (const std::string& name : names) {
        const std::string file = absl::StrCat(path, "/", name);
        RONDO_ASSIGN_OR_RETURN(std::string text, ReadFile(file));
        sources.push_back({file, name, std::move(text)});
      }
    } else {
      RONDO_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
      sources.push_back({path, "", std::move(text)});
    }
  }
  return sources;
}

bool CheckReport::ok() const {
  return std::all_of(configs.begin(), configs.end(),
                     [](const CheckedConfig& checked) { return checked.ok; });
}

CheckReport Check(const std::vector<Source>& sources,
                  const CheckOptions& options) {
  const Input input = ReadAll(sources);
  CheckReport report;
  bool values_hold_configs = false;
  for (const Input::Item& item : input.items) {
    report.configs.push_back(CheckOne(item, input));
    values_hold_configs =
        values_hold_configs || item.document.kind == InputKind::kHelmValues;
  }
  if (input.selection && (input.selection->kind == InputKind::kClusterPolicy ||
                          !values_hold_configs)) {
    report.configs.push_back(
        SelectionOnly(*input.selection_source, *input.selection));
  }
  AddManifestProblems(input, report);
  Choose(input, options, report);
  for (size_t i = 0; i < input.items.size(); ++i) {
    CheckDevices(input.items[i].document, options, report.configs[i]);
  }
  if (options.compare) Compare(options, report);
  for (CheckedConfig& checked : report.configs) Finish(options, checked);
  return report;
}

}  // namespace rondo::cli
