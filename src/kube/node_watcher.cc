// SPDX-License-Identifier: Apache-2.0
#include "kube/node_watcher.h"

#include <algorithm>
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
    : client_(std::move(client)),
      options_(std::move(options)),
      on_labels_(std::move(on_labels)),
      on_error_(std::move(on_error)),
      thread_([this] { Run(); }) {}

NodeWatcher::~NodeWatcher() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  client_->Cancel();
  stop_changed_.notify_all();
  thread_.join();
}

void NodeWatcher::Deliver(const NodeState& state) {
  resource_version_ = state.resource_version;
  if (delivered_ && state.labels == last_) return;
  delivered_ = true;
  last_ = state.labels;
  on_labels_(last_);
}

absl::Status NodeWatcher::ListAndWatch() {
  RONDO_ASSIGN_OR_RETURN(
      const std::string body,
      client_->Get(absl::StrCat("/api/v1/nodes/", options_.node_name)));
  RONDO_ASSIGN_OR_RETURN(const NodeState listed, ParseNode(body));
  Deliver(listed);
  absl::Status bad_event;
  const absl::Status watched = client_->Watch(
      absl::StrCat("/api/v1/nodes?watch=1&fieldSelector=metadata.name%3D",
                   options_.node_name, "&resourceVersion=", resource_version_),
      [&](absl::string_view line) {
        if (line.empty()) return;
        if (auto state = ParseNodeEvent(line); state.ok())
          Deliver(*state);
        else
          bad_event = state.status();
      });
  RONDO_RETURN_IF_ERROR(watched);
  return bad_event;
}

void NodeWatcher::Run() {
  std::chrono::milliseconds pause = options_.first_pause;
  std::string last_error;
  while (true) {
    const absl::Status status = ListAndWatch();
    std::unique_lock lock(mutex_);
    if (stop_) return;
    // The server ends a watch every few minutes and tells an old one to start
    // again: neither is an error.
    if (status.ok() || absl::IsOutOfRange(status)) {
      pause = options_.first_pause;
      last_error.clear();
    } else if (std::string text(status.message()); text != last_error) {
      last_error = std::move(text);
      on_error_(status);
    }
    if (stop_changed_.wait_for(lock, pause, [this] { return stop_; })) return;
    if (!status.ok()) pause = std::min(pause * 2, options_.longest_pause);
  }
}

}  // namespace rondo::kube
