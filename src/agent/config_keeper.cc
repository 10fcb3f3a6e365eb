// SPDX-License-Identifier: Apache-2.0
#include "agent/config_keeper.h"

#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"

namespace rondo::agent {
namespace {

std::string MemoryFile(const std::string& state_dir) {
  return state_dir + "/last-good.yaml";
}

// Every problem of a config, one a line; warnings do not stop it.
void LogProblems(const std::string& origin,
                 const std::vector<config::Problem>& problems) {
  for (const config::Problem& problem : problems) {
    const std::string text = absl::StrCat(origin.empty() ? "config" : origin,
                                          ": ", config::Describe(problem));
    switch (problem.severity) {
      case config::Severity::kError:
        LogError(text);
        break;
      case config::Severity::kWarning:
        LogWarning(text);
        break;
      case config::Severity::kInfo:
        LogInfo(text);
        break;
    }
  }
}

}  // namespace

ConfigKeeper::ConfigKeeper(config::Overrides overrides, config::Getenv getenv,
                           std::string state_dir, Apply apply)
    : overrides_(std::move(overrides)),
      getenv_(std::move(getenv)),
      state_dir_(std::move(state_dir)),
      apply_(std::move(apply)) {}

absl::Status ConfigKeeper::Offer(const absl::StatusOr<ConfigText>& offered,
                                 bool always) {
  if (!offered.ok()) {
    Refuse("", offered.status());
    return offered.status();
  }
  const bool same = plan_ && offered->text == text_in_force_;
  if (same && !always) {
    // Perhaps another key with the same text, or a bad edit taken back.
    view_.origin = offered->origin;
    view_.why = offered->why;
    view_.refused.reset();
    return absl::OkStatus();
  }
  absl::Status status = Take(*offered);
  if (!status.ok()) {
    Refuse(offered->origin, status);
    return status;
  }
  if (!same) Remember(offered->text);
  return status;
}

absl::Status ConfigKeeper::OfferRemembered() {
  if (state_dir_.empty()) return absl::NotFoundError("nothing is remembered");
  const std::string path = MemoryFile(state_dir_);
  RONDO_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  // The refusal that led here is what the user must still see.
  const auto refused = view_.refused;
  const absl::Status status = Take(
      {.text = std::move(text),
       .origin = path,
       .why = "the config on disk is refused; this one was in force before"});
  view_.refused = refused;
  return status;
}

absl::Status ConfigKeeper::Take(const ConfigText& config) {
  config::CompileResult result =
      config::Compile(config.text, overrides_, getenv_);
  LogProblems(config.origin, result.problems);
  if (!result.ok()) return config::ToStatus(result.problems);
  RONDO_RETURN_IF_ERROR(apply_(*result.plan, config.origin));
  plan_ = std::move(result.plan);
  text_in_force_ = config.text;
  ++view_.generation;
  ++view_.accepted;
  view_.hash = plan_->hash;
  view_.origin = config.origin;
  view_.why = config.why;
  view_.in_force_json = config::RunningWithConfigJson(*plan_);
  view_.warnings.clear();
  for (const config::Problem& problem : result.problems)
    if (problem.severity == config::Severity::kWarning)
      view_.warnings.push_back(config::Describe(problem));
  view_.refused.reset();
  LogInfo("config ", view_.hash, " from ",
          config.origin.empty() ? "built-in defaults" : config.origin, ": ",
          config.why);
  LogInfo("Running with config:\n", view_.in_force_json);
  return absl::OkStatus();
}

void ConfigKeeper::Refuse(const std::string& origin, const absl::Status& why) {
  ++view_.refusals;
  view_.refused = metrics::RefusedConfig{.origin = origin,
                                         .error = std::string(why.message()),
                                         .unix_seconds = time(nullptr)};
  LogError("config refused: ", origin, origin.empty() ? "" : ": ",
           why.message(), plan_ ? "; the last good one stays in force" : "");
}

void ConfigKeeper::Remember(const std::string& text) {
  if (state_dir_.empty()) return;
  absl::Status status = MakeDirectories(state_dir_);
  if (status.ok()) status = WriteFileAtomically(MemoryFile(state_dir_), text);
  if (!status.ok())
    LogWarning("cannot remember the config for the next start: ",
               status.message());
}

}  // namespace rondo::agent
