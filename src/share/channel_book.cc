// SPDX-License-Identifier: Apache-2.0
#include "share/channel_book.h"

#include <algorithm>

namespace rondo::share {

void ChannelBook::Add(ProcessId process, const std::string& slot, int32_t pid,
                      uint64_t started) {
  reporters_[process] = {
      .slot = slot, .pid = pid, .started = started, .clients = {}};
}

void ChannelBook::Remove(ProcessId process) {
  const auto gone = reporters_.find(process);
  if (gone == reporters_.end()) return;
  for (const uint32_t client : gone->second.clients) Forget(process, client);
  Count(gone->second, 0);
  reporters_.erase(gone);
}

// It has so many now.
void ChannelBook::Count(Reporter& reporter, size_t channels) {
  size_t& all = slot_channels_[reporter.slot];
  all = all - reporter.channels + channels;
  reporter.channels = channels;
  if (all == 0) slot_channels_.erase(reporter.slot);
}

void ChannelBook::Forget(ProcessId process, uint32_t client) {
  const auto users = users_.find(client);
  if (users == users_.end()) return;
  users->second.erase(process);
  if (users->second.empty()) users_.erase(users);
}

bool ChannelBook::Same(const Reporter& a, const Reporter& b) {
  return a.pid != 0 && a.started != 0 && a.pid == b.pid &&
         a.started == b.started;
}

bool ChannelBook::MayUse(const Reporter& reporter, uint32_t client) const {
  const auto users = users_.find(client);
  if (users == users_.end()) return true;
  return std::any_of(
      users->second.begin(), users->second.end(), [&](ProcessId id) {
        const Reporter& other = reporters_.at(id);
        return other.slot == reporter.slot || Same(other, reporter);
      });
}

ChannelBook::Verdict ChannelBook::Note(ProcessId process,
                                       const wire::Channels& message,
                                       std::vector<rm::Channel>* channels) {
  Reporter& reporter = reporters_.at(process);
  if (!MayUse(reporter, message.client)) return Verdict::kForeign;
  if (reporter.clients.size() >= kMaxClients && message.gone == 0 &&
      !reporter.clients.contains(message.client))
    return Verdict::kTooMany;
  const auto slot = slot_channels_.find(reporter.slot);
  const size_t others =
      slot == slot_channels_.end() ? 0 : slot->second - reporter.channels;
  Verdict verdict = Verdict::kNoted;
  for (uint16_t i = 0; i < message.count; ++i) {
    const rm::Channel channel{message.client, message.handles[i]};
    const auto known = std::find_if(
        channels->begin(), channels->end(), [&](const rm::Channel& c) {
          return c.client == channel.client && c.handle == channel.handle;
        });
    if (message.gone != 0) {
      if (known != channels->end()) channels->erase(known);
    } else if (known == channels->end()) {
      if (channels->size() >= kMaxChannels) {
        verdict = Verdict::kTooMany;
        break;
      }
      if (others + channels->size() >= kMaxSlotChannels) {
        verdict = Verdict::kSlotFull;
        break;
      }
      channels->push_back(channel);
    }
  }
  Count(reporter, channels->size());
  const bool uses = std::any_of(
      channels->begin(), channels->end(),
      [&](const rm::Channel& c) { return c.client == message.client; });
  if (uses) {
    users_[message.client].insert(process);
    reporter.clients.insert(message.client);
  } else {
    Forget(process, message.client);
    reporter.clients.erase(message.client);
  }
  return verdict;
}

}  // namespace rondo::share
