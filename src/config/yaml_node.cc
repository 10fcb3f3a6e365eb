// SPDX-License-Identifier: Apache-2.0

#include <map>

#include "absl/strings/str_cat.h"
#include "config/yaml.h"
#include "config/yaml_scalar.h"

namespace rondo::config::yaml {

const Entry* Node::Find(absl::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

std::string ToJson(const Node& node) {
  std::string out;
  switch (node.kind) {
    case Kind::kString:
      return GoQuote(node.text);
    case Kind::kSequence:
      for (const NodePtr& item : node.items) {
        absl::StrAppend(&out, out.empty() ? "[" : ",", ToJson(*item));
      }
      return out.empty() ? "[]" : out + "]";
    case Kind::kMap: {
      std::map<std::string, const Node*> sorted;
      for (const Entry& entry : node.entries) {
        sorted[entry.key] = entry.value.get();
      }
      for (const auto& [key, value] : sorted) {
        absl::StrAppend(&out, out.empty() ? "{" : ",", GoQuote(key), ":",
                        ToJson(*value));
      }
      return out.empty() ? "{}" : out + "}";
    }
    default:
      return node.json.empty() ? "null" : node.json;
  }
}

absl::string_view JsonKind(const Node& node) {
  switch (node.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
    case Kind::kFloat:
      return "number";
    case Kind::kString:
      return "string";
    case Kind::kSequence:
      return "array";
    case Kind::kMap:
      return "object";
  }
  return "null";
}

}  // namespace rondo::config::yaml
