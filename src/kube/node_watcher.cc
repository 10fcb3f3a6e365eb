// SPDX-License-Identifier: Apache-2.0
#include "kube/node_watcher.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace rondo::kube {
namespace {

using nlohmann::json;

absl::StatusOr<json> ParseObject(absl::string_view text) {
  json value = json::parse(text.begin(), text.end(), nullptr,
                           /*allow_exceptions=*/false);
  if (!value.is_object())
    return absl::InvalidArgumentError("the API server sent no JSON object");
  return value;
}

absl::StatusOr<NodeState> FromNode(const json& node) {
  const auto metadata = node.find("metadata");
  if (metadata == node.end() || !metadata->is_object())
    return absl::InvalidArgumentError("a Node without metadata");
  NodeState state;
  if (const auto version = metadata->find("resourceVersion");
      version != metadata->end() && version->is_string())
    state.resource_version = version->get<std::string>();
  if (const auto labels = metadata->find("labels");
      labels != metadata->end() && labels->is_object())
    for (const auto& [key, value] : labels->items())
      if (value.is_string()) state.labels[key] = value.get<std::string>();
  return state;
}

WatchThread::Options Asked(const NodeWatcher::Options& options) {
  return {.list_path = absl::StrCat("/api/v1/nodes/", options.node_name),
          .watch_path = absl::StrCat(
              "/api/v1/nodes?watch=1&fieldSelector=metadata.name%3D",
              options.node_name),
          .first_pause = options.first_pause,
          .longest_pause = options.longest_pause};
}

}  // namespace

absl::StatusOr<NodeState> ParseNode(absl::string_view text) {
  RONDO_ASSIGN_OR_RETURN(const json node, ParseObject(text));
  return FromNode(node);
}

absl::StatusOr<NodeState> ParseNodeEvent(absl::string_view line) {
  RONDO_ASSIGN_OR_RETURN(const json event, ParseObject(line));
  const auto type = event.find("type");
  const auto object = event.find("object");
  if (type == event.end() || !type->is_string() || object == event.end() ||
      !object->is_object())
    return absl::InvalidArgumentError("a watch event without type or object");
  if (*type == "DELETED") return absl::NotFoundError("the node was deleted");
  if (*type == "ERROR")  // a Status object; 410 = the version is too old
    return absl::OutOfRangeError(
        absl::StrCat("watch ended: ", object->dump().substr(0, 300)));
  return FromNode(*object);
}

NodeWatcher::NodeWatcher(std::unique_ptr<ApiClient> client, Options options,
                         OnLabels on_labels, OnError on_error)
    : on_labels_(std::move(on_labels)),
      thread_(
          std::move(client), Asked(options),
          WatchThread::WholeBody(
              [this](absl::string_view body) -> absl::StatusOr<std::string> {
                RONDO_ASSIGN_OR_RETURN(NodeState listed, ParseNode(body));
                Deliver(listed.labels);
                return std::move(listed.resource_version);
              }),
          [this](absl::string_view line) -> absl::Status {
            RONDO_ASSIGN_OR_RETURN(const NodeState state, ParseNodeEvent(line));
            Deliver(state.labels);
            return absl::OkStatus();
          },
          std::move(on_error)) {}

void NodeWatcher::Deliver(const Labels& labels) {
  if (delivered_ == labels) return;
  delivered_ = labels;
  on_labels_(labels);
}

}  // namespace rondo::kube
