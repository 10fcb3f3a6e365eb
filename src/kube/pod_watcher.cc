// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_watcher.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
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

std::string Text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

// An object's metadata; null where it has none.
const json* Metadata(const json& object) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find("metadata");
  return found != object.end() && found->is_object() ? &*found : nullptr;
}

absl::StatusOr<Pod> FromJson(const json& object, absl::string_view prefix) {
  const json* metadata = Metadata(object);
  if (metadata == nullptr)
    return absl::InvalidArgumentError("a Pod without metadata");
  Pod pod{.name_space = Text(*metadata, "namespace"),
          .name = Text(*metadata, "name"),
          .uid = Text(*metadata, "uid"),
          .annotations = {}};
  if (pod.uid.empty()) return absl::InvalidArgumentError("a Pod without uid");
  absl::Time created;
  if (absl::ParseTime(absl::RFC3339_full, Text(*metadata, "creationTimestamp"),
                      &created, nullptr))
    pod.created_unix_seconds = absl::ToUnixSeconds(created);
  if (const auto status = object.find("status");
      status != object.end() && status->is_object())
    pod.ended = IsEnded(Text(*status, "phase"));
  const auto annotations = metadata->find("annotations");
  if (annotations != metadata->end() && annotations->is_object())
    for (const auto& [key, value] : annotations->items())
      if (value.is_string())
        KeepAnnotation(key, value.get_ref<const std::string&>(), prefix, pod);
  return pod;
}

WatchThread::Options Asked(const PodWatcher::Options& options) {
  const std::string of_node =
      absl::StrCat("fieldSelector=spec.nodeName%3D", options.node_name);
  return {.list_path = absl::StrCat("/api/v1/pods?", of_node),
          .watch_path = absl::StrCat(
              "/api/v1/pods?watch=1&allowWatchBookmarks=true&", of_node),
          .first_pause = options.first_pause,
          .longest_pause = options.longest_pause};
}

}  // namespace

absl::StatusOr<PodList> ParsePodList(absl::string_view text,
                                     absl::string_view prefix) {
  RONDO_ASSIGN_OR_RETURN(const json object, ParseObject(text));
  const json* metadata = Metadata(object);
  const auto items = object.find("items");
  // An empty list of Go is null.
  if (metadata == nullptr || items == object.end() ||
      !(items->is_array() || items->is_null()))
    return absl::InvalidArgumentError("not a list of pods");
  PodList list{.pods = {},
               .resource_version = Text(*metadata, "resourceVersion")};
  for (const json& item : *items) {
    RONDO_ASSIGN_OR_RETURN(Pod pod, FromJson(item, prefix));
    list.pods.push_back(std::move(pod));
  }
  return list;
}

absl::StatusOr<PodEvent> ParsePodEvent(absl::string_view line,
                                       absl::string_view prefix) {
  RONDO_ASSIGN_OR_RETURN(const json event, ParseObject(line));
  const std::string type = Text(event, "type");
  const auto object = event.find("object");
  if (type.empty() || object == event.end() || !object->is_object())
    return absl::InvalidArgumentError("a watch event without type or object");
  if (type == "ERROR")  // a Status object; 410 = the version is too old
    return absl::OutOfRangeError(
        absl::StrCat("watch ended: ", object->dump().substr(0, 300)));
  PodEvent result;
  if (const json* metadata = Metadata(*object))
    result.resource_version = Text(*metadata, "resourceVersion");
  if (type == "BOOKMARK") {
    result.type = PodEvent::Type::kBookmark;
    return result;
  }
  if (type == "DELETED") result.type = PodEvent::Type::kDeleted;
  RONDO_ASSIGN_OR_RETURN(result.pod, FromJson(*object, prefix));
  return result;
}

PodWatcher::PodWatcher(std::unique_ptr<ApiClient> client, Options options,
                       OnPods on_pods, OnError on_error)
    : annotation_prefix_(std::move(options.annotation_prefix)),
      on_pods_(std::move(on_pods)),
      on_error_(std::move(on_error)),
      thread_(
          std::move(client), Asked(options),
          [this](absl::string_view body) { return OnList(body); },
          [this](absl::string_view line) { return OnLine(line); },
          [this](const absl::Status& error) {
            in_doubt_ = true;
            on_error_(error);
          }) {}

absl::StatusOr<std::string> PodWatcher::OnList(absl::string_view body) {
  RONDO_ASSIGN_OR_RETURN(PodList list, ParsePodList(body, annotation_prefix_));
  pods_.clear();
  for (Pod& pod : list.pods) {
    const std::string uid = pod.uid;
    pods_[uid] = std::move(pod);
  }
  Deliver();
  return std::move(list.resource_version);
}

absl::Status PodWatcher::OnLine(absl::string_view line) {
  RONDO_ASSIGN_OR_RETURN(const PodEvent event,
                         ParsePodEvent(line, annotation_prefix_));
  if (event.type == PodEvent::Type::kBookmark) return absl::OkStatus();
  if (event.type == PodEvent::Type::kDeleted)
    pods_.erase(event.pod.uid);
  else
    pods_[event.pod.uid] = event.pod;
  Deliver();
  return absl::OkStatus();
}

void PodWatcher::Deliver() {
  std::vector<Pod> pods;
  for (const auto& [uid, pod] : pods_) pods.push_back(pod);
  if (!in_doubt_ && pods == delivered_) return;
  in_doubt_ = false;
  delivered_ = std::move(pods);
  on_pods_(delivered_);
}

}  // namespace rondo::kube
