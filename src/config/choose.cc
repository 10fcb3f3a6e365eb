// SPDX-License-Identifier: Apache-2.0

#include "config/choose.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/suggest.h"

namespace rondo::config {
namespace {

// The part of a product text by which two spellings are compared.
std::string Comparable(absl::string_view text) {
  constexpr absl::string_view kShared = "-shared";
  constexpr absl::string_view kVendor = "nvidia-";
  const std::string product = absl::AsciiStrToLower(ProductName(text));
  absl::string_view name = product;
  if (absl::EndsWith(name, kShared)) name.remove_suffix(kShared.size());
  // GPU Feature Discovery's product of a MIG device.
  name = name.substr(0, std::min(name.find("-mig-"), name.size()));
  if (absl::StartsWith(name, kVendor)) name.remove_prefix(kVendor.size());
  return std::string(name);
}

std::vector<std::string> Candidates(const std::vector<std::string>& keys) {
  std::vector<std::string> candidates;
  for (const std::string& key : keys) {
    if (!absl::StartsWith(key, "..")) candidates.push_back(key);
  }
  std::sort(candidates.begin(), candidates.end());
  return candidates;
}

bool Has(const std::vector<std::string>& keys, absl::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

absl::Status Missing(absl::string_view key, absl::string_view named_by,
                     const std::vector<std::string>& keys) {
  const std::string near = NearestWord(key, keys);
  return absl::NotFoundError(absl::StrCat(
      "specified config ", key, " does not exist (named by ", named_by, "; ",
      near.empty() ? "" : absl::StrCat("did you mean ", near, "? "),
      keys.empty() ? std::string("there are no configs")
                   : absl::StrCat("configs: ", absl::StrJoin(keys, ", ")),
      ")"));
}

// The key that names the node's GPU model; NotFound if none does,
// InvalidArgument if several models name different keys.
absl::StatusOr<Choice> ByModel(const std::vector<std::string>& keys,
                               const std::vector<std::string>& models) {
  std::set<std::string> found;
  std::string model_found;
  for (const std::string& model : models) {
    for (const std::string& key : keys) {
      if (!KeyNamesModel(key, model)) continue;
      found.insert(key);
      model_found = model;
    }
  }
  if (found.empty()) return absl::NotFoundError("no key names the GPU model");
  if (found.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "several configs name GPU models of this node: ",
        absl::StrJoin(found, ", "), "; set the label ", kConfigLabel));
  }
  return Choice{
      ChoiceRule::kModel, *found.begin(),
      absl::StrCat("no label and no default decide; it is named after "
                   "the GPU model ",
                   absl::StripSuffix(ProductName(model_found), "-SHARED"))};
}

absl::StatusOr<Choice> ByFallback(absl::string_view strategy,
                                  const std::vector<std::string>& keys) {
  if (strategy == "named") {
    if (Has(keys, "default")) {
      return Choice{ChoiceRule::kNamed, "default",
                    "no label is set; fallback `named` takes the config called "
                    "default"};
    }
    return absl::NotFoundError("no config is called default");
  }
  if (strategy == "single") {
    if (keys.size() == 1) {
      return Choice{ChoiceRule::kSingle, keys[0],
                    "no label is set; fallback `single` takes the only config"};
    }
    return absl::NotFoundError("there is more than one config");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown fallback strategy ", strategy,
                   " (values: named, single, empty)"));
}

}  // namespace

std::string ProductName(absl::string_view model) {
  std::string kept;
  for (char c : model) {
    if (absl::ascii_isalnum(c) || absl::StrContains("-_. ", c)) {
      kept.push_back(c);
    }
  }
  return absl::StrJoin(absl::StrSplit(kept, ' ', absl::SkipEmpty()), "-");
}

bool KeyNamesModel(absl::string_view key, absl::string_view model) {
  const std::string name = Comparable(key);
  return !name.empty() && name == Comparable(model);
}

absl::StatusOr<Choice> ChooseConfig(const ChoiceInput& input) {
  if (!input.explicit_file.empty()) {
    return Choice{ChoiceRule::kExplicitFile, input.explicit_file,
                  "the config file is named by --config-file or CONFIG_FILE"};
  }
  const std::vector<std::string> keys = Candidates(input.keys);
  if (!input.label.empty()) {
    const std::string by = absl::StrCat("the node's label ", input.label_name);
    if (!Has(keys, input.label)) return Missing(input.label, by, keys);
    return Choice{ChoiceRule::kLabel, input.label,
                  absl::StrCat(by, " names it")};
  }
  if (!input.default_key.empty()) {
    if (!Has(keys, input.default_key)) {
      return Missing(input.default_key, "the default config", keys);
    }
    return Choice{ChoiceRule::kDefault, input.default_key,
                  "no label is set; it is the default config"};
  }
  bool empty = false;
  for (const std::string& strategy : input.fallbacks) {
    if (strategy == "empty") {
      empty = true;
      break;  // always succeeds: what stands behind it is never reached
    }
    absl::StatusOr<Choice> choice = ByFallback(strategy, keys);
    if (choice.ok() || absl::IsInvalidArgument(choice.status())) return choice;
  }
  absl::StatusOr<Choice> choice = ByModel(keys, input.gpu_models);
  if (choice.ok() || absl::IsInvalidArgument(choice.status())) return choice;
  if (empty) {
    return Choice{ChoiceRule::kEmpty, "",
                  "no label is set and no config names the GPU model; fallback "
                  "`empty` means no config: nothing is shared"};
  }
  return absl::NotFoundError(absl::StrCat(
      "no config was set, no default was provided, and all fallbacks failed",
      keys.empty()
          ? std::string(" (there are no configs)")
          : absl::StrCat(" (configs: ", absl::StrJoin(keys, ", "), ")")));
}

}  // namespace rondo::config
