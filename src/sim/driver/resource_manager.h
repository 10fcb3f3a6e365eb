// SPDX-License-Identifier: Apache-2.0
//
// The simulated kernel driver's answers to ioctl: escapes and controls, as an
// NVIDIA driver of the node's version gives them, for the part of the interface
// that CUDA programs and Rondo use. What it does not know it refuses with the
// status a real driver has for that (invalid class, not supported), never with
// a made-up success.
//
// Threads: the caller serialises. Failure: in the argument's status field, as
// the driver's; Answer::error is the errno of the system call itself.

#ifndef RONDO_SIM_DRIVER_RESOURCE_MANAGER_H_
#define RONDO_SIM_DRIVER_RESOURCE_MANAGER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rm/abi.h"
#include "sim/driver/bytes.h"
#include "sim/driver/card.h"
#include "sim/driver/objects.h"

namespace rondo::sim::driver {

// Who calls: the connection that stands for its descriptor, and its process in
// the pid namespace of the driver.
struct Caller {
  uint64_t connection = 0;
  uint32_t pid = 0, uid = 0;
};

struct Answer {
  int error = 0;
  int64_t delay_ns = 0;  // what the call takes, in simulated time
};

class ResourceManager {
 public:
  // cards and doorbell outlive it. lacks: controls that it does not have.
  ResourceManager(std::vector<Card*> cards, std::string driver_version,
                  std::shared_ptr<SharedMemory> doorbell,
                  std::set<uint32_t> lacks = {});

  // other: the connection that stands for the descriptor which the call names;
  // 0 = none.
  Answer Escape(const Caller& caller, uint32_t nr, Bytes arg, Bytes params,
                uint64_t other);
  // What mmap of the connection's descriptor shows. Null: nothing.
  std::shared_ptr<SharedMemory> Mapping(uint64_t connection) const;
  // The last holder of the descriptor closed it.
  void CloseConnection(uint64_t connection);

  Objects* objects() { return &objects_; }

 private:
  // One handler a control; size 0: the handler looks at the size itself.
  struct Call {
    const Caller& caller;
    Client* client;
    Object* object;
    Bytes params;
    uint64_t other;
    int64_t delay_ns = 0;
  };
  using Handler = uint32_t (ResourceManager::*)(Call*);
  struct Control {
    uint32_t cmd, cls, size;
    Handler handler;
  };
  static const Control* FindControl(uint32_t cmd);
  struct Descriptor {
    std::shared_ptr<SharedMemory> mapping;
    std::vector<Exported> exported;
  };
  struct AllocCall {
    uint32_t client, parent, handle, cls;
  };

  uint32_t Alloc(const Caller& caller, AllocCall* call, Bytes params);
  uint32_t AllocClient(const Caller& caller, AllocCall* call, Bytes params);
  uint32_t Fill(const Client& client, Object* object, const Object* parent,
                Bytes params);
  uint32_t FillMemory(Object* object, const Object* parent, Bytes params);
  uint32_t FillGroup(const Client& client, Object* object, const Object* parent,
                     uint32_t engine_type);
  uint32_t FillChannel(const Client& client, Object* object,
                       const Object* parent, Bytes params);
  uint32_t FillLog(Client* client, Object* object, Bytes params);
  uint32_t TakeBlock(Object* object, Card* card, uint64_t bytes);
  uint32_t Free(const Caller& caller, const rm::FreeArg& arg);
  uint32_t Dup(const Caller& caller, rm::DupArg* arg);
  uint32_t Map(const Caller& caller, const rm::MapMemoryArg& arg,
               uint64_t descriptor);
  uint32_t VidHeap(const Caller& caller, Bytes arg);
  uint32_t RunControl(const Caller& caller, const rm::ControlArg& arg,
                      Bytes params, uint64_t other, int64_t* delay_ns);

  // controls.cc
  uint32_t SetTimeslice(Call* call);
  uint32_t GetTimeslice(Call* call);
  uint32_t Preempt(Call* call);
  uint32_t Nothing(Call* call);
  uint32_t DisableChannels(Call* call);
  uint32_t FbInfo(Call* call);
  uint32_t FbInfoList(Call* call);
  uint32_t Gid(Call* call);
  uint32_t PidInfo(Call* call);
  uint32_t SetTag(Call* call);
  uint32_t GetTag(Call* call);
  uint32_t SurfaceInfoList(Call* call);
  uint32_t BindLog(Call* call);
  uint32_t EnableLog(Call* call);
  uint32_t UpdateLogGet(Call* call);
  uint32_t FlushLog(Call* call);
  uint32_t ExportOne(Call* call);
  uint32_t ImportOne(Call* call);
  uint32_t ExportMany(Call* call);
  uint32_t ImportMany(Call* call);
  uint32_t ExportMemory(Call* call);
  uint32_t ImportBlock(Call* call, uint32_t parent, uint32_t* handle,
                       const Exported& from);

  const std::vector<Card*> cards_;
  const std::string version_;
  const std::set<uint32_t> lacks_;
  int major_ = 0;
  const std::shared_ptr<SharedMemory> doorbell_;
  // Before objects_: a block in a descriptor may be the last of its kind, too.
  std::map<uint64_t, Descriptor> descriptors_;
  Objects objects_;
};

// Statuses beyond those of rm/abi.h (nvstatuscodes.h).
inline constexpr uint32_t kInsertDuplicate = 0x19;
inline constexpr uint32_t kInsufficientResources = 0x1a;
inline constexpr uint32_t kInsufficientPermissions = 0x1b;
inline constexpr uint32_t kInvalidChannel = 0x21;
inline constexpr uint32_t kInvalidClass = 0x22;
inline constexpr uint32_t kInvalidDevice = 0x26;
inline constexpr uint32_t kInvalidParent = 0x36;
inline constexpr uint32_t kObjectNotFound = 0x57;

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_RESOURCE_MANAGER_H_
