// SPDX-License-Identifier: Apache-2.0

#include "config/read_value.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace rondo::config {

std::string Have(const yaml::Node& node) {
  switch (node.kind) {
    case yaml::Kind::kNull:
      return "nothing";
    case yaml::Kind::kBool:
      return node.text == node.json ? absl::StrCat("the boolean ", node.json)
                                    : absl::StrCat("the boolean ", node.json,
                                                   " (", node.text, ")");
    case yaml::Kind::kInt:
    case yaml::Kind::kFloat:
      return absl::StrCat("the number ", node.text);
    case yaml::Kind::kString:
      return absl::StrCat("the string \"", node.text.substr(0, 60), "\"");
    case yaml::Kind::kSequence:
      return "a list";
    case yaml::Kind::kMap:
      return "a map";
  }
  return "";
}

Problem WrongType(absl::string_view what, absl::string_view wanted,
                  const yaml::Node& node) {
  std::string hint;
  const bool wants_string = wanted == "a string";
  if (wants_string && node.kind != yaml::Kind::kMap &&
      node.kind != yaml::Kind::kSequence && node.kind != yaml::Kind::kNull) {
    hint = "put it in quotes";
  } else if (!wants_string && node.kind == yaml::Kind::kString && node.quoted) {
    hint = "remove the quotes";
  }
  return MakeProblem(
      Code::kType, node.mark.line, node.mark.column,
      absl::StrCat("`", what, "` must be ", wanted, ", not ", Have(node)),
      std::move(hint));
}

bool ReadString(const yaml::Node& node, absl::string_view what,
                std::string& value, std::vector<Problem>& problems) {
  if (node.kind != yaml::Kind::kString) {
    problems.push_back(WrongType(what, "a string", node));
    return false;
  }
  value = node.text;
  return true;
}

bool ReadBool(const yaml::Node& node, absl::string_view what, bool& value,
              std::vector<Problem>& problems) {
  if (node.kind != yaml::Kind::kBool) {
    problems.push_back(WrongType(what, "true or false", node));
    return false;
  }
  value = node.boolean;
  return true;
}

bool ReadInt(const yaml::Node& node, absl::string_view what, int64_t& value,
             std::vector<Problem>& problems) {
  if (node.kind != yaml::Kind::kInt) {
    problems.push_back(WrongType(what, "an integer", node));
    return false;
  }
  value = node.integer;
  return true;
}

bool ReadMap(const yaml::Node& node, absl::string_view what,
             std::vector<Problem>& problems) {
  if (node.kind == yaml::Kind::kMap) return true;
  if (node.kind != yaml::Kind::kNull) {
    problems.push_back(WrongType(what, "a map", node));
  }
  return false;
}

void ForEachKey(
    const yaml::Node& map, const Section& section,
    std::vector<Problem>& problems,
    const std::function<void(absl::string_view, const yaml::Entry&)>& each) {
  CheckKeys(map, section, problems);
  std::vector<const yaml::Entry*> sorted;
  for (const yaml::Entry& entry : map.entries) sorted.push_back(&entry);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const yaml::Entry* a, const yaml::Entry* b) {
                     return a->key < b->key;
                   });
  for (const yaml::Entry* entry : sorted) {
    if (const char* key = MatchKey(section, entry->key)) each(key, *entry);
  }
}

}  // namespace rondo::config
