// SPDX-License-Identifier: Apache-2.0

#include "config/suggest.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/suggest.h"
#include "config/flag_table.h"

namespace rondo::config {
namespace {

// The keys under `flags:` ("") or `flags.plugin:` ("plugin."), from the one
// table of flags.
std::vector<const char*> FlagKeys(absl::string_view prefix) {
  std::vector<const char*> keys;
  for (const FlagInfo& flag : kFlags) {
    const absl::string_view key = flag.key;
    if (!flag.in_file || !absl::StartsWith(key, prefix)) continue;
    if (absl::StrContains(key.substr(prefix.size()), '.')) continue;
    keys.push_back(flag.key + prefix.size());
  }
  return keys;
}

std::vector<Section> MakeSections() {
  std::vector<const char*> flags = FlagKeys("");
  flags.insert(flags.end(), {"plugin", "gfd"});
  const std::vector<const char*> replicated = {
      "renameByDefault", "failRequestsGreaterThanOne", "resources"};
  const std::vector<const char*> entry = {"name", "replicas", "rename",
                                          "devices"};
  return {
      {"",
       "the top level",
       true,
       {"version", "flags", "resources", "sharing", "imex", "rondo"}},
      {"sharing", "`sharing`", true, {"timeSlicing", "mps"}},
      {"sharing.timeSlicing", "`sharing.timeSlicing`", false, replicated},
      {"sharing.timeSlicing.resources[]",
       "an entry of `sharing.timeSlicing.resources`", false, entry},
      {"sharing.mps", "`sharing.mps`", false, replicated},
      {"sharing.mps.resources[]", "an entry of `sharing.mps.resources`", false,
       entry},
      {"flags", "`flags`", true, flags},
      {"flags.plugin", "`flags.plugin`", true, FlagKeys("plugin.")},
      {"flags.gfd",
       "`flags.gfd`",
       true,
       {"oneshot", "noTimestamp", "sleepInterval", "outputFile",
        "machineTypeFile"}},
      {"resources", "`resources`", true, {"gpus", "mig"}},
      {"resources[]", "an entry of `resources`", false, {"pattern", "name"}},
      {"imex", "`imex`", true, {"channelIDs", "required"}},
      {"rondo",
       "`rondo`",
       false,
       {"memory", "slotMemory", "managed", "period", "turn", "injection",
        "onAgentLoss"},
       {"standardTakesTurns"}},
  };
}

const std::vector<Section>& Sections() {
  static const std::vector<Section> kSections = MakeSections();
  return kSections;
}

// Where else a key of this name lives: below the section that the user wrote it
// in if possible. MPS repeats time-slicing and is not offered.
const Section* Home(const Section& from, absl::string_view key,
                    const char** spelled) {
  const Section* home = nullptr;
  for (const Section& section : Sections()) {
    if (&section == &from || absl::StartsWith(section.path, "sharing.mps")) {
      continue;
    }
    for (const char* candidate : section.keys) {
      if (!absl::EqualsIgnoreCase(candidate, key)) continue;
      const bool below =
          *from.path && absl::StartsWith(section.path, from.path);
      if (home == nullptr || below) {
        home = &section;
        *spelled = candidate;
      }
      if (below) return home;
    }
  }
  return home;
}

Problem UnknownKey(const Section& section, const yaml::Entry& entry) {
  const bool strict = absl::string_view(section.path) == "rondo";
  const std::string what =
      absl::StrCat("unknown key `", entry.key, "` in ", section.name,
                   strict ? "" : ": ignored");
  auto problem = [&](Code code, std::string hint) {
    return MakeProblem(strict ? Code::kRondoKey : code, entry.mark.line,
                       entry.mark.column, what, std::move(hint));
  };
  if (section.path[0] == '\0' && entry.key == "apiVersion") {
    return problem(Code::kUnknownKey,
                   "a Kubernetes manifest? The config is the text under a key "
                   "of its `data`");
  }
  if (strict &&
      (entry.key == "weight" || entry.key == "class" || entry.key == "limit")) {
    return problem(Code::kRondoKey,
                   absl::StrCat("it is set for each pod, by the annotation "
                                "`rondo/",
                                entry.key, "`"));
  }
  for (const char* key : section.keys) {
    if (absl::EqualsIgnoreCase(key, entry.key)) {
      return problem(Code::kUnknownKey,
                     absl::StrCat("did you mean `", key,
                                  "`? Upper and lower case differ here"));
    }
  }
  const char* spelled = nullptr;
  if (const Section* home = Home(section, entry.key, &spelled)) {
    return problem(Code::kMisplacedKey,
                   absl::StrCat("`", spelled, "` belongs in ", home->name));
  }
  std::vector<std::string> here(section.keys.begin(), section.keys.end());
  if (std::string near = NearestWord(entry.key, here); !near.empty()) {
    return problem(Code::kUnknownKey,
                   absl::StrCat("did you mean `", near, "`?"));
  }
  for (const Section& other : Sections()) {
    std::vector<std::string> there(other.keys.begin(), other.keys.end());
    if (absl::StartsWith(other.path, "sharing.mps")) continue;
    if (std::string near = NearestWord(entry.key, there); !near.empty()) {
      return problem(Code::kMisplacedKey,
                     absl::StrCat("did you mean `", near, "`? It belongs in ",
                                  other.name));
    }
  }
  std::string known;
  for (const char* key : section.keys) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", key);
  }
  return problem(Code::kUnknownKey, absl::StrCat("known keys: ", known));
}

}  // namespace

const Section* FindSection(absl::string_view path) {
  for (const Section& section : Sections()) {
    if (path == section.path) return &section;
  }
  std::abort();
}

const char* MatchKey(const Section& section, absl::string_view key) {
  for (const char* candidate : section.keys) {
    if (key == candidate) return candidate;
  }
  for (const char* candidate : section.gone) {
    if (key == candidate) return candidate;
  }
  if (!section.any_case) return nullptr;
  for (const char* candidate : section.keys) {
    // Ours, not NVIDIA's: strict from the first letter.
    if (absl::string_view(candidate) == "rondo") continue;
    if (absl::EqualsIgnoreCase(candidate, key)) return candidate;
  }
  return nullptr;
}

void CheckKeys(const yaml::Node& map, const Section& section,
               std::vector<Problem>& problems) {
  constexpr size_t kMost = 100;  // a file of junk needs no more
  for (const yaml::Entry& entry : map.entries) {
    if (problems.size() >= kMost) return;
    if (MatchKey(section, entry.key) == nullptr) {
      problems.push_back(UnknownKey(section, entry));
    }
  }
  for (const yaml::Entry& entry : map.overruled) {
    if (problems.size() >= kMost) return;
    problems.push_back(
        MakeProblem(Code::kDuplicateKey, entry.mark.line, entry.mark.column,
                    absl::StrCat("key `", entry.key,
                                 "` stands more than once in ", section.name,
                                 ": this one is ignored, the last one counts"),
                    "remove all but one"));
  }
}

}  // namespace rondo::config
