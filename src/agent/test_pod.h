// SPDX-License-Identifier: Apache-2.0
//
// Pods of a test: programs started with what Allocate answered, on the
// simulated kernel driver (TENANT, a path: the program).

#ifndef RONDO_AGENT_TEST_POD_H_
#define RONDO_AGENT_TEST_POD_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/test_agent.h"
#include "base/clock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "sim/driver/node_driver.h"
#include "sim/driver/test_tenant.h"

namespace rondo::agent {

inline constexpr char kGpuResource[] = "nvidia.com/gpu";

class PodTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    auto driver = sim::driver::NodeDriver::Start(node_->dir());
    ASSERT_TRUE(driver.ok()) << driver.status();
    driver_ = *std::move(driver);
    for (const auto& [name, value] : sim::driver::Environment(*node_, "", ""))
      if (name != "LD_LIBRARY_PATH")
        environment_.push_back(absl::StrCat(name, "=", value));
  }

  void Config(absl::string_view rondo) {
    Write("config", absl::StrCat("sharing: {timeSlicing: {resources: [{name: "
                                 "gpu, replicas: 4}]}}\n",
                                 rondo));
  }
  void StartAgent() { Start({"--config-file=" + Path("config")}); }

  demo::Grant Admit(const std::string& pod) {
    EXPECT_TRUE(kubelet_.WaitForAllocatable(kGpuResource, 8));
    const demo::Admission admission =
        kubelet_.Admit(pod, {{{kGpuResource, 1}}});
    EXPECT_EQ(admission.grants.size(), 1u) << admission.message;
    return admission.grants.empty() ? demo::Grant() : admission.grants[0];
  }

  // Where a path of the container lies on the host.
  static std::string OnHost(const demo::Grant& grant, const std::string& path) {
    for (const auto& [container, host] : grant.mounts)
      if (path == container || absl::StartsWith(path, container + "/"))
        return host + path.substr(container.size());
    ADD_FAILURE() << path << " is not mounted";
    return "";
  }
  static std::string Folder(const demo::Grant& grant) {
    std::string folder = grant.device_ids.at(0);
    folder.replace(folder.find("::"), 2, "-");
    return folder;
  }

  // A program in the container of the grant. There are no containers here: it
  // finds what would be mounted at the host's paths.
  std::unique_ptr<sim::driver::Tenant> Run(const demo::Grant& grant,
                                           const std::string& options) {
    const std::string slot = OnHost(grant, "/run/rondo/" + Folder(grant));
    return std::make_unique<sim::driver::Tenant>(
        TENANT, *node_, options, OnHost(grant, grant.envs.at("LD_PRELOAD")),
        std::vector<std::string>{
            "RONDO_SLOTS=" + grant.envs.at("RONDO_SLOTS"),
            "RONDO_RUN_DIR=" + slot.substr(0, slot.rfind('/')),
            "CUDA_VISIBLE_DEVICES=" + grant.envs.at("NVIDIA_VISIBLE_DEVICES")});
  }

  nlohmann::json Sharing() {
    const std::string answer = Get("/api/v1/node");
    const size_t body = answer.find('{');
    if (body == std::string::npos) return nlohmann::json::object();
    return nlohmann::json::parse(answer.substr(body), nullptr,
                                 false)["sharing"];
  }
  // The slot of the grant once it is as wanted, or as it is at the deadline.
  nlohmann::json Slot(
      const demo::Grant& grant,
      const std::function<bool(const nlohmann::json&)>& wanted) {
    const MonotonicTime end = RealClock().Now() + std::chrono::seconds(20);
    nlohmann::json found = nlohmann::json::object();
    do {
      const nlohmann::json sharing = Sharing();
      for (const nlohmann::json& slot :
           sharing.value("slots", nlohmann::json::array()))
        if (slot["slot"] == grant.device_ids.at(0)) found = slot;
    } while ((found.empty() || !wanted(found)) && RealClock().Now() < end);
    return found;
  }

  std::unique_ptr<sim::driver::NodeDriver> driver_;
};

}  // namespace rondo::agent

#endif  // RONDO_AGENT_TEST_POD_H_
