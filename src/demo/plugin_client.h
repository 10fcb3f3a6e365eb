// SPDX-License-Identifier: Apache-2.0
//
// kubelet's side of the connection to one device plugin. Blocking calls, any
// thread; the lists come on a thread of its own.

#ifndef RONDO_DEMO_PLUGIN_CLIENT_H_
#define RONDO_DEMO_PLUGIN_CLIENT_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rondo::demo {

// What a plugin answers for one container.
struct Grant {
  std::string resource;
  std::vector<std::string> device_ids;
  std::map<std::string, std::string> envs;
  std::map<std::string, std::string> annotations;
  std::vector<std::pair<std::string, std::string>> mounts;  // container, host
  std::vector<std::string> device_paths;                    // on the host
  std::vector<std::string> cdi_devices;
};

struct ListedDevice {
  std::string id;
  bool healthy = false;
  std::vector<int> numa_nodes;
};

class PluginClient {
 public:
  PluginClient(std::string resource, std::string socket);
  // Cancels the stream and waits for its thread: not on that thread.
  ~PluginClient();
  PluginClient(const PluginClient&) = delete;
  PluginClient& operator=(const PluginClient&) = delete;

  // Connects and asks for the plugin's options.
  absl::Status Connect();
  // Once, after Connect: on_list for each list, on_end when the stream ended.
  void Watch(std::function<void(std::vector<ListedDevice>)> on_list,
             std::function<void()> on_end);
  void Cancel();

  // Errors carry Go's text for a failed call, as kubelet's events show it.
  absl::StatusOr<std::vector<std::string>> GetPreferredAllocation(
      const std::vector<std::string>& available,
      const std::vector<std::string>& required, int size);
  absl::StatusOr<Grant> Allocate(const std::vector<std::string>& ids);

  // The plugin wants GetPreferredAllocation; known after Connect.
  bool prefers() const { return prefers_; }
  const std::string& resource() const { return resource_; }
  const std::string& socket() const { return socket_; }

 private:
  struct Rpc;
  const std::string resource_;
  const std::string socket_;
  bool prefers_ = false;
  std::unique_ptr<Rpc> rpc_;
};

}  // namespace rondo::demo

#endif  // RONDO_DEMO_PLUGIN_CLIENT_H_
