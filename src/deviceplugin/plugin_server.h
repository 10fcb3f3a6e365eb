// SPDX-License-Identifier: Apache-2.0
//
// Serves the DevicePlugin protocol of one resource on connections that it is
// handed. Every call is answered from the Snapshot of that moment.
//
// Threads: any, for every method; calls run on gRPC's threads. Failure: a call
// that cannot be answered fails with the reason; the server itself cannot.

#ifndef RONDO_DEVICEPLUGIN_PLUGIN_SERVER_H_
#define RONDO_DEVICEPLUGIN_PLUGIN_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "config/plan.h"
#include "deviceplugin/allocate.h"
#include "deviceplugin/prefer.h"
#include "deviceplugin/stats.h"
#include "deviceplugin/view.h"

namespace rondo::deviceplugin {

// What answers are made from. Replaced as a whole, never changed.
struct Snapshot {
  std::shared_ptr<const View> view;
  std::shared_ptr<const AllocateSettings> settings;
  std::shared_ptr<const LinkScores> links;
  config::AllocationPolicy policy = config::AllocationPolicy::kDistributed;
  // Optional; see ManagerOptions.
  std::function<void(const std::vector<std::string>&)> on_allocate;
};

class PluginServer {
 public:
  // on_streams(n): the number of open ListAndWatch streams is now n. Called on
  // a gRPC thread; must not call back into the server.
  PluginServer(Snapshot snapshot, std::function<void(int)> on_streams);
  // Ends streams and connections and waits for the calls under way.
  ~PluginServer();
  PluginServer(const PluginServer&) = delete;
  PluginServer& operator=(const PluginServer&) = delete;

  // Serves on a connected, non-blocking stream socket.
  void Adopt(UniqueFd connection);

  // Answers from this snapshot from now on, and sends its list, if it differs
  // from the last one, to every open stream. A stream that is busy gets the
  // newest list when it is free: lists in between may be skipped, the last one
  // never.
  void Publish(Snapshot snapshot);

  struct Counters {
    uint64_t lists_sent = 0;
    uint64_t devices_allocated = 0;
    RpcStats allocate;
    RpcStats preferred_allocation;
  };
  Counters counters() const;

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_PLUGIN_SERVER_H_
