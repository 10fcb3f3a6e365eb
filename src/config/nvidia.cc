// SPDX-License-Identifier: Apache-2.0

#include "config/nvidia.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "config/flag_table.h"
#include "config/nvidia_decode.h"
#include "config/yaml.h"
#include "config/yaml_scalar.h"

namespace rondo::config {
namespace {

using nvidia::Failure;
using nvidia::Replicated;
using nvidia::Result;
using yaml::Kind;
using yaml::Node;

// Decodes the whole Config. A failure of a custom decoder ends the work; a type
// error elsewhere is remembered, and reported only if nothing worse follows.
class Decoder {
 public:
  void Decode(const Node& root) {
    Struct(root, "Config", "", "v1.Config",
           {"version", "flags", "resources", "sharing", "imex"},
           [this](absl::string_view key, const Node& node) {
             return ConfigField(key, node);
           });
  }

  std::string error() const {
    if (abort_) return *abort_;
    return saved_.value_or("");
  }

  std::string version;
  Replicated time_slicing;
  std::optional<Replicated> mps;
  bool has_resources = false;

 private:
  using Field = std::function<Result(absl::string_view, const Node&)>;

  static std::string Message(const Failure& failure, const std::string& owner,
                             const std::string& path) {
    if (failure.type.empty()) return failure.text;
    return absl::StrCat("json: cannot unmarshal ", failure.value, " into Go ",
                        path.empty()
                            ? absl::StrCat("value of type ", failure.type)
                            : absl::StrCat("struct field ", owner, ".", path,
                                           " of type ", failure.type));
  }

  void Save(const Failure& failure, const std::string& owner,
            const std::string& path) {
    if (!saved_) saved_ = Message(failure, owner, path);
  }

  // Calls `field` for each key that Go matches to one of `names`, in the order
  // of the sorted keys; null and other types as Go treats them.
  void Struct(const Node& node, const std::string& owner,
              const std::string& path, const std::string& type,
              const std::vector<absl::string_view>& names, const Field& field) {
    if (node.kind == Kind::kNull) return;
    if (node.kind != Kind::kMap) {
      Save(*nvidia::TypeError(node, type), path.empty() ? "" : outer_, path);
      return;
    }
    std::vector<const yaml::Entry*> sorted;
    for (const yaml::Entry& entry : node.entries) sorted.push_back(&entry);
    std::sort(sorted.begin(), sorted.end(),
              [](auto* a, auto* b) { return a->key < b->key; });
    for (const yaml::Entry* entry : sorted) {
      for (absl::string_view name : names) {
        if (abort_) return;
        if (!absl::EqualsIgnoreCase(name, entry->key)) continue;
        outer_ = owner;
        place_ = absl::StrCat(path, path.empty() ? "" : ".", name);
        const std::string place = place_;
        if (Result failure = field(name, *entry->value)) {
          abort_ = Message(*failure, owner, place);
        }
      }
    }
  }

  // A type error of a plain field: remembered, not fatal.
  Result Keep(Result failure) {
    if (failure) Save(*failure, outer_, place_);
    return std::nullopt;
  }

  Result ConfigField(absl::string_view key, const Node& node) {
    if (key == "version") return Version(node);
    if (key == "flags") {
      FlagsStruct(node);
    } else if (key == "resources") {
      Struct(node, "Resources", "resources", "v1.Resources", {"gpus", "mig"},
             [this](absl::string_view, const Node& n) { return Patterns(n); });
    } else if (key == "sharing") {
      Struct(
          node, "Sharing", "sharing", "v1.Sharing", {"timeSlicing", "mps"},
          [this](absl::string_view k, const Node& n) { return Share(k, n); });
    } else {
      Struct(node, "Imex", "imex", "v1.Imex", {"channelIDs", "required"},
             [this](absl::string_view k, const Node& n) { return Imex(k, n); });
    }
    return std::nullopt;
  }

  // The YAML layer turns numbers and booleans into strings here only.
  Result Version(const Node& node) {
    if (node.kind == Kind::kBool || node.kind == Kind::kInt ||
        node.kind == Kind::kFloat) {
      version = node.json;
      return std::nullopt;
    }
    return Keep(nvidia::GoString(node, version));
  }

  // The embedded struct of the flags shows in Go's messages.
  void FlagsStruct(const Node& node) {
    std::vector<absl::string_view> names = {"plugin", "gfd"};
    for (const FlagInfo& flag : kFlags) {
      if (flag.in_file && !absl::StartsWith(flag.key, "plugin.")) {
        names.push_back(flag.key);
      }
    }
    if (node.kind != Kind::kMap) {
      Struct(node, "Flags", "flags", "v1.Flags", names, nullptr);
      return;
    }
    const std::string path = "flags.CommandLineFlags";
    Struct(node, "Flags", path, "v1.Flags", names,
           [&](absl::string_view key, const Node& n) -> Result {
             if (key == "plugin") {
               PluginStruct(n, path + ".plugin");
             } else if (key == "gfd") {
               GfdStruct(n, path + ".gfd");
             } else {
               return Flag(*FindFlag(key), n);
             }
             return std::nullopt;
           });
  }

  void PluginStruct(const Node& node, const std::string& path) {
    constexpr absl::string_view kPrefix = "plugin.";
    std::vector<absl::string_view> names;
    for (const FlagInfo& flag : kFlags) {
      if (absl::StartsWith(flag.key, kPrefix)) {
        names.push_back(absl::string_view(flag.key).substr(kPrefix.size()));
      }
    }
    Struct(node, "PluginCommandLineFlags", path, "v1.PluginCommandLineFlags",
           names, [this](absl::string_view key, const Node& n) {
             return Flag(*FindFlag(absl::StrCat("plugin.", key)), n);
           });
  }

  void GfdStruct(const Node& node, const std::string& path) {
    Struct(node, "GFDCommandLineFlags", path, "v1.GFDCommandLineFlags",
           {"oneshot", "noTimestamp", "sleepInterval", "outputFile",
            "machineTypeFile"},
           [this](absl::string_view key, const Node& n) -> Result {
             std::string text;
             bool boolean = false;
             if (n.kind == Kind::kNull) return std::nullopt;
             if (key == "sleepInterval") return nvidia::Duration(n);
             if (key == "oneshot" || key == "noTimestamp") {
               return Keep(nvidia::GoBool(n, boolean));
             }
             return Keep(nvidia::GoString(n, text));
           });
  }

  Result Flag(const FlagInfo& flag, const Node& node) {
    std::string text;
    bool boolean = false;
    if (node.kind == Kind::kNull) return std::nullopt;
    if (flag.type == FlagType::kStringList) return nvidia::ListStrategy(node);
    if (flag.type == FlagType::kBool)
      return Keep(nvidia::GoBool(node, boolean));
    return Keep(nvidia::GoString(node, text));
  }

  Result Patterns(const Node& node) {
    if (node.kind == Kind::kNull) return std::nullopt;
    if (node.kind != Kind::kSequence)
      return Keep(nvidia::TypeError(node, "[]v1.Resource"));
    for (const yaml::NodePtr& item : node.items) {
      if (auto failure = nvidia::PatternEntry(*item)) return failure;
      has_resources = true;
    }
    return std::nullopt;
  }

  Result Share(absl::string_view key, const Node& node) {
    if (key == "timeSlicing")
      return nvidia::ReplicatedBlock(node, time_slicing);
    if (node.kind == Kind::kNull) {
      mps.reset();
      return std::nullopt;
    }
    if (!mps) mps.emplace();
    return nvidia::ReplicatedBlock(node, *mps);
  }

  Result Imex(absl::string_view key, const Node& node) {
    bool boolean = false;
    if (key == "required") return Keep(nvidia::GoBool(node, boolean));
    if (node.kind == Kind::kNull) return std::nullopt;
    if (node.kind != Kind::kSequence)
      return Keep(nvidia::TypeError(node, "[]int"));
    for (const yaml::NodePtr& item : node.items) {
      int64_t id = 0;
      Keep(nvidia::GoInt(*item, id));
    }
    return std::nullopt;
  }

  std::string outer_;  // the struct that is being decoded, and the path in it
  std::string place_;
  std::optional<std::string> abort_;
  std::optional<std::string> saved_;
};

std::string ReplicatedJson(const Replicated& block) {
  std::vector<std::string> fields;
  if (block.rename_by_default) fields.push_back("\"renameByDefault\":true");
  if (block.fail_requests) {
    fields.push_back(absl::StrCat("\"failRequestsGreaterThanOne\":",
                                  *block.fail_requests ? "true" : "false"));
  }
  std::vector<std::string> entries;
  for (const nvidia::Entry& entry : block.resources) {
    entries.push_back(absl::StrCat(
        "{\"name\":", yaml::GoQuote(entry.name),
        block.rename_by_default
            ? absl::StrCat(",\"rename\":",
                           yaml::GoQuote(entry.name + ".shared"))
            : "",
        ",\"devices\":\"all\",\"replicas\":", entry.replicas, "}"));
  }
  if (!entries.empty()) {
    fields.push_back(
        absl::StrCat("\"resources\":[", absl::StrJoin(entries, ","), "]"));
  }
  return absl::StrCat("{", absl::StrJoin(fields, ","), "}");
}

void WarnOfDropped(const Replicated& block, absl::string_view id,
                   std::vector<std::string>& warnings) {
  bool renamed = false;
  bool devices = false;
  for (const nvidia::Entry& entry : block.resources) {
    const bool shared =
        block.rename_by_default && entry.rename == entry.name + ".shared";
    renamed = renamed || (!entry.rename.empty() && !shared);
    devices = devices || !entry.all_devices;
  }
  if (renamed) {
    warnings.push_back(absl::StrCat(
        "Setting the 'rename' field in sharing.", id,
        ".resources is not yet supported in the config. Ignoring..."));
  }
  if (devices) {
    warnings.push_back(absl::StrCat(
        "Customizing the 'devices' field in sharing.", id,
        ".resources is not yet supported in the config. Ignoring..."));
  }
}

}  // namespace

NvidiaVerdict JudgeAsNvidia(absl::string_view text) {
  NvidiaVerdict verdict;
  const yaml::Parsed parsed = yaml::Parse(text);
  if (parsed.error) {
    verdict.error = absl::StrCat(
        "unmarshal error: error converting YAML to JSON: yaml: line ",
        parsed.error->mark.line, ": ", parsed.error->message);
    return verdict;
  }
  Decoder decoder;
  decoder.Decode(*parsed.documents[0]);
  if (!decoder.error().empty()) {
    verdict.error = absl::StrCat(
        "unmarshal error: error unmarshaling JSON: while decoding JSON: ",
        decoder.error());
    return verdict;
  }
  if (!decoder.version.empty() && decoder.version != "v1") {
    verdict.error = absl::StrCat("unknown version: ", decoder.version);
    return verdict;
  }
  verdict.ok = true;
  if (decoder.has_resources) {
    verdict.warnings.push_back(
        "Customizing the 'resources' field is not yet supported in the config. "
        "Ignoring...");
  }
  WarnOfDropped(decoder.time_slicing, "timeSlicing", verdict.warnings);
  verdict.sharing =
      absl::StrCat("{\"timeSlicing\":", ReplicatedJson(decoder.time_slicing));
  if (!decoder.time_slicing.resources.empty())
    verdict.strategy = "time-slicing";
  if (decoder.mps) {
    WarnOfDropped(*decoder.mps, "mps", verdict.warnings);
    absl::StrAppend(&verdict.sharing,
                    ",\"mps\":", ReplicatedJson(*decoder.mps));
    verdict.strategy = "mps";
  }
  verdict.sharing += "}";
  return verdict;
}

}  // namespace rondo::config
