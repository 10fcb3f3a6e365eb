// SPDX-License-Identifier: Apache-2.0
#include "agent/node_api.h"

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "metrics/prometheus.h"

namespace rondo::agent {
namespace {

using metrics::HttpResponse;
using metrics::NodeView;

constexpr std::chrono::seconds kPatience{2};

// The view as of now; empty where the loop is stuck.
std::optional<NodeView> Ask(EventLoop& loop,
                            const std::function<NodeView()>& view) {
  // Shared: the task may run after this caller has given up.
  auto promise = std::make_shared<std::promise<NodeView>>();
  std::future<NodeView> answer = promise->get_future();
  loop.Post([promise, view] { promise->set_value(view()); });
  if (answer.wait_for(kPatience) != std::future_status::ready)
    return std::nullopt;
  return answer.get();
}

HttpResponse Stuck() {
  return {.code = 503, .body = "the agent's loop does not answer\n"};
}

}  // namespace

std::map<std::string, metrics::HttpServer::Handler> NodeRoutes(
    EventLoop& loop, std::function<NodeView()> view,
    std::function<void(NodeView&)> add_readings) {
  auto with_view = [&loop, view = std::move(view)](
                       std::function<HttpResponse(NodeView&)> respond) {
    return [&loop, view, respond = std::move(respond)] {
      std::optional<NodeView> node = Ask(loop, view);
      return node ? respond(*node) : Stuck();
    };
  };
  return {
      {"/healthz",
       with_view([](NodeView&) { return HttpResponse{.body = "ok\n"}; })},
      {"/readyz", with_view([](NodeView& node) {
         if (node.ready) return HttpResponse{.body = "ok\n"};
         return HttpResponse{.code = 503, .body = node.not_ready_reason + "\n"};
       })},
      {"/metrics", with_view([](NodeView& node) {
         return HttpResponse{.content_type = metrics::kPrometheusContentType,
                             .body = metrics::RenderPrometheus(node)};
       })},
      {"/api/v1/node",
       with_view([add_readings = std::move(add_readings)](NodeView& node) {
         add_readings(node);
         return HttpResponse{.content_type = "application/json",
                             .body = metrics::RenderNodeJson(node)};
       })},
  };
}

}  // namespace rondo::agent
