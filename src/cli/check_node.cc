// SPDX-License-Identifier: Apache-2.0

#include "cli/check_node.h"

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "config/choose.h"

namespace rondo::cli {
namespace {

using Texts = std::map<std::string, std::string>;

// The members of an object as text; numbers as they are written.
Texts Members(const nlohmann::json& object) {
  Texts members;
  if (!object.is_object()) return members;
  for (const auto& [key, value] : object.items()) {
    members[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return members;
}

int64_t Number(const Texts& texts, const std::string& key) {
  const auto it = texts.find(key);
  int64_t value = 0;
  if (it == texts.end() || !absl::SimpleAtoi(it->second, &value)) return 0;
  return value;
}

// "nvidia.com/gpu.count" and its kin, for gpu and each mig-<profile>.
void ReadLabels(const Texts& labels, NodeFacts& facts) {
  for (const auto& [key, value] : labels) {
    absl::string_view resource = key;
    if (!absl::StartsWith(resource, "nvidia.com/") ||
        !absl::ConsumeSuffix(&resource, ".count")) {
      continue;
    }
    const std::string name(resource);
    if (name != "nvidia.com/gpu" &&
        !absl::StartsWith(name, "nvidia.com/mig-")) {
      continue;
    }
    const int64_t count = Number(labels, key);
    if (count <= 0 || count > 4096) continue;
    // Under mixed, GPUs in MIG mode are counted but not offered.
    const auto replicas = labels.find(name + ".replicas");
    if (replicas != labels.end() && replicas->second == "0") continue;
    config::DeviceGroup& group = facts.groups[name];
    group.count = static_cast<int>(count);
    group.memory_bytes = static_cast<uint64_t>(std::max<int64_t>(
                             0, Number(labels, name + ".memory")))
                         << 20;
  }
  const auto label = labels.find(config::kConfigLabel);
  if (label != labels.end()) facts.config_label = label->second;
  const auto product = labels.find("nvidia.com/gpu.product");
  if (product != labels.end()) facts.models.push_back(product->second);
}

// Without GPU Feature Discovery: what kubelet offers, less the replicas of a
// config that is in force, which are not known.
void ReadAllocatable(const Texts& allocatable, NodeFacts& facts) {
  for (const auto& [key, value] : allocatable) {
    std::string name = std::string(absl::StripSuffix(key, ".shared"));
    if (name != "nvidia.com/gpu" &&
        !absl::StartsWith(name, "nvidia.com/mig-")) {
      continue;
    }
    const int64_t count = Number(allocatable, key);
    if (count > 0 && count <= 4096) facts.groups[name].count += count;
  }
}

}  // namespace

absl::StatusOr<NodeFacts> ReadNode(absl::string_view text) {
  nlohmann::json json = nlohmann::json::parse(text.begin(), text.end(), nullptr,
                                              /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) {
    return absl::InvalidArgumentError(
        "not JSON of a node (use `kubectl get node NAME -o json`)");
  }
  if (json.contains("items") && json["items"].is_array()) {
    if (json["items"].size() != 1) {
      return absl::InvalidArgumentError(
          "a list of nodes: give one node (`kubectl get node NAME -o json`)");
    }
    json = nlohmann::json(json["items"][0]);
  }
  if (!json.is_object() || json.value("kind", nlohmann::json()) != "Node") {
    return absl::InvalidArgumentError("not a Node object");
  }
  const nlohmann::json metadata = json.value("metadata", nlohmann::json());
  const nlohmann::json status = json.value("status", nlohmann::json());
  NodeFacts facts;
  if (metadata.is_object()) {
    facts.name = Members(metadata)["name"];
    ReadLabels(Members(metadata.value("labels", nlohmann::json())), facts);
  }
  if (facts.groups.empty() && status.is_object()) {
    ReadAllocatable(Members(status.value("allocatable", nlohmann::json())),
                    facts);
  }
  if (facts.groups.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "node ", facts.name,
        " has no GPU: neither labels of GPU Feature Discovery "
        "(nvidia.com/gpu.count) nor nvidia.com/gpu in status.allocatable; "
        "take a node that has one of them, or leave --node out"));
  }
  return facts;
}

}  // namespace rondo::cli
