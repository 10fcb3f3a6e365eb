// SPDX-License-Identifier: Apache-2.0
//
// `sharing.timeSlicing` and `sharing.mps`: the same shape.

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "config/read_value.h"
#include "config/spec.h"
#include "config/suggest.h"

namespace rondo::config {
namespace {

constexpr char kDevicesHint[] =
    "write `all`, a count above 0, or a list of devices";

using yaml::Kind;
using yaml::Node;

void Error(std::vector<Problem>& problems, Code code, yaml::Mark mark,
           std::string message, std::string hint = "") {
  problems.push_back(MakeProblem(code, mark.line, mark.column,
                                 std::move(message), std::move(hint)));
}

// Null counts as the empty name, which is none.
void ReadResourceName(const Node& node, absl::string_view what,
                      std::string& value, std::vector<Problem>& problems) {
  std::string text;
  if (node.kind != Kind::kNull && !ReadString(node, what, text, problems)) {
    return;
  }
  std::string error;
  std::string full = FullResourceName(text, error);
  if (error.empty()) {
    value = std::move(full);
    return;
  }
  // Without the regular expression that NVIDIA's message ends with.
  const size_t tail = error.find(" (e.g. ");
  if (tail != std::string::npos) error.replace(tail, std::string::npos, "]");
  std::string hint;
  if (text.empty()) {
    hint = absl::StrCat("give `", what, "` a value or remove it");
  } else if (absl::StrContains(text, '+')) {
    hint = "the plugin writes '.' for the '+' of a MIG profile";
  } else if (absl::StrContains(text, '/')) {
    hint = "only nvidia.com/gpu and nvidia.com/mig-<profile> can be shared";
  }
  Error(problems, Code::kResourceName, node.mark, std::move(error),
        std::move(hint));
}

void ReadDeviceList(const Node& node, ResourceSpec& resource,
                    std::vector<Problem>& problems) {
  resource.devices.kind = DeviceSelector::Kind::kList;
  for (const yaml::NodePtr& item : node.items) {
    std::optional<DeviceRef> device;
    if (item->kind == Kind::kNull) {
      device = ParseDeviceRef("0");  // what Go makes of it
    } else if (item->kind == Kind::kInt || item->kind == Kind::kFloat) {
      device = ParseDeviceRef(item->json);
    } else if (item->kind == Kind::kString) {
      device = ParseDeviceRef(item->text);
    }
    if (!device) {
      const bool text = item->kind == Kind::kString;
      Error(problems, Code::kDevices, item->mark,
            absl::StrCat("unsupported type for device in devices list: ",
                         text ? item->text : "", ", string"),
            "write a GPU index, a MIG index such as \"0:1\", or a whole UUID "
            "(GPU-… or MIG-…)");
      resource.devices = DeviceSelector();
      return;
    }
    if (device->kind == DeviceRef::Kind::kMigIndex && !item->quoted) {
      problems.push_back(MakeProblem(
          Code::kYamlTrap, item->mark.line, item->mark.column,
          absl::StrCat("`", device->text,
                       "` without quotes: read as the MIG "
                       "index \"",
                       device->text,
                       "\", but other YAML 1.1 readers take it for a number in "
                       "base 60"),
          "put it in quotes"));
    }
    resource.devices.list.push_back(*std::move(device));
  }
}

void ReadDevices(const Node& node, ResourceSpec& resource,
                 std::vector<Problem>& problems) {
  resource.devices_mark = node.mark;
  if (node.kind == Kind::kString || node.kind == Kind::kNull) {
    if (node.kind == Kind::kString && node.text == "all") return;
    Error(problems, Code::kDevices, node.mark,
          absl::StrCat("devices set as '",
                       node.kind == Kind::kString ? node.text : "",
                       "' but the only valid string input is 'all'"),
          kDevicesHint);
  } else if (node.kind == Kind::kInt) {
    resource.devices.kind = DeviceSelector::Kind::kCount;
    if (node.integer <= 0 || node.integer > INT32_MAX) {
      Error(problems, Code::kDevices, node.mark,
            absl::StrCat("devices set as '", node.json,
                         "' but a count of devices must be > 0"),
            kDevicesHint);
      return;
    }
    resource.devices.count = static_cast<int>(node.integer);
  } else if (node.kind == Kind::kSequence) {
    ReadDeviceList(node, resource, problems);
  } else {
    Error(problems, Code::kDevices, node.mark,
          absl::StrCat("unrecognized type for devices spec: ",
                       yaml::ToJson(node).substr(0, 200)),
          kDevicesHint);
  }
}

void ReadReplicas(const Node& node, ResourceSpec& resource,
                  std::vector<Problem>& problems) {
  resource.replicas_mark = node.mark;
  if (node.kind != Kind::kNull &&
      !ReadInt(node, "replicas", resource.replicas, problems)) {
    if (problems.back().hint.empty())
      problems.back().hint = "write a whole number, at least 2";
    return;
  }
  if (resource.replicas < 2) {
    Error(problems, Code::kReplicas, node.mark,
          "number of replicas must be >= 2",
          "to leave a resource unshared, remove its entry");
  } else if (!node.text.empty() && node.text != node.json) {
    problems.push_back(MakeProblem(
        Code::kYamlTrap, node.mark.line, node.mark.column,
        absl::StrCat("`", node.text, "` is ", node.json, " in YAML 1.1"),
        absl::StrCat("write ", node.json)));
  }
}

ResourceSpec ReadEntry(const Node& entry, const std::string& path,
                       std::vector<Problem>& problems) {
  ResourceSpec resource;
  resource.mark = entry.mark;
  if (entry.kind != Kind::kNull &&
      !ReadMap(entry, absl::StrCat(path, ".resources[]"), problems)) {
    return resource;
  }
  CheckKeys(entry, *FindSection(absl::StrCat(path, ".resources[]")), problems);
  if (const yaml::Entry* name = entry.Find("name")) {
    resource.name_mark = name->value->mark;
    ReadResourceName(*name->value, "name", resource.name, problems);
  } else {
    Error(problems, Code::kMissing, entry.mark, "no resource name specified",
          "add `name: nvidia.com/gpu`");
  }
  if (const yaml::Entry* devices = entry.Find("devices")) {
    ReadDevices(*devices->value, resource, problems);
  }
  if (const yaml::Entry* replicas = entry.Find("replicas")) {
    ReadReplicas(*replicas->value, resource, problems);
  } else {
    Error(problems, Code::kMissing, entry.mark, "no replicas specified",
          "add `replicas: 4`");
  }
  if (const yaml::Entry* rename = entry.Find("rename")) {
    resource.rename_mark = rename->value->mark;
    ReadResourceName(*rename->value, "rename", resource.rename, problems);
  }
  return resource;
}

}  // namespace

ReplicatedSpec DecodeReplicated(const Node& block, const std::string& path,
                                std::vector<Problem>& problems) {
  ReplicatedSpec spec;
  spec.mark = block.mark;
  // Null is a block without resources, not an absent one.
  if (block.kind != Kind::kNull && !ReadMap(block, path, problems)) return spec;
  CheckKeys(block, *FindSection(path), problems);
  const yaml::Entry* rename = block.Find("renameByDefault");
  if (rename != nullptr && rename->value->kind != Kind::kNull) {
    ReadBool(*rename->value, "renameByDefault", spec.rename_by_default,
             problems);
  }
  const yaml::Entry* fail = block.Find("failRequestsGreaterThanOne");
  if (fail != nullptr && fail->value->kind != Kind::kNull) {
    bool value = false;
    if (ReadBool(*fail->value, "failRequestsGreaterThanOne", value, problems)) {
      spec.fail_requests_greater_than_one = value;
    }
  }
  const yaml::Entry* resources = block.Find("resources");
  const bool listed =
      resources != nullptr && resources->value->kind != Kind::kNull;
  if (listed && resources->value->kind != Kind::kSequence) {
    problems.push_back(WrongType(absl::StrCat(path, ".resources"),
                                 "a list of entries, each after a `- `",
                                 *resources->value));
    return spec;
  }
  if (!listed || resources->value->items.empty()) {
    Error(problems, Code::kMissing, block.mark, "no resources specified",
          absl::StrCat("add `resources: [{name: nvidia.com/gpu, replicas: 4}]` "
                       "under `",
                       path, "`, or remove the block"));
    return spec;
  }
  for (const yaml::NodePtr& entry : resources->value->items) {
    spec.resources.push_back(ReadEntry(*entry, path, problems));
  }
  return spec;
}

}  // namespace rondo::config
