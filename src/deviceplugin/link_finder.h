// SPDX-License-Identifier: Apache-2.0
//
// Finds how near the GPUs are to each other, once, on a thread of its own: a
// real driver takes up to half a second for each pair (#774), which must delay
// neither the start nor an allocation. On the loop's thread, but for the
// finder's own.

#ifndef RONDO_DEVICEPLUGIN_LINK_FINDER_H_
#define RONDO_DEVICEPLUGIN_LINK_FINDER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/event_loop.h"
#include "deviceplugin/prefer.h"
#include "nvml/backend.h"

namespace rondo::deviceplugin {

// Ancestor score + 100 for each NVLink, as NVIDIA's plugin counts.
int LinkScore(const nvml::Link& link);

class LinkFinder {
 public:
  LinkFinder(EventLoop& loop, nvml::Backend& backend,
             std::function<void()> on_found);
  ~LinkFinder();
  LinkFinder(const LinkFinder&) = delete;
  LinkFinder& operator=(const LinkFinder&) = delete;

  // Starts a search if some pair of these is not known yet.
  void Want(std::vector<nvml::Gpu> gpus);
  // What is known so far; never null. A pair that the driver cannot tell
  // scores 0.
  std::shared_ptr<const LinkScores> scores() const { return scores_; }

 private:
  void Search(const std::vector<nvml::Gpu>& gpus);

  EventLoop& loop_;
  nvml::Backend& backend_;
  const std::function<void()> on_found_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::shared_ptr<const LinkScores> scores_ =
      std::make_shared<const LinkScores>();
  std::set<std::string> known_;  // UUIDs whose pairs are in scores_
  std::vector<nvml::Gpu> next_;  // wanted while a search was under way
  bool searching_ = false;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_LINK_FINDER_H_
