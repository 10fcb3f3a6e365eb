// SPDX-License-Identifier: Apache-2.0
//
// One advertised resource as kubelet meets it: its socket, its server and its
// registration, kept alive through restarts of kubelet.
//
// On the loop's thread, unless said otherwise. Nothing here fails for good:
// what does not work is logged, counted and tried again.

#ifndef RONDO_DEVICEPLUGIN_ENDPOINT_H_
#define RONDO_DEVICEPLUGIN_ENDPOINT_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"
#include "base/event_loop.h"
#include "deviceplugin/file_identity.h"
#include "deviceplugin/listener.h"
#include "deviceplugin/plugin_server.h"
#include "deviceplugin/register_call.h"
#include "deviceplugin/stats.h"

namespace rondo::deviceplugin {

class Endpoint {
 public:
  // kubelet_socket empty: serve without registering. on_change: after
  // registered() or watched() may have changed.
  Endpoint(EventLoop& loop, std::string socket_dir, std::string kubelet_socket,
           std::string resource, Snapshot snapshot,
           std::function<void()> on_change);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  void Publish(Snapshot snapshot) { server_->Publish(std::move(snapshot)); }

  // Something happened to kubelet's socket, or to ours: look.
  void OnKubeletSocketChanged();
  void OnOwnSocketChanged();

  const std::string& socket_name() const { return socket_name_; }

  // Both from any thread.
  struct Status {
    std::string socket_path;
    bool registered = false;
    bool watched = false;
    uint64_t registrations = 0;
    uint64_t failures = 0;
  };
  Status status() const;
  PluginServer::Counters counters() const { return server_->counters(); }

 private:
  void Listen();
  void Register();
  void OnRegisterDone(const FileIdentity& kubelet, const absl::Status& status);
  void RetryAfter(MonotonicTime delay);
  void Retry();
  void OnStreams(int open);
  bool registered() const { return registered_with_.exists(); }
  // Copies state to status_ and tells on_change_.
  void Changed();

  EventLoop& loop_;
  const std::string socket_dir_;
  const std::string kubelet_socket_;
  const std::string resource_;
  const std::function<void()> on_change_;
  // Tasks posted by other threads look whether this is still there.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  std::string socket_name_;
  int alternate_ = 0;  // 0: the socket has NVIDIA's name
  std::unique_ptr<PluginServer> server_;
  std::unique_ptr<Listener> listener_;

  FileIdentity registered_with_;  // the kubelet.sock that took us
  std::unique_ptr<RegisterCall> call_;
  bool again_ = false;  // kubelet was replaced while call_ was under way
  EventLoop::TimerId timer_ = 0;
  MonotonicTime backoff_{0};
  std::string last_failure_;
  int streams_ = 0;
  uint64_t registrations_ = 0;
  uint64_t failures_ = 0;

  mutable std::mutex status_mutex_;
  Status status_;  // guarded by status_mutex_
};

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_ENDPOINT_H_
