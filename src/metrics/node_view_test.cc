// SPDX-License-Identifier: Apache-2.0
#include "metrics/node_view.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace rondo::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

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
  share::SlotStats slot;
  slot.slot = "GPU-a::1";
  slot.gpu_uuid = "GPU-a";
  slot.limit_bytes = 2048;
  slot.enforced = true;
  slot.device_bytes = 1024;
  slot.denials = 3;
  slot.cls = "batch";
  slot.weight = 2;
  slot.slice_us = 2000;
  slot.suspensions = 4;
  slot.escapes = 2;
  slot.refused_messages = 6;
  slot.governed = false;
  slot.reason = "HMM is on";
  slot.processes.push_back({.pid = 7, .device_bytes = 1024});
  node.sharing.on = true;
  node.sharing.stats.slots.push_back(slot);
  slot.slot = "GPU-a::2";
  slot.audit_difference_bytes = 100;
  slot.audit_alarms = 1;
  slot.governed = true;
  slot.reason = "";
  node.sharing.stats.slots.push_back(slot);
  node.sharing.pods.holders_known = true;
  node.sharing.pods.source = PodSource::kApiServer;
  node.sharing.pods.slots["GPU-a::2"] = {
      .name_space = "ml", .name = "train", .uid = "", .container = "main"};
  node.sharing.pods.invalid.push_back({.name_space = "ml",
                                       .pod = "train",
                                       .key = "rondo/weight",
                                       .value = "\xff",
                                       .message = "no"});
  node.sharing.stats.gpus.push_back({.uuid = "GPU-a"});
  node.sharing.stats.gpus.push_back({.uuid = "GPU-b"});
  node.sharing.foreign.push_back(
      {.gpu_uuid = "GPU-a",
       .processes = {{.pid = 5, .name = "x", .memory_bytes = 100},
                     {.pid = 6, .name = "", .memory_bytes = 200}},
       .gpu_seconds = 2.5});
  node.sharing.foreign.push_back(
      {.gpu_uuid = "GPU-c", .processes = {{.pid = 7}}});
  node.gpus.push_back({.gpu = {.index = 0, .uuid = "GPU-a"}});
  return node;
}

TEST(RenderPrometheus, ShowsTheWholeNode) {
  const std::string text = RenderPrometheus(ExampleNode());
  for (const char* line :
       {"rondo_ready 1\n",
        "rondo_config_generation 2\n",
        "rondo_config_info{hash=\"00ff\",origin=\"/etc/rondo/config/any\"} 1\n",
        "rondo_config_reloads_total{result=\"refused\"} 1\n",
        "rondo_config_refused 1\n",
        "rondo_devices{resource=\"nvidia.com/gpu\",health=\"healthy\"} 4\n",
        "rondo_devices{resource=\"nvidia.com/gpu\",health=\"unhealthy\"} 2\n",
        "rondo_devices{resource=\"nvidia.com/gpu\",health=\"retired\"} 1\n",
        "rondo_device_healthy{resource=\"nvidia.com/gpu\",uuid=\"GPU-a\",gpu="
        "\"0\"} 0\n",
        "rondo_sharing_problem 0\n",
        "rondo_slot_memory_limit_bytes{slot=\"GPU-a::1\"} 2048\n",
        "rondo_slot_memory_used_bytes{slot=\"GPU-a::2\",namespace=\"ml\",pod="
        "\"train\",container=\"main\"} 1024\n",
        "rondo_slot_weight{slot=\"GPU-a::2\",namespace=\"ml\",pod=\"train\","
        "container=\"main\",class=\"batch\"} 2\n",
        "rondo_slot_time_limit{slot=\"GPU-a::1\"} 1\n",
        "rondo_slot_holders_known 1\n",
        "rondo_annotation_source{source=\"api-server\"} 1\n",
        "rondo_annotation_source{source=\"none\"} 0\n",
        "rondo_annotations_invalid 1\n",
        "rondo_slot_memory_enforced{slot=\"GPU-a::1\"} 1\n",
        "rondo_slot_memory_used_bytes{slot=\"GPU-a::1\"} 1024\n",
        "rondo_slot_memory_denials_total{slot=\"GPU-a::1\"} 3\n",
        "rondo_slot_weight{slot=\"GPU-a::1\",class=\"batch\"} 2\n",
        "rondo_slot_time_slice_seconds{slot=\"GPU-a::1\"} 0.002\n",
        "rondo_slot_suspensions_total{slot=\"GPU-a::1\"} 4\n",
        "rondo_slot_suspension_escapes_total{slot=\"GPU-a::1\"} 2\n",
        "rondo_slot_refused_messages_total{slot=\"GPU-a::1\"} 6\n",
        "rondo_gpu_foreign_processes{uuid=\"GPU-a\"} 2\n",
        "rondo_gpu_foreign_memory_bytes{uuid=\"GPU-a\"} 300\n",
        "rondo_gpu_foreign_seconds_total{uuid=\"GPU-a\"} 2.5\n",
        "rondo_gpu_foreign_processes{uuid=\"GPU-c\"} 1\n",
        "rondo_slot_governed{slot=\"GPU-a::1\"} 0\n",
        "rondo_slot_governed{slot=\"GPU-a::2\",namespace=\"ml\",pod=\"train\","
        "container=\"main\"} 1\n",
        "rondo_slot_audit_difference_bytes{slot=\"GPU-a::2\",namespace=\"ml\","
        "pod=\"train\",container=\"main\"} 100\n",
        "rondo_slot_audit_alarms_total{slot=\"GPU-a::1\"} 0\n",
        "rondo_slot_audit_alarms_total{slot=\"GPU-a::2\",namespace=\"ml\",pod="
        "\"train\",container=\"main\"} 1\n",
        "rondo_slot_processes{slot=\"GPU-a::1\"} 1\n",
        "rondo_rpc_duration_seconds_bucket{resource=\"nvidia.com/gpu\",method="
        "\"Allocate\",le=\"0.0005\"} 1\n",
        "rondo_rpc_errors_total{resource=\"nvidia.com/gpu\",method="
        "\"Allocate\"} 1\n"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, Not(HasSubstr("audit_difference_bytes{slot=\"GPU-a::1")))
      << "not known";
  EXPECT_THAT(text, Not(HasSubstr("foreign_memory_bytes{uuid=\"GPU-c\"}")))
      << "one of them is not known";
  EXPECT_THAT(text, Not(HasSubstr("foreign_seconds_total{uuid=\"GPU-c\"}")));
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
  const auto& slot = json["sharing"]["slots"][0];
  EXPECT_EQ(slot["memoryLimitBytes"], 2048);
  EXPECT_EQ(slot["memoryUsedBytes"], 1024);
  EXPECT_EQ(slot["reason"], "HMM is on");
  EXPECT_EQ(slot["processes"][0]["pid"], 7);
  EXPECT_TRUE(slot["auditDifferenceBytes"].is_null()) << "unknown";
  EXPECT_TRUE(slot["pod"].is_null()) << "nobody's";
  const auto& held = json["sharing"]["slots"][1]["pod"];
  EXPECT_EQ(held["namespace"], "ml");
  EXPECT_EQ(held["name"], "train");
  EXPECT_TRUE(held["uid"].is_null()) << "unknown";
  EXPECT_EQ(held["container"], "main");
  EXPECT_EQ(json["sharing"]["slots"][1]["auditDifferenceBytes"], 100);
  EXPECT_EQ(json["sharing"]["slots"][1]["auditAlarms"], 1);
  EXPECT_TRUE(json["sharing"]["slots"][1]["governed"]);
  const auto& foreign = json["sharing"]["gpus"][0]["foreignProcesses"];
  ASSERT_EQ(foreign.size(), 2u);
  EXPECT_EQ(foreign[0]["pid"], 5);
  EXPECT_EQ(foreign[0]["name"], "x");
  EXPECT_TRUE(foreign[1]["name"].is_null());
  EXPECT_EQ(foreign[1]["memoryBytes"], 200);
  EXPECT_TRUE(json["sharing"]["gpus"][1]["foreignProcesses"].is_null());
  const auto& pods = json["sharing"]["pods"];
  EXPECT_EQ(pods["holdersKnown"], true);
  EXPECT_EQ(pods["annotationSource"], "api-server");
  EXPECT_EQ(pods["invalidAnnotations"][0]["key"], "rondo/weight");
}

}  // namespace
}  // namespace rondo::metrics
