// SPDX-License-Identifier: Apache-2.0
//
// A driver for tests, behind rm::System: one process, some GPUs, channels that
// can be suspended, bytes per pid, a context-switch ring. Thread-safe; set the
// public fields before use or under `mutex`.

#ifndef RONDO_RM_TEST_DRIVER_H_
#define RONDO_RM_TEST_DRIVER_H_

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "rm/abi.h"
#include "rm/control.h"
#include "rm/system.h"

namespace rondo::rm {

class TestDriver : public System {
 public:
  std::mutex mutex;
  std::string version = "580.159.04";
  bool absent = false;
  std::vector<std::string> uuids = {"GPU-0"};
  std::map<std::pair<uint32_t, uint32_t>, int> suspended;  // how often
  std::map<uint32_t, uint64_t> pid_bytes;
  // Answers 0x2080110B; empty: success, recorded in `suspended`.
  std::function<uint32_t(const DisableChannelsParams&)> on_switch;
  // Before 0x2080110B does anything, with the index of its GPU; it may wait.
  std::function<void(uint32_t gpu)> before_switch;
  std::vector<uint32_t> switch_counts;  // channels of each call
  uint32_t bind_status = kOk;
  uint32_t flush_status = kOk;
  EventHeader ring_header{};
  std::vector<SwitchRecord> ring;
  std::function<void()> on_flush;

  absl::StatusOr<UniqueFd> Open(const std::string& path) override {
    std::lock_guard lock(mutex);
    const bool control = absl::EndsWith(path, "/nvidiactl");
    bool known = control;
    for (size_t i = 0; i < uuids.size(); ++i)
      known |= absl::EndsWith(path, "/nvidia" + std::to_string(i));
    if (absent || !known) return absl::NotFoundError(path);
    return UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC));
  }

  absl::Status Ioctl(int, uint32_t request, void* argument) override {
    std::unique_lock lock(mutex);
    switch (RequestNr(request)) {
      case kEscCheckVersion:
        strncpy(static_cast<VersionArg*>(argument)->version, version.c_str(),
                sizeof(VersionArg::version) - 1);
        break;
      case kEscAlloc:
        Alloc(*static_cast<AllocArg*>(argument));
        break;
      case kEscControl: {
        auto& arg = *static_cast<ControlArg*>(argument);
        if (arg.cmd == kCtrlEventFlush && flush_status != kOk) {
          arg.status = flush_status;
          break;
        }
        if (arg.cmd == kCtrlEventFlush && on_flush) {
          const auto flush = on_flush;
          lock.unlock();
          flush();
          return absl::OkStatus();
        }
        if (arg.cmd == kCtrlDisableChannels && before_switch) {
          const uint32_t gpu = gpu_of_[{arg.client, arg.object}];
          lock.unlock();
          before_switch(gpu);
          lock.lock();
        }
        arg.status = Control(arg);
        break;
      }
      case kEscMapMemory:
        mapped_ = static_cast<MapMemoryArg*>(argument)->memory;
        break;
      default:
        break;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<const void*> Map(int, size_t bytes) override {
    std::lock_guard lock(mutex);
    if (bytes == 4096) return &ring_header;
    ring.resize(bytes / sizeof(SwitchRecord));
    return ring.data();
  }
  void Unmap(const void*, size_t) override {}

  bool IsSuspended(uint32_t client, uint32_t channel) {
    std::lock_guard lock(mutex);
    const auto found = suspended.find({client, channel});
    return found != suspended.end() && found->second > 0;
  }

 private:
  void Alloc(AllocArg& arg) {
    arg.status = kOk;
    if (arg.cls == kClassRootClient) {
      arg.handle = ++last_client_;
    } else if (arg.cls == kClassDevice) {
      uint32_t id;
      memcpy(&id, reinterpret_cast<void*>(arg.params), sizeof(id));
      if (id >= uuids.size()) arg.status = kInvalidArgument;
      gpu_of_[{arg.client, arg.handle}] = id;
    } else if (arg.cls == kClassSubdevice) {
      gpu_of_[{arg.client, arg.handle}] = gpu_of_[{arg.client, arg.parent}];
    }
  }

  uint32_t Control(const ControlArg& arg) {
    void* params = reinterpret_cast<void*>(arg.params);
    switch (arg.cmd) {
      case kCtrlGetGid: {
        auto& gid = *static_cast<GidParams*>(params);
        strncpy(gid.data, uuids[gpu_of_[{arg.client, arg.object}]].c_str(),
                sizeof(gid.data) - 1);
        return kOk;
      }
      case kCtrlDisableChannels: {
        const auto& p = *static_cast<DisableChannelsParams*>(params);
        switch_counts.push_back(p.count);
        const uint32_t status = on_switch ? on_switch(p) : uint32_t{kOk};
        for (uint32_t i = 0; status == kOk && i < p.count; ++i) {
          int& count = suspended[{p.clients[i], p.channels[i]}];
          count = p.disable != 0 ? count + 1 : std::max(0, count - 1);
        }
        return status;
      }
      case kCtrlPidInfo: {
        auto& p = *static_cast<PidInfoParams*>(params);
        for (uint32_t i = 0; i < p.count; ++i)
          p.list[i].private_bytes = pid_bytes[p.list[i].pid];
        return kOk;
      }
      case kCtrlBindFecs:
        return bind_status;
      case kCtrlEventUpdateGet:
        ring_header.get =
            static_cast<EventUpdateGetParams*>(params)->record_get;
        return kOk;
      case kCtrlEventEnable:
      case kCtrlEventFlush:
        return kOk;
      default:
        return kNotSupported;
    }
  }

  uint32_t last_client_ = 0xc1d00000;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> gpu_of_;  // client, object
  uint32_t mapped_ = 0;
};

}  // namespace rondo::rm

#endif  // RONDO_RM_TEST_DRIVER_H_
