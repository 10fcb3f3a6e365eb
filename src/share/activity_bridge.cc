// SPDX-License-Identifier: Apache-2.0
#include "share/activity_bridge.h"

#include <chrono>
#include <string>
#include <utility>

namespace rondo::share {

ActivityBridge::ActivityBridge(EventLoop& loop, rm::System& system,
                               Share& share, activity::Feed::OpenNvml open_nvml,
                               const activity::Feed::Options& options)
    : share_(share),
      feed_(
          loop, system, std::move(open_nvml),
          [&share](const std::string& uuid, const activity::Usage& usage) {
            share.OnActivity(uuid, usage);
          },
          options) {
  share_.OnSampleRate(
      [this](const std::string& uuid, std::chrono::microseconds interval) {
        feed_.SetInterval(uuid, interval);
      });
}

ActivityBridge::~ActivityBridge() { share_.OnSampleRate({}); }

}  // namespace rondo::share
