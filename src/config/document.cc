// SPDX-License-Identifier: Apache-2.0

#include "config/document.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "config/flag_table.h"

namespace rondo::config {
namespace {

using yaml::Kind;
using yaml::Node;

const Node* Child(const Node* map, absl::string_view key) {
  if (map == nullptr) return nullptr;
  const yaml::Entry* entry = map->Find(key);
  return entry == nullptr ? nullptr : entry->value.get();
}

const Node* MapChild(const Node* map, absl::string_view key) {
  const Node* child = Child(map, key);
  return child != nullptr && child->kind == Kind::kMap ? child : nullptr;
}

// Values of the device plugin's own chart.
bool IsPluginValues(const Node& root) {
  const Node* config = MapChild(&root, "config");
  return Child(config, "map") || Child(config, "name") ||
         Child(config, "default") || Child(config, "fallbackStrategies");
}

// A scalar as text; empty if it is not there.
std::string Text(const Node* node) {
  if (node == nullptr || node->kind == Kind::kNull) return "";
  return node->kind == Kind::kString ? node->text : node->json;
}

class Reader {
 public:
  explicit Reader(absl::string_view text)
      : lines_(absl::StrSplit(text, '\n')) {}

  void Read(const Node& root) {
    const std::string kind = Text(Child(&root, "kind"));
    if (kind == "ConfigMap") {
      ReadConfigMap(root);
    } else if (kind == "ClusterPolicy") {
      ReadClusterPolicy(root);
    } else if (kind == "List" || absl::EndsWith(kind, "List")) {
      const Node* items = Child(&root, "items");
      if (items == nullptr) return;
      for (const yaml::NodePtr& item : items->items) Read(*item);
    } else if (!kind.empty()) {
      return;  // another object of the same manifest
    } else if (MapChild(MapChild(&root, "devicePlugin"), "config")) {
      ReadOperatorValues(root);
    } else if (IsPluginValues(root)) {
      ReadPluginValues(root);
    } else if (MapChild(&root, "data")) {
      ReadConfigMap(root);
    }
  }

  Documents documents;

 private:
  void ReadConfigMap(const Node& root) {
    const std::string name = Text(Child(MapChild(&root, "metadata"), "name"));
    if (Child(&root, "binaryData")) {
      documents.problems.push_back(
          At(Code::kOperator, *Child(&root, "binaryData"),
             "`binaryData` is not read; configs belong in `data`"));
    }
    AddAll(InputKind::kConfigMap, name, MapChild(&root, "data"));
  }

  // spec.devicePlugin.config has `name` and `default` and nothing else.
  void ReadClusterPolicy(const Node& root) {
    const Node* spec = MapChild(&root, "spec");
    const Node* plugin = MapChild(spec, "devicePlugin");
    const Node* config = MapChild(plugin, "config");
    Selection& selection =
        Select(InputKind::kClusterPolicy, root, spec, plugin);
    if (config != nullptr) {
      selection.mark = config->mark;
      for (const yaml::Entry& entry : config->entries) {
        if (entry.key == "name" || entry.key == "default") continue;
        documents.problems.push_back(MakeProblem(
            Code::kOperator, entry.mark.line, entry.mark.column,
            absl::StrCat("`", entry.key, "` is no field of a ClusterPolicy's ",
                         "devicePlugin.config: ignored"),
            "`create` and `data` are Helm values; a ClusterPolicy names a "
            "ConfigMap that exists"));
      }
    }
    Name(config);
    if (selection.config_map.empty()) {
      documents.problems.push_back(
          At(Code::kOperator, config ? *config : root,
             "spec.devicePlugin.config.name is empty: the operator gives the "
             "plugin no config at all",
             "name the ConfigMap that holds the configs"));
    } else if (selection.default_key.empty()) {
      documents.problems.push_back(
          At(Code::kOperator, *config,
             "no default: NVIDIA's plugin shares nothing on nodes without the "
             "label nvidia.com/device-plugin.config (the operator sets "
             "FALLBACK_STRATEGIES=empty)",
             "set default to a key; Rondo also takes the key that names the "
             "GPU model"));
    }
  }

  void ReadOperatorValues(const Node& root) {
    const Node* plugin = MapChild(&root, "devicePlugin");
    const Node* config = MapChild(plugin, "config");
    Select(InputKind::kHelmValues, *config, &root, plugin);
    Name(config);
    const Node* data = MapChild(config, "data");
    const bool create = Text(Child(config, "create")) == "true";
    if (create && data == nullptr) {
      documents.problems.push_back(At(
          Code::kOperator, *config,
          "devicePlugin.config.create without `data`: the chart refuses it"));
    } else if (create && Text(Child(config, "name")).empty()) {
      documents.problems.push_back(At(
          Code::kOperator, *config,
          "devicePlugin.config.create without `name`: the chart refuses it"));
    } else if (!create && data != nullptr) {
      documents.problems.push_back(At(
          Code::kOperator, *data, "`data` has no effect without `create: true`",
          "add create: true"));
    }
    AddAll(InputKind::kHelmValues, Text(Child(config, "name")), data);
  }

  void ReadPluginValues(const Node& root) {
    const Node* config = MapChild(&root, "config");
    Selection& selection =
        Select(InputKind::kHelmValues, *config, nullptr, nullptr);
    Name(config);
    selection.fallbacks = {"named", "single"};
    if (const Node* fallbacks = Child(config, "fallbackStrategies")) {
      selection.fallbacks.clear();
      for (const yaml::NodePtr& item : fallbacks->items) {
        selection.fallbacks.push_back(Text(item.get()));
      }
    }
    // Values of the chart become variables of the plugin.
    for (const FlagInfo& flag : kFlags) {
      if (!flag.in_file) continue;
      const absl::string_view key = flag.key;
      const size_t dot = key.find('.');
      const Node* value = Child(
          &root, dot == absl::string_view::npos ? key : key.substr(dot + 1));
      const std::string text = Text(value);
      if (!text.empty() && value->kind != Kind::kMap) {
        selection.environment[flag.environment[0]] = text;
      }
    }
    if (Text(Child(&root, "compatWithCPUManager")) == "true") {
      selection.environment["PASS_DEVICE_SPECS"] = "true";
    }
    const Node* map = MapChild(config, "map");
    if (map != nullptr && !selection.config_map.empty()) {
      documents.problems.push_back(
          At(Code::kOperator, *config,
             "config.map and config.name exclude each other: the chart refuses "
             "it",
             "keep one of them"));
    }
    CheckFallbacks(selection, map);
    AddAll(InputKind::kHelmValues, "", map);
  }

  // The chart wants to be sure that every node gets some config.
  void CheckFallbacks(const Selection& selection, const Node* map) {
    if (map == nullptr || !selection.default_key.empty()) return;
    for (const std::string& strategy : selection.fallbacks) {
      if (strategy == "empty" ||
          (strategy == "named" && map->Find("default") != nullptr) ||
          (strategy == "single" && map->entries.size() == 1)) {
        return;
      }
    }
    documents.problems.push_back(At(
        Code::kOperator, *map,
        "no config applies to a node without a label: NVIDIA's chart refuses "
        "these values",
        "set config.default, call a config default, or add the fallback "
        "strategy empty; Rondo also takes the key that names the GPU model"));
  }

  // Starts a selection with the variables that the operator sets.
  Selection& Select(InputKind kind, const Node& at, const Node* values,
                    const Node* plugin) {
    Selection& selection = documents.selection.emplace();
    selection.kind = kind;
    selection.mark = at.mark;
    if (values == nullptr) return selection;
    selection.fallbacks = {"empty"};
    const bool cdi = Text(Child(MapChild(values, "cdi"), "enabled")) != "false";
    selection.environment = {
        {"PASS_DEVICE_SPECS", "true"},
        {"FAIL_ON_INIT_ERROR", "true"},
        {"DEVICE_ID_STRATEGY", "uuid"},
        {"DEVICE_LIST_STRATEGY", cdi ? "cdi-annotations,cdi-cri" : "envvar"}};
    const std::string mig = Text(Child(MapChild(values, "mig"), "strategy"));
    if (!mig.empty()) selection.environment["MIG_STRATEGY"] = mig;
    const Node* env = Child(plugin, "env");
    if (env == nullptr) return selection;
    for (const yaml::NodePtr& item : env->items) {
      const std::string name = Text(Child(item.get(), "name"));
      if (!name.empty()) {
        selection.environment[name] = Text(Child(item.get(), "value"));
      }
    }
    return selection;
  }

  void Name(const Node* config) {
    documents.selection->config_map = Text(Child(config, "name"));
    documents.selection->default_key = Text(Child(config, "default"));
  }

  void AddAll(InputKind kind, const std::string& name, const Node* data) {
    if (data == nullptr) return;
    for (const yaml::Entry& entry : data->entries) {
      const Node& value = *entry.value;
      if (value.kind != Kind::kString && value.kind != Kind::kNull) {
        documents.problems.push_back(
            At(Code::kType, value,
               absl::StrCat("the config `", entry.key,
                            "` must be text, not YAML of its own"),
               absl::StrCat("write `", entry.key,
                            ": |` and indent the config below it")));
        continue;
      }
      Document document;
      document.kind = kind;
      document.name = name;
      document.key = entry.key;
      document.text = value.kind == Kind::kNull ? "" : value.text;
      Locate(value, document);
      documents.configs.push_back(std::move(document));
    }
  }

  // A literal block scalar keeps the lines of the file.
  void Locate(const Node& value, Document& document) const {
    document.mark = value.mark;
    document.first_line = 0;
    const size_t header = value.mark.line - 1;
    if (header >= lines_.size()) return;
    const absl::string_view rest = lines_[header].substr(std::min<size_t>(
        std::max(value.mark.column - 1, 0), lines_[header].size()));
    if (!absl::StartsWith(rest, "|")) return;
    document.first_line = value.mark.line + 1;
    for (size_t i = header + 1; i < lines_.size(); ++i) {
      const size_t indent = lines_[i].find_first_not_of(" \r");
      if (indent == absl::string_view::npos) continue;
      document.indent = static_cast<int>(indent);
      break;
    }
  }

  static Problem At(Code code, const Node& node, std::string message,
                    std::string hint = "") {
    return MakeProblem(code, node.mark.line, node.mark.column,
                       std::move(message), std::move(hint));
  }

  std::vector<absl::string_view> lines_;
};

// Something that a manifest or a values file has at its top and a config not.
bool IsWrapped(const Node& root) {
  return Child(&root, "kind") != nullptr || IsPluginValues(root) ||
         MapChild(MapChild(&root, "devicePlugin"), "config") ||
         (MapChild(&root, "data") && !Child(&root, "sharing"));
}

}  // namespace

absl::string_view KindName(InputKind kind) {
  switch (kind) {
    case InputKind::kConfig:
      return "config";
    case InputKind::kConfigMap:
      return "configmap";
    case InputKind::kHelmValues:
      return "helm";
    case InputKind::kClusterPolicy:
      return "clusterpolicy";
  }
  return "config";
}

Documents ReadDocuments(absl::string_view text) {
  const yaml::Parsed parsed = yaml::ParseAll(text);
  const bool wrapped =
      std::any_of(parsed.documents.begin(), parsed.documents.end(),
                  [](const yaml::NodePtr& root) { return IsWrapped(*root); });
  if (!wrapped) {
    Documents bare;
    bare.configs.emplace_back();
    bare.configs.back().text = std::string(text);
    return bare;
  }
  Reader reader(text);
  for (const yaml::NodePtr& root : parsed.documents) reader.Read(*root);
  Documents documents = std::move(reader.documents);
  if (parsed.error) {
    documents.problems.push_back(MakeProblem(
        Code::kYamlSyntax, parsed.error->mark.line, parsed.error->mark.column,
        absl::StrCat("not valid YAML: ", parsed.error->message)));
  }
  if (documents.configs.empty() && !documents.selection &&
      !HasErrors(documents.problems)) {
    documents.problems.push_back(MakeProblem(
        Code::kNoConfig, 0, 0, "no config in this manifest",
        "a ConfigMap with `data`, Helm values, a ClusterPolicy or a bare "
        "config is needed"));
  }
  return documents;
}

void MoveToFile(const Document& document, std::vector<Problem>& problems) {
  for (Problem& problem : problems) {
    if (problem.line == 0) continue;
    if (document.first_line == 0) {
      problem.line = document.mark.line;
      problem.column = document.mark.column;
    } else {
      problem.line += document.first_line - 1;
      problem.column += document.indent;
    }
  }
}

}  // namespace rondo::config
