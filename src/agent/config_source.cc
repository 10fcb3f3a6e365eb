// SPDX-License-Identifier: Apache-2.0
#include "agent/config_source.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "config/choose.h"

namespace rondo::agent {

namespace fs = std::filesystem;

absl::StatusOr<std::vector<std::string>> ConfigKeys(
    const std::string& directory) {
  std::error_code error;
  std::vector<std::string> keys;
  for (fs::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename();
    std::error_code ignored;
    if (!name.starts_with("..") && !fs::is_directory(it->path(), ignored))
      keys.push_back(name);
  }
  if (error)
    return absl::NotFoundError(
        absl::StrCat("config folder ", directory, ": ", error.message()));
  std::sort(keys.begin(), keys.end());
  return keys;
}

namespace {

// A FIFO would block the agent for ever, a device need not end. /dev/null is
// how NVIDIA's config-manager says "no config".
absl::Status CheckReadable(const std::string& path) {
  struct stat file;
  // What is not there, or a folder, is told by reading it.
  if (stat(path.c_str(), &file) != 0 || S_ISREG(file.st_mode) ||
      S_ISDIR(file.st_mode) ||
      (S_ISCHR(file.st_mode) && file.st_rdev == makedev(1, 3)))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": a FIFO, socket or device; a config is a regular file"));
}

}  // namespace

absl::StatusOr<ConfigText> ReadConfig(const Options& options,
                                      const NodeFacts& facts) {
  config::ChoiceInput input;
  input.explicit_file = options.config_file;
  if (options.config_file.empty()) {
    if (options.config_dir.empty())
      return ConfigText{.text = "",
                        .origin = "",
                        .why = "no config was named: defaults, no sharing"};
    RONDO_ASSIGN_OR_RETURN(input.keys, ConfigKeys(options.config_dir));
    input.label = facts.label;
    input.label_name = options.node_label;
    input.default_key = options.default_config;
    input.fallbacks = options.fallback_strategies;
    input.gpu_models = facts.gpu_models;
  }
  RONDO_ASSIGN_OR_RETURN(const config::Choice choice,
                         config::ChooseConfig(input));
  ConfigText chosen{.text = "", .origin = "", .why = choice.why};
  if (choice.rule == config::ChoiceRule::kEmpty) return chosen;
  chosen.origin = choice.rule == config::ChoiceRule::kExplicitFile
                      ? choice.key
                      : PathUnder(options.config_dir, choice.key);
  RONDO_RETURN_IF_ERROR(CheckReadable(chosen.origin));
  RONDO_ASSIGN_OR_RETURN(chosen.text, ReadFile(chosen.origin));
  return chosen;
}

std::vector<std::string> FoldersToWatch(const Options& options) {
  if (options.config_file.empty())
    return options.config_dir.empty()
               ? std::vector<std::string>{}
               : std::vector<std::string>{options.config_dir};
  const fs::path file = fs::absolute(options.config_file);
  std::vector<std::string> folders = {file.parent_path()};
  std::error_code error;
  if (const fs::path target = fs::read_symlink(file, error); !error) {
    const fs::path folder =
        (file.parent_path() / target).lexically_normal().parent_path();
    if (folder != file.parent_path()) folders.push_back(folder);
  }
  return folders;
}

}  // namespace rondo::agent
