// SPDX-License-Identifier: Apache-2.0
//
// `flags:`, with `flags.plugin` and `flags.gfd`.

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "config/duration.h"
#include "config/flag_table.h"
#include "config/read_value.h"
#include "config/spec.h"

namespace rondo::config {
namespace {

using yaml::Kind;
using yaml::Node;

// One word or a list of words; a null item is the empty word.
void ReadWords(const Node& node, absl::string_view what, FlagValue& value,
               std::vector<Problem>& problems) {
  if (node.kind == Kind::kString) {
    value.values = {node.text};
    return;
  }
  bool ok = node.kind == Kind::kSequence;
  for (const yaml::NodePtr& item : node.items) {
    ok = ok && (item->kind == Kind::kString || item->kind == Kind::kNull);
    value.values.push_back(item->kind == Kind::kString ? item->text : "");
  }
  if (!ok) {
    problems.push_back(WrongType(what, "a string or a list of strings", node));
  }
}

void ReadFlag(const FlagInfo& flag, const Node& node, Spec& spec,
              std::vector<Problem>& problems) {
  if (node.kind == Kind::kNull) return;  // as if it did not stand there
  FlagValue value;
  value.mark = node.mark;
  const size_t before = problems.size();
  if (flag.type == FlagType::kBool) {
    bool boolean = false;
    ReadBool(node, flag.key, boolean, problems);
    value.values = {boolean ? "true" : "false"};
  } else if (flag.type == FlagType::kStringList) {
    ReadWords(node, flag.key, value, problems);
  } else {
    value.values.resize(1);
    ReadString(node, flag.key, value.values[0], problems);
  }
  if (problems.size() == before) spec.flags[flag.key] = std::move(value);
}

// Flags of GPU Feature Discovery: only their types matter here.
void CheckGfd(absl::string_view key, const Node& node,
              std::vector<Problem>& problems) {
  if (node.kind == Kind::kNull) return;
  std::string text;
  bool boolean = false;
  if (key == "oneshot" || key == "noTimestamp") {
    ReadBool(node, key, boolean, problems);
  } else if (key != "sleepInterval") {
    ReadString(node, key, text, problems);
  } else if (node.kind == Kind::kString) {
    auto duration = ParseGoDuration(node.text);
    if (node.text != "infinite" && !duration.ok()) {
      problems.push_back(MakeProblem(Code::kFlagValue, node.mark.line,
                                     node.mark.column,
                                     std::string(duration.status().message()),
                                     "write a duration such as 60s"));
    }
  } else if (node.kind != Kind::kInt && node.kind != Kind::kFloat) {
    problems.push_back(WrongType(key, "a duration such as 60s", node));
  }
}

}  // namespace

void DecodeFlags(const Node& flags, Spec& spec,
                 std::vector<Problem>& problems) {
  ForEachKey(
      flags, *FindSection("flags"), problems,
      [&](absl::string_view key, const yaml::Entry& entry) {
        const Node& node = *entry.value;
        if (key == "plugin") {
          if (!ReadMap(node, "flags.plugin", problems)) return;
          ForEachKey(node, *FindSection("flags.plugin"), problems,
                     [&](absl::string_view inner, const yaml::Entry& value) {
                       ReadFlag(*FindFlag(absl::StrCat("plugin.", inner)),
                                *value.value, spec, problems);
                     });
        } else if (key == "gfd") {
          if (!ReadMap(node, "flags.gfd", problems)) return;
          ForEachKey(node, *FindSection("flags.gfd"), problems,
                     [&](absl::string_view inner, const yaml::Entry& value) {
                       CheckGfd(inner, *value.value, problems);
                     });
        } else {
          ReadFlag(*FindFlag(key), node, spec, problems);
        }
      });
}

}  // namespace rondo::config
