// SPDX-License-Identifier: Apache-2.0
//
// The top level of a config file, and its small parts.

#include "absl/strings/str_cat.h"
#include "config/read_value.h"
#include "config/spec.h"

namespace rondo::config {
namespace {

using yaml::Kind;
using yaml::Node;

// The one place where NVIDIA's parser turns numbers and booleans into strings.
// `version` is the last one given, or null.
void CheckVersion(const Node* version, std::vector<Problem>& problems) {
  if (version == nullptr) return;
  const Node& node = *version;
  const std::string text = node.kind == Kind::kString ? node.text : node.json;
  if (text.empty() || text == "v1") return;
  problems.push_back(MakeProblem(
      Code::kVersion, node.mark.line, node.mark.column,
      absl::StrCat("unknown version: ", text), "write `version: v1`"));
}

// `resources:` is checked, then has no effect, as in NVIDIA's plugin.
void CheckResourceEntry(const Node& entry, std::vector<Problem>& problems) {
  if (entry.kind != Kind::kNull && !ReadMap(entry, "resources[]", problems)) {
    return;
  }
  CheckKeys(entry, *FindSection("resources[]"), problems);
  for (const char* field : {"pattern", "name"}) {
    const yaml::Entry* found = entry.Find(field);
    if (found == nullptr) {
      problems.push_back(MakeProblem(
          Code::kMissing, entry.mark.line, entry.mark.column,
          absl::StrCat("resources must have a '", field, "' field set")));
      continue;
    }
    const Node& node = *found->value;
    const bool is_name = absl::string_view(field) == "name";
    std::string text;
    if (node.kind != Kind::kNull && !ReadString(node, field, text, problems)) {
      continue;
    }
    std::string error;
    FullResourceName(text, error);
    if (is_name && !error.empty()) {
      problems.push_back(MakeProblem(Code::kResourceName, node.mark.line,
                                     node.mark.column, std::move(error)));
    }
  }
}

void CheckResources(const Node& resources, std::vector<Problem>& problems) {
  if (!ReadMap(resources, "resources", problems)) return;
  bool any = false;
  ForEachKey(resources, *FindSection("resources"), problems,
             [&](absl::string_view key, const yaml::Entry& entry) {
               const Node& node = *entry.value;
               if (node.kind == Kind::kNull) return;
               if (node.kind != Kind::kSequence) {
                 problems.push_back(WrongType(absl::StrCat("resources.", key),
                                              "a list of entries", node));
                 return;
               }
               any = any || !node.items.empty();
               for (const yaml::NodePtr& item : node.items) {
                 CheckResourceEntry(*item, problems);
               }
             });
  if (any) {
    problems.push_back(MakeProblem(
        Code::kResourcesIgnored, resources.mark.line, resources.mark.column,
        "`resources` has no effect (NVIDIA's plugin ignores it too): GPUs are "
        "nvidia.com/gpu, MIG devices nvidia.com/gpu or nvidia.com/mig-…",
        "to give shared devices another name, use `rename` in "
        "`sharing.timeSlicing.resources`"));
  }
}

void DecodeSharing(const Node& sharing, Spec& spec,
                   std::vector<Problem>& problems) {
  ForEachKey(sharing, *FindSection("sharing"), problems,
             [&](absl::string_view key, const yaml::Entry& entry) {
               if (key == "timeSlicing") {
                 spec.time_slicing = DecodeReplicated(
                     *entry.value, "sharing.timeSlicing", problems);
               } else if (entry.value->kind == Kind::kNull) {
                 spec.mps.reset();
               } else {
                 spec.mps =
                     DecodeReplicated(*entry.value, "sharing.mps", problems);
               }
             });
}

void DecodeImex(const Node& imex, Spec& spec, std::vector<Problem>& problems) {
  spec.imex_mark = imex.mark;
  ForEachKey(imex, *FindSection("imex"), problems,
             [&](absl::string_view key, const yaml::Entry& entry) {
               const Node& node = *entry.value;
               if (node.kind == Kind::kNull) return;
               if (key == "required") {
                 ReadBool(node, "imex.required", spec.imex_required, problems);
                 return;
               }
               if (node.kind != Kind::kSequence) {
                 problems.push_back(
                     WrongType("imex.channelIDs", "a list of integers", node));
                 return;
               }
               spec.imex_channels.clear();
               spec.imex_mark = node.mark;
               for (const yaml::NodePtr& item : node.items) {
                 int64_t id = 0;
                 if (item->kind != Kind::kNull) {
                   ReadInt(*item, "imex.channelIDs[]", id, problems);
                 }
                 spec.imex_channels.push_back(id);
               }
             });
}

}  // namespace

Spec DecodeSpec(const Node& root, std::vector<Problem>& problems) {
  Spec spec;
  const Node* version = nullptr;
  if (root.kind == Kind::kNull) return spec;
  if (root.kind != Kind::kMap) {
    problems.push_back(WrongType("config", "a map", root));
    return spec;
  }
  ForEachKey(root, *FindSection(""), problems,
             [&](absl::string_view key, const yaml::Entry& entry) {
               const Node& node = *entry.value;
               if (key == "version") {
                 if (node.kind == Kind::kMap || node.kind == Kind::kSequence) {
                   problems.push_back(WrongType(key, "a string", node));
                 } else if (node.kind != Kind::kNull) {
                   version = &node;
                 }
               } else if (key == "flags") {
                 if (ReadMap(node, "flags", problems)) {
                   DecodeFlags(node, spec, problems);
                 }
               } else if (key == "resources") {
                 CheckResources(node, problems);
               } else if (key == "sharing") {
                 if (ReadMap(node, "sharing", problems)) {
                   DecodeSharing(node, spec, problems);
                 }
               } else if (key == "imex") {
                 if (ReadMap(node, "imex", problems)) {
                   DecodeImex(node, spec, problems);
                 }
               } else {
                 DecodeRondo(node, spec.rondo, problems);
               }
             });
  CheckVersion(version, problems);
  return spec;
}

}  // namespace rondo::config
