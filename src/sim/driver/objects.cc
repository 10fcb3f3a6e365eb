// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/objects.h"

#include <algorithm>
#include <set>
#include <utility>

namespace rondo::sim::driver {

Object::Object(Object&& other) noexcept
    : handle(other.handle),
      parent(other.parent),
      cls(other.cls),
      card(other.card),
      pid(other.pid),
      block(std::move(other.block)),
      tag(other.tag),
      exported(std::move(other.exported)),
      group(std::move(other.group)),
      channel(std::exchange(other.channel, -1)),
      memory(std::move(other.memory)),
      read_only(other.read_only),
      log(std::move(other.log)) {}

Object::~Object() {
  if (block != nullptr) {
    auto& holders = block->holders;
    const auto at = std::find(holders.begin(), holders.end(), pid);
    if (at != holders.end()) holders.erase(at);
  }
  if (group != nullptr && channel >= 0) {
    group->channels &= ~(1u << channel);
    if (group->id != kNoGroup) group->card->ResetChannel(group->id, channel);
  }
}

Object* Client::Find(uint32_t handle) {
  const auto at = objects.find(handle);
  return at == objects.end() ? nullptr : &at->second;
}

void Client::Add(Object object) {
  const uint32_t number = object.handle;
  objects.emplace(number, std::move(object));
}

void Client::Free(uint32_t handle) {
  std::vector<uint32_t> children;
  for (const auto& [child, object] : objects)
    if (object.parent == handle && child != handle) children.push_back(child);
  for (const uint32_t child : children) Free(child);
  objects.erase(handle);
}

Client* Objects::Find(uint32_t client) {
  const auto at = clients_.find(client);
  return at == clients_.end() ? nullptr : &at->second;
}

Client* Objects::FindOwn(uint32_t client, uint64_t connection) {
  Client* const found = Find(client);
  return found != nullptr && found->connection == connection ? found : nullptr;
}

uint32_t Objects::AddClient(uint32_t handle, Client client) {
  while (handle == 0)
    if (Find(++last_client_) == nullptr) handle = last_client_;
  client.handle = handle;
  return clients_.emplace(handle, std::move(client)).second ? handle : 0;
}

void Objects::CloseConnection(uint64_t connection) {
  std::erase_if(clients_, [&](const auto& entry) {
    return entry.second.connection == connection;
  });
}

std::optional<Object> Objects::Make(const Client& client, uint32_t parent,
                                    uint32_t* handle) {
  while (*handle == 0)
    if (!client.Taken(++last_handle_)) *handle = last_handle_;
  if (client.Taken(*handle)) return std::nullopt;
  Object object;
  object.handle = *handle;
  object.parent = parent;
  object.pid = client.pid;
  return object;
}

std::map<uint32_t, Objects::Usage> Objects::UsageOf(const Card& card) const {
  std::map<uint32_t, Usage> usage;
  // A block that a process holds by several handles is charged to it once.
  std::set<std::pair<const Block*, uint32_t>> seen;
  for (const auto& [handle, client] : clients_) {
    for (const auto& [ignored, object] : client.objects) {
      const Block* const block = object.block.get();
      if (block == nullptr || block->card != &card) continue;
      if (!seen.emplace(block, client.pid).second) continue;
      Usage& u = usage[client.pid];
      if (block->holders.size() == 1)
        u.private_bytes += block->bytes;
      else if (block->holders.front() == client.pid)
        u.owned_bytes += block->bytes;
      else
        u.duped_bytes += block->bytes;
    }
  }
  return usage;
}

}  // namespace rondo::sim::driver
