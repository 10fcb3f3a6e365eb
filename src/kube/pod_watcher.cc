// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_watcher.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace rondo::kube {
namespace {

using nlohmann::json;

constexpr size_t kMostName = 253;
// Of a list without its pods: a version, and where it goes on.
constexpr size_t kMostRest = 1 << 20;

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
  if (std::max({pod.name_space.size(), pod.name.size(), pod.uid.size()}) >
      kMostName)
    return absl::InvalidArgumentError("a Pod of no possible name");
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

PodListReader::PodListReader(std::string prefix)
    : prefix_(std::move(prefix)),
      splitter_(ApiClient::kMostObject, kMostRest,
                [this](absl::string_view item) { return OnItem(item); }) {}

absl::Status PodListReader::OnItem(absl::string_view item) {
  if (list_.pods.size() >= kMostPods)
    return absl::ResourceExhaustedError("more pods than a node can have");
  // Nothing but these is looked at, so nothing else is built.
  const json pod = json::parse(
      item.begin(), item.end(),
      [](int depth, json::parse_event_t event, const json& key) {
        return event != json::parse_event_t::key || depth != 1 ||
               key == "metadata" || key == "status";
      },
      /*allow_exceptions=*/false);
  RONDO_ASSIGN_OR_RETURN(list_.pods.emplace_back(), FromJson(pod, prefix_));
  return absl::OkStatus();
}

absl::Status PodListReader::Add(absl::string_view bytes) {
  return splitter_.Add(bytes);
}

absl::StatusOr<PodList> PodListReader::Finish() {
  RONDO_ASSIGN_OR_RETURN(const json object, ParseObject(splitter_.rest()));
  const json* metadata = Metadata(object);
  const auto items = object.find("items");
  // An empty list of Go is null.
  if (metadata == nullptr || items == object.end() ||
      !(items->is_null() || (items->is_array() && items->empty())))
    return absl::InvalidArgumentError("not a list of pods");
  list_.resource_version = Text(*metadata, "resourceVersion");
  return std::move(list_);
}

absl::StatusOr<PodList> ParsePodList(absl::string_view text,
                                     absl::string_view prefix) {
  PodListReader reader{std::string(prefix)};
  RONDO_RETURN_IF_ERROR(reader.Add(text));
  return reader.Finish();
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

class PodWatcher::List : public ListReader {
 public:
  explicit List(PodWatcher& watcher)
      : watcher_(watcher), reader_(watcher.annotation_prefix_) {}

  absl::Status Add(absl::string_view bytes) override {
    return reader_.Add(bytes);
  }
  absl::StatusOr<std::string> Finish() override {
    RONDO_ASSIGN_OR_RETURN(PodList list, reader_.Finish());
    return watcher_.OnList(std::move(list));
  }

 private:
  PodWatcher& watcher_;
  PodListReader reader_;
};

PodWatcher::PodWatcher(std::unique_ptr<ApiClient> client, Options options,
                       OnPods on_pods, OnError on_error)
    : annotation_prefix_(std::move(options.annotation_prefix)),
      on_pods_(std::move(on_pods)),
      on_error_(std::move(on_error)),
      thread_(
          std::move(client), Asked(options),
          [this] { return std::make_unique<List>(*this); },
          [this](absl::string_view line) { return OnLine(line); },
          [this](const absl::Status& error) {
            in_doubt_ = true;
            on_error_(error);
          }) {}

std::string PodWatcher::OnList(PodList list) {
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
  else if (pods_.size() >= kMostPods && !pods_.contains(event.pod.uid))
    return absl::ResourceExhaustedError("more pods than a node can have");
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
