// SPDX-License-Identifier: Apache-2.0
//
// The real executable (RONDO, a path) on a simulated node of two GPUs, beside
// the stand-in kubelet; all of it in one scratch folder.

#ifndef RONDO_AGENT_TEST_AGENT_H_
#define RONDO_AGENT_TEST_AGENT_H_

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "demo/agent_process.h"
#include "demo/stand_in_kubelet.h"
#include "gtest/gtest.h"
#include "sim/node.h"

namespace rondo::agent {

class AgentTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(node_.ok()) << node_.status();
    ASSERT_TRUE(kubelet_.Start().ok());
  }

  void Write(const std::string& name, absl::string_view text) {
    ASSERT_TRUE(WriteFileAtomically(Path(name), text).ok());
  }
  std::string Path(const std::string& name) const {
    return scratch_.path() + "/" + name;
  }

  void Start(std::vector<std::string> arguments, bool with_driver = true) {
    arguments.push_back("--recovery-quiet=100ms");
    auto agent = demo::AgentProcess::Start(
        {.executable = RONDO,
         .scratch = scratch_.path(),
         .nvml_library = with_driver ? node_->library_path() : "/nonexistent/x",
         .node_root = node_->dir(),
         .environment = environment_,
         .arguments = std::move(arguments)});
    ASSERT_TRUE(agent.ok()) << agent.status();
    agent_ = *std::move(agent);
    port_.clear();
  }

  // The body of a GET on the agent's address, and the code in front.
  std::string Get(const std::string& path) {
    if (port_.empty()) {
      const auto line = agent_->NextLineWith("listening on 127.0.0.1:");
      EXPECT_TRUE(line.ok()) << line.status();
      if (!line.ok()) return "";
      port_ = line->substr(line->rfind(':') + 1);
    }
    const std::string out = Path("http");
    const std::string command = absl::StrCat(
        "exec 3<>/dev/tcp/127.0.0.1/", port_, "; printf 'GET ", path,
        " HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat "
        "<&3 >",
        out);
    EXPECT_EQ(system(("bash -c \"" + command + "\"").c_str()), 0);
    return ReadFile(out).value_or("");
  }

  TempDir scratch_ = *TempDir::Create("rondo-agent-test");
  absl::StatusOr<sim::Node> node_ =
      sim::Node::Create("2xA100-SXM4-80GB", scratch_.path() + "/node");
  demo::StandInKubelet kubelet_{
      demo::AgentProcess::DevicePluginDir(scratch_.path())};
  std::unique_ptr<demo::AgentProcess> agent_;
  std::string port_;
  std::vector<std::string> environment_;  // more for the agent, "NAME=value"
};

}  // namespace rondo::agent

#endif  // RONDO_AGENT_TEST_AGENT_H_
