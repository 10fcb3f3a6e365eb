// SPDX-License-Identifier: Apache-2.0
//
// Keeps the link to the config that the node's label names, and tells the
// process that reads it. The link never points at nothing: it is replaced in
// one step and only by a link to a file that could be read; where that file
// leaves its folder later, the link goes to a copy beside it.
//
// Threads: one event loop on the caller's thread; a node watcher posts to it.

#ifndef RONDO_CONFIGMANAGER_MANAGER_H_
#define RONDO_CONFIGMANAGER_MANAGER_H_

#include <memory>

#include "absl/status/status.h"
#include "configmanager/options.h"
#include "kube/api_client.h"

namespace rondo::configmanager {

class Manager {
 public:
  Manager(Options options, kube::ApiClient::Options api_server);
  ~Manager();

  // Oneshot: until the first link is made (OK); a signal before is Cancelled.
  // Else until SIGTERM, SIGINT or SIGQUIT (OK). A label or default that names
  // no config ends both (NotFound), as it ends NVIDIA's; an API server that
  // does not answer is waited for. Blocks the signals named above in the
  // calling thread; call it before other threads start.
  absl::Status Run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rondo::configmanager

#endif  // RONDO_CONFIGMANAGER_MANAGER_H_
