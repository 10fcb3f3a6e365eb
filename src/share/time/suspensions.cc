// SPDX-License-Identifier: Apache-2.0
#include "share/time/suspensions.h"

#include <algorithm>

namespace rondo::share {

void Suspensions::Note(bool suspend, ProcessId process,
                       const std::vector<rm::Channel>& channels) {
  std::set<Key>& held = held_[process];
  for (const rm::Channel& channel : channels) {
    const Key key{channel.client, channel.handle};
    if (suspend)
      held.insert(key);
    else
      held.erase(key);
  }
}

absl::Status Suspensions::SwitchOne(bool suspend, ProcessId process,
                                    const std::vector<rm::Channel>& channels,
                                    const Call& call) {
  absl::Status result;
  for (size_t from = 0; from < channels.size(); from += rm::kMostChannels) {
    const size_t to = std::min(channels.size(), from + rm::kMostChannels);
    const std::vector<rm::Channel> part(channels.begin() + from,
                                        channels.begin() + to);
    const absl::Status status = call(suspend, part);
    if (status.ok()) Note(suspend, process, part);
    result.Update(status);
  }
  return result;
}

std::map<ProcessId, absl::Status> Suspensions::Switch(bool suspend,
                                                      const Channels& channels,
                                                      const Call& call) {
  std::map<ProcessId, absl::Status> results;
  std::vector<rm::Channel> all;
  for (const auto& [process, list] : channels) {
    std::set<Key>& held = held_[process];
    std::vector<rm::Channel> again;
    std::set<Key> kept;
    for (const rm::Channel& channel : list) {
      if (!held.contains({channel.client, channel.handle})) continue;
      kept.insert({channel.client, channel.handle});
      again.push_back(channel);
    }
    held = std::move(kept);
    // Whoever cannot be resumed must not be suspended a second time either.
    absl::Status ready;
    if (suspend) ready = SwitchOne(/*suspend=*/false, process, again, call);
    results[process] = ready;
    if (ready.ok()) all.insert(all.end(), list.begin(), list.end());
  }
  const bool together =
      all.size() <= rm::kMostChannels && call(suspend, all).ok();
  for (auto& [process, result] : results) {
    if (!result.ok()) continue;
    const std::vector<rm::Channel>& list = channels.at(process);
    if (together)
      Note(suspend, process, list);
    else
      result = SwitchOne(suspend, process, list, call);
  }
  return results;
}

}  // namespace rondo::share
