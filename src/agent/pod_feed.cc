// SPDX-License-Identifier: Apache-2.0
#include "agent/pod_feed.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/annotations.h"
#include "base/log.h"
#include "deviceplugin/checkpoint.h"

namespace rondo::agent {
namespace {

using metrics::PodSource;
using std::chrono::steady_clock;

bool IsSlot(const std::string& id) { return absl::StrContains(id, "::"); }

bool HoldsSlots(const PodReport& report) {
  if (!report.holders) return true;  // not known: look again soon
  if (!report.recorded.empty()) return true;
  return std::any_of(report.holders->begin(), report.holders->end(),
                     [](const kube::DeviceHolder& holder) {
                       return !holder.device_ids.empty();
                     });
}

}  // namespace

PodFeed::PodFeed(Options options, OnReport on_report)
    : options_(std::move(options)),
      on_report_(std::move(on_report)),
      kubelet_(options_.kubelet),
      thread_([this] { Run(); }) {}

PodFeed::~PodFeed() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  kubelet_.Cancel();
  changed_.notify_all();
  thread_.join();
}

uint64_t PodFeed::Poke() {
  std::lock_guard lock(mutex_);
  asked_ = true;
  changed_.notify_all();
  return ++number_;
}

void PodFeed::Run() {
  bool first = true;
  uint64_t number = 0;
  auto poked = steady_clock::now();
  std::chrono::milliseconds pause = options_.after_poke;
  while (true) {
    {
      std::lock_guard lock(mutex_);
      if (stop_) break;
      asked_ = false;
      if (number_ != number) {
        number = number_;
        poked = steady_clock::now();
        pause = options_.after_poke;
      }
    }
    const PodReport report = Collect(number);
    std::unique_lock lock(mutex_);
    if (stop_) break;
    lock.unlock();
    if (first || report != last_) {
      Log(report);
      last_ = report;
      first = false;
      on_report_(report);
    }
    const bool idle = !HoldsSlots(report) &&
                      steady_clock::now() - poked > options_.idle_after;
    lock.lock();
    changed_.wait_for(lock, idle ? options_.idle_period : pause,
                      [this] { return stop_ || asked_; });
    pause = std::min(pause * 2, options_.period);
  }
  watcher_.reset();
}

PodReport PodFeed::Collect(uint64_t number) {
  PodReport report;
  report.number = number;
  auto holders = kubelet_.ListHolders();
  if (holders.ok()) {
    // Of other plugins' devices there may be many, and they do not matter here.
    for (kube::DeviceHolder& holder : *holders)
      std::erase_if(holder.device_ids,
                    [](const std::string& id) { return !IsSlot(id); });
    std::erase_if(*holders, [](const kube::DeviceHolder& holder) {
      return holder.device_ids.empty();
    });
    report.holders = *std::move(holders);
  } else {
    report.holders_problem = std::string(holders.status().message());
  }
  CollectPods(report);
  if (report.holders) CollectRecorded(report);
  return report;
}

void PodFeed::CollectRecorded(PodReport& report) {
  // Without pods there is nobody to take settings from.
  if (options_.device_plugin_dir.empty() || report.pods.empty()) return;
  const auto entries =
      deviceplugin::ReadCheckpointEntries(options_.device_plugin_dir);
  const std::string problem(entries.status().message());
  if (problem != checkpoint_problem_ && !entries.ok())
    LogWarning("pods: annotations have no effect on init containers: ",
               problem);
  checkpoint_problem_ = problem;
  if (!entries.ok()) return;
  // kubelet forgets pods that have ended only when it allocates again.
  std::set<std::string> live;
  for (const kube::Pod& pod : report.pods)
    if (!pod.ended) live.insert(pod.uid);
  for (const deviceplugin::CheckpointEntry& entry : *entries) {
    if (!live.contains(entry.pod_uid)) continue;
    kube::DeviceHolder holder{.name_space = "",
                              .pod = "",
                              .uid = entry.pod_uid,
                              .container = entry.container,
                              .resource = entry.resource,
                              .device_ids = {}};
    for (const std::string& id : entry.ids)
      if (IsSlot(id)) holder.device_ids.push_back(id);
    if (!holder.device_ids.empty())
      report.recorded.push_back(std::move(holder));
  }
}

void PodFeed::CollectPods(PodReport& report) {
  auto pods = kubelet_.ListPods(kAnnotationPrefix);
  if (!pods.ok()) return AskApiServer(pods.status(), report);
  report.source = PodSource::kPodsApi;
  report.pods = *std::move(pods);
  if (watcher_ == nullptr) return;
  watcher_.reset();
  std::lock_guard lock(mutex_);
  api_pods_.reset();
  api_status_ = absl::OkStatus();
}

void PodFeed::AskApiServer(const absl::Status& kubelet, PodReport& report) {
  StartWatcher();
  std::lock_guard lock(mutex_);
  if (api_pods_) {
    report.source = PodSource::kApiServer;
    report.pods = *api_pods_;
    report.pods_problem = std::string(api_status_.message());
  } else if (!api_status_.ok()) {
    report.pods_problem =
        absl::StrCat("kubelet's Pods API: ", kubelet.message(),
                     "; API server: ", api_status_.message());
  } else {
    // The API server has not answered yet.
    report.source = last_.source;
    report.pods = last_.pods;
    report.pods_problem = last_.pods_problem;
  }
}

void PodFeed::StartWatcher() {
  if (watcher_ != nullptr) return;
  absl::Status status = options_.api_server.status();
  if (status.ok() && options_.node_name.empty())
    status = absl::NotFoundError(
        "the name of this node is not known "
        "(--node-name)");
  if (status.ok()) {
    auto client = kube::ApiClient::Create(*options_.api_server);
    status = client.status();
    if (client.ok())
      watcher_ = std::make_unique<kube::PodWatcher>(
          *std::move(client),
          kube::PodWatcher::Options{.node_name = options_.node_name,
                                    .annotation_prefix = kAnnotationPrefix},
          [this](const std::vector<kube::Pod>& pods) {
            std::lock_guard lock(mutex_);
            api_pods_ = pods;
            api_status_ = absl::OkStatus();
            asked_ = true;
            changed_.notify_all();
          },
          [this](const absl::Status& error) {
            std::lock_guard lock(mutex_);
            api_status_ = error;
            asked_ = true;
            changed_.notify_all();
          });
  }
  std::lock_guard lock(mutex_);
  if (!status.ok()) api_status_ = status;
}

void PodFeed::Log(const PodReport& report) const {
  if (report.holders_problem != last_.holders_problem) {
    if (report.holders)
      LogInfo("pods: kubelet tells again who holds which slot");
    else
      LogWarning("pods: who holds which slot is not known, so annotations of ",
                 "new pods have no effect: ", report.holders_problem);
  }
  if (report.source == last_.source &&
      report.pods_problem == last_.pods_problem)
    return;
  switch (report.source) {
    case PodSource::kPodsApi:
      LogInfo("pods: annotations are read from kubelet's Pods API");
      return;
    case PodSource::kApiServer:
      if (report.pods_problem.empty())
        LogInfo("pods: annotations are read from the API server");
      else
        LogWarning("pods: annotations are as last read from the API server: ",
                   report.pods_problem);
      return;
    case PodSource::kNone:
      LogWarning("pods: annotations cannot be read, so changes of them have ",
                 "no effect: ", report.pods_problem);
  }
}

}  // namespace rondo::agent
