// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/link_finder.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace rondo::deviceplugin {
namespace {

// NVIDIA's plugin knows no more than this.
constexpr int kMaxNvlinks = 18;

}  // namespace

int LinkScore(const nvml::Link& link) {
  return static_cast<int>(link.ancestor) +
         100 * std::min(link.nvlinks, kMaxNvlinks);
}

LinkFinder::LinkFinder(EventLoop& loop, nvml::Backend& backend,
                       std::function<void()> on_found)
    : loop_(loop), backend_(backend), on_found_(std::move(on_found)) {}

LinkFinder::~LinkFinder() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void LinkFinder::Want(std::vector<nvml::Gpu> gpus) {
  if (gpus.size() < 2 ||
      std::all_of(gpus.begin(), gpus.end(), [this](const nvml::Gpu& gpu) {
        return known_.count(gpu.uuid) > 0;
      }))
    return;
  if (searching_) {
    next_ = std::move(gpus);
    return;
  }
  searching_ = true;
  if (thread_.joinable()) thread_.join();
  thread_ = std::thread([this, gpus = std::move(gpus)] { Search(gpus); });
}

void LinkFinder::Search(const std::vector<nvml::Gpu>& gpus) {
  auto scores = std::make_shared<LinkScores>();
  std::set<std::string> uuids;
  absl::Status trouble = absl::OkStatus();
  for (size_t i = 0; i < gpus.size(); ++i) {
    uuids.insert(gpus[i].uuid);
    for (size_t j = i + 1; j < gpus.size(); ++j) {
      if (stop_) return;
      const absl::StatusOr<nvml::Link> link =
          backend_.LinkBetween(gpus[i], gpus[j]);
      if (link.ok())
        (*scores)[std::minmax(gpus[i].uuid, gpus[j].uuid)] = LinkScore(*link);
      else
        trouble = link.status();
    }
  }
  if (!trouble.ok())
    LogWarning("some links between GPUs are unknown: ", trouble.message());
  loop_.Post([this, alive = std::weak_ptr<bool>(alive_), scores, uuids] {
    if (alive.expired()) return;
    scores_ = scores;
    known_ = uuids;
    searching_ = false;
    if (!next_.empty()) Want(std::exchange(next_, {}));
    on_found_();
  });
}

}  // namespace rondo::deviceplugin
