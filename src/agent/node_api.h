// SPDX-License-Identifier: Apache-2.0
//
// The HTTP face of the agent: /healthz, /readyz, /metrics, /api/v1/node.
//
// Handlers run on the HTTP server's thread and ask the loop for a view of the
// node: one self-consistent snapshot an answer. A loop that does not answer
// within 2 s is what /healthz reports as 503, so that kubelet restarts the
// agent.

#ifndef RONDO_AGENT_NODE_API_H_
#define RONDO_AGENT_NODE_API_H_

#include <functional>
#include <map>
#include <string>

#include "base/event_loop.h"
#include "metrics/http_server.h"
#include "metrics/node_view.h"

namespace rondo::agent {

// view: called on the loop's thread. add_readings: called on the HTTP thread,
// may block on NVML; fills what the loop must not wait for.
std::map<std::string, metrics::HttpServer::Handler> NodeRoutes(
    EventLoop& loop, std::function<metrics::NodeView()> view,
    std::function<void(metrics::NodeView&)> add_readings);

}  // namespace rondo::agent

#endif  // RONDO_AGENT_NODE_API_H_
