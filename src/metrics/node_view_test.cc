// SPDX-License-Identifier: Apache-2.0
#include "metrics/node_view.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace rondo::metrics {
namespace {

using testing::HasSubstr;

NodeView ExampleNode() {
  NodeView node;
  node.node_name = "n1";
  node.ready = true;
  node.config.generation = 2;
  node.config.hash = "00ff";
  node.config.origin = "/etc/rondo/config/any";
  node.config.in_force_json = R"({"version":"v1"})";
  node.config.accepted = 2;
  node.config.refusals = 1;
  node.config.refused = RefusedConfig{.origin = "/etc/rondo/config/any",
                                      .error = "line 3: no",
                                      .unix_seconds = 5};
  deviceplugin::ResourceStats resource;
  resource.name = "nvidia.com/gpu";
  resource.healthy = 4;
  resource.unhealthy = 3;
  resource.retired = 1;
  resource.registered = resource.watched = true;
  resource.allocate.durations.Observe(0.0004);
  resource.allocate.errors = 1;
  resource.devices.push_back({.uuid = "GPU-a",
                              .gpu_uuid = "GPU-a",
                              .index = "0",
                              .name = "A\xff",
                              .replicas = 4,
                              .healthy = false,
                              .unhealthy_reason = "Xid 79"});
  node.plugin.resources.push_back(resource);
  node.gpus.push_back({.gpu = {.index = 0, .uuid = "GPU-a"}});
  return node;
}

TEST(RenderPrometheus, ShowsTheWholeNode) {
  const std::string text = RenderPrometheus(ExampleNode());
  for (const char* line :
       {"rondo_ready 1\n", "rondo_config_generation 2\n",
        "rondo_config_info{hash=\"00ff\",origin=\"/etc/rondo/config/any\"} 1\n",
        "rondo_config_reloads_total{result=\"refused\"} 1\n",
        "rondo_config_refused 1\n",
        "rondo_devices{resource=\"nvidia.com/gpu\",health=\"healthy\"} 4\n",
        "rondo_devices{resource=\"nvidia.com/gpu\",health=\"unhealthy\"} 2\n",
        "rondo_devices{resource=\"nvidia.com/gpu\",health=\"retired\"} 1\n",
        "rondo_device_healthy{resource=\"nvidia.com/gpu\",uuid=\"GPU-a\",gpu="
        "\"0\"} 0\n",
        "rondo_rpc_duration_seconds_bucket{resource=\"nvidia.com/gpu\",method="
        "\"Allocate\",le=\"0.0005\"} 1\n",
        "rondo_rpc_errors_total{resource=\"nvidia.com/gpu\",method="
        "\"Allocate\"} 1\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(RenderNodeJson, IsJsonWhateverTheNamesHold) {
  const auto json = nlohmann::json::parse(RenderNodeJson(ExampleNode()));
  EXPECT_EQ(json["resources"][0]["capacity"], 7);
  EXPECT_EQ(json["resources"][0]["allocatable"], 4);
  EXPECT_EQ(json["resources"][0]["devices"][0]["unhealthyReason"], "Xid 79");
  EXPECT_EQ(json["config"]["refused"]["error"], "line 3: no");
  EXPECT_EQ(json["config"]["inForce"]["version"], "v1");
  EXPECT_TRUE(json["gpus"][0]["memoryUsedBytes"].is_null()) << "unknown";
  EXPECT_TRUE(json["notReadyReason"].is_null());
}

}  // namespace
}  // namespace rondo::metrics
