// SPDX-License-Identifier: Apache-2.0
//
// What programs have allocated: clients, and under each a tree of objects by
// handle. Memory and channel groups belong to their handles jointly, so the
// last one that goes frees them, whether by a call, with an ancestor, or with
// the descriptor that made the client.
//
// Threads: the caller serialises. Failure: null where a handle is not there.
// Source of the rules: driver-abi of open-gpu-kernel-modules (mem.c,
// rs_server.c, gpu_rmapi.c).

#ifndef RONDO_SIM_DRIVER_OBJECTS_H_
#define RONDO_SIM_DRIVER_OBJECTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "sim/driver/card.h"
#include "sim/driver/shared_memory.h"
#include "sim/driver/switch_log.h"

namespace rondo::sim::driver {

// Video memory. Each handle to it is a holder.
struct Block {
  Block(Card* c, uint64_t b) : card(c), bytes(b) {}
  ~Block() { card->GiveMemory(bytes); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Card* const card;
  const uint64_t bytes;
  // Pids; the first is charged. May be empty (exported).
  std::vector<uint32_t> holders;
  std::shared_ptr<SharedMemory> memory;  // once somebody maps it

  // One more handle. The driver puts it beside the handle it was made from, so
  // the charge passes on to the newest.
  void Hold(uint32_t pid) {
    holders.insert(holders.begin() + (holders.empty() ? 0 : 1), pid);
  }
};

// What a descriptor or an export object holds.
struct Exported {
  std::shared_ptr<Block> block;
  uint32_t tag = 0;
};

struct ChannelGroup {
  ~ChannelGroup() {
    if (id != kNoGroup) card->RemoveGroup(id);
  }
  Card* card = nullptr;
  GroupId id = kNoGroup;  // kNoGroup: not of the compute engine
  uint64_t slice_us = 0;
  uint32_t channels = 0;  // bit mask of those taken
  std::shared_ptr<SharedMemory> page;
};

// One handle. Move-only; its end lets go of what it holds.
struct Object {
  Object() = default;
  Object(Object&& other) noexcept;
  Object& operator=(Object&& other) = delete;
  ~Object();

  uint32_t handle = 0, parent = 0, cls = 0;
  Card* card = nullptr;
  uint32_t pid = 0;
  std::shared_ptr<Block> block;
  uint32_t tag = 0;  // of memory; copied with every handle that is made from it
  std::vector<Exported> exported;  // class 0xE0
  std::shared_ptr<ChannelGroup> group;
  int channel = -1;                      // of group
  std::shared_ptr<SharedMemory> memory;  // what mmap shows
  bool read_only = false;                // to users
  std::shared_ptr<SwitchLog> log;
};

struct Client {
  uint32_t handle = 0;
  uint64_t connection = 0;
  uint32_t pid = 0, uid = 0;
  std::map<uint32_t, Object> objects;

  Object* Find(uint32_t handle);
  bool Taken(uint32_t number) const {
    return number == handle || objects.count(number) != 0;
  }
  void Add(Object object);
  // The object and all below it.
  void Free(uint32_t handle);
};

class Objects {
 public:
  // A client of any process.
  Client* Find(uint32_t client);
  // Null if it was not made through this connection.
  Client* FindOwn(uint32_t client, uint64_t connection);
  // 0 = choose a handle. Returns 0 where the handle is taken.
  uint32_t AddClient(uint32_t handle, Client client);
  void FreeClient(uint32_t client) { clients_.erase(client); }
  void CloseConnection(uint64_t connection);
  // An object for the client, still to be filled and added. *handle: 0 = one is
  // chosen. Empty where the handle is taken.
  std::optional<Object> Make(const Client& client, uint32_t parent,
                             uint32_t* handle);

  struct Usage {
    uint64_t private_bytes = 0, owned_bytes = 0, duped_bytes = 0;
  };
  // Of each process with memory on the card.
  std::map<uint32_t, Usage> UsageOf(const Card& card) const;

 private:
  std::map<uint32_t, Client> clients_;
  uint32_t last_client_ = 0xc1d00000;
  uint32_t last_handle_ = 0xcaf00000;
};

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_OBJECTS_H_
