// SPDX-License-Identifier: Apache-2.0

#include "config/nvidia_decode.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "config/duration.h"
#include "config/spec.h"

namespace rondo::config::nvidia {
namespace {

using yaml::Kind;
using yaml::Node;

Result Plain(std::string text) { return Failure{std::move(text), "", ""}; }

Result ResourceName(const Node& node, std::string& name) {
  std::string raw;
  if (auto failure = GoString(node, raw)) return failure;
  std::string error;
  name = FullResourceName(raw, error);
  if (!error.empty()) return Plain(error);
  return std::nullopt;
}

Result Devices(const Node& node, bool& all) {
  all = false;
  if (node.kind == Kind::kString || node.kind == Kind::kNull) {
    const std::string text = node.kind == Kind::kString ? node.text : "";
    all = text == "all";
    if (all) return std::nullopt;
    return Plain(absl::StrCat("devices set as '", text,
                              "' but the only valid string input is 'all'"));
  }
  if (node.kind == Kind::kInt) {
    if (node.integer > 0) return std::nullopt;
    return Plain(absl::StrCat("devices set as '", node.json,
                              "' but a count of devices must be > 0"));
  }
  if (node.kind != Kind::kSequence) {
    return Plain(absl::StrCat("unrecognized type for devices spec: ",
                              yaml::ToJson(node)));
  }
  for (const yaml::NodePtr& item : node.items) {
    const bool text = item->kind == Kind::kString;
    const bool number = item->kind == Kind::kInt || item->kind == Kind::kFloat;
    if (item->kind == Kind::kNull) continue;
    if ((text || number) && ParseDeviceRef(text ? item->text : item->json)) {
      continue;
    }
    return Plain(absl::StrCat("unsupported type for device in devices list: ",
                              text ? item->text : "", ", string"));
  }
  return std::nullopt;
}

// A map, or null for an empty one; the custom decoders start like this.
Result RawMap(const Node& node) {
  if (node.kind == Kind::kMap || node.kind == Kind::kNull) return std::nullopt;
  return TypeError(node, "map[string]json.RawMessage");
}

Result ResourceEntry(const Node& node, Entry& entry) {
  if (auto failure = RawMap(node)) return failure;
  const yaml::Entry* name = node.Find("name");
  if (name == nullptr) return Plain("no resource name specified");
  if (auto failure = ResourceName(*name->value, entry.name)) return failure;
  if (const yaml::Entry* devices = node.Find("devices")) {
    if (auto failure = Devices(*devices->value, entry.all_devices)) {
      return failure;
    }
  }
  const yaml::Entry* replicas = node.Find("replicas");
  if (replicas == nullptr) return Plain("no replicas specified");
  if (auto failure = GoInt(*replicas->value, entry.replicas)) return failure;
  if (entry.replicas < 2) return Plain("number of replicas must be >= 2");
  if (const yaml::Entry* rename = node.Find("rename")) {
    return ResourceName(*rename->value, entry.rename);
  }
  return std::nullopt;
}

}  // namespace

Result TypeError(const Node& node, std::string type) {
  return Failure{"", std::string(yaml::JsonKind(node)), std::move(type)};
}

Result GoString(const Node& node, std::string& value, const std::string& type) {
  if (node.kind == Kind::kNull) return std::nullopt;
  if (node.kind != Kind::kString) return TypeError(node, type);
  value = node.text;
  return std::nullopt;
}

Result GoBool(const Node& node, bool& value) {
  if (node.kind == Kind::kNull) return std::nullopt;
  if (node.kind != Kind::kBool) return TypeError(node, "bool");
  value = node.boolean;
  return std::nullopt;
}

Result GoInt(const Node& node, int64_t& value) {
  if (node.kind == Kind::kNull) return std::nullopt;
  if (node.kind == Kind::kFloat) {
    return Failure{"", absl::StrCat("number ", node.json), "int"};
  }
  if (node.kind != Kind::kInt) return TypeError(node, "int");
  value = node.integer;
  return std::nullopt;
}

Result ReplicatedBlock(const Node& node, Replicated& block) {
  if (auto failure = RawMap(node)) return failure;
  block.rename_by_default = false;
  if (const yaml::Entry* rename = node.Find("renameByDefault")) {
    if (auto failure = GoBool(*rename->value, block.rename_by_default)) {
      return failure;
    }
  }
  const yaml::Entry* fail = node.Find("failRequestsGreaterThanOne");
  if (fail != nullptr) {
    bool value = false;
    if (auto failure = GoBool(*fail->value, value)) return failure;
    block.fail_requests.reset();
    if (fail->value->kind != Kind::kNull) block.fail_requests = value;
  }
  block.resources.clear();
  const yaml::Entry* resources = node.Find("resources");
  if (resources != nullptr && resources->value->kind != Kind::kNull) {
    const Node& list = *resources->value;
    if (list.kind != Kind::kSequence) {
      return TypeError(list, "[]v1.ReplicatedResource");
    }
    for (const yaml::NodePtr& item : list.items) {
      if (auto failure = ResourceEntry(*item, block.resources.emplace_back())) {
        return failure;
      }
    }
  }
  if (block.resources.empty()) return Plain("no resources specified");
  return std::nullopt;
}

Result PatternEntry(const Node& node) {
  if (auto failure = RawMap(node)) return failure;
  for (const char* field : {"pattern", "name"}) {
    if (node.Find(field) == nullptr) {
      return Plain(
          absl::StrCat("resources must have a '", field, "' field set"));
    }
  }
  std::string text;
  if (auto failure =
          GoString(*node.Find("pattern")->value, text, "v1.ResourcePattern")) {
    return failure;
  }
  return ResourceName(*node.Find("name")->value, text);
}

Result ListStrategy(const Node& node) {
  if (node.kind == Kind::kString) return std::nullopt;
  bool ok = node.kind == Kind::kSequence;
  for (const yaml::NodePtr& item : node.items) {
    ok = ok && (item->kind == Kind::kString || item->kind == Kind::kNull);
  }
  if (ok) return std::nullopt;
  return Plain(
      absl::StrCat("invalid deviceListStrategy: ", yaml::ToJson(node)));
}

Result Duration(const Node& node) {
  if (node.kind == Kind::kInt || node.kind == Kind::kFloat) return std::nullopt;
  if (node.kind != Kind::kString) return Plain("invalid duration");
  if (node.text == "infinite") return std::nullopt;
  auto duration = ParseGoDuration(node.text);
  if (duration.ok()) return std::nullopt;
  return Plain(std::string(duration.status().message()));
}

}  // namespace rondo::config::nvidia
