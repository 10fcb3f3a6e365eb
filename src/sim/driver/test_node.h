// SPDX-License-Identifier: Apache-2.0
//
// A test on a simulated node of its own: staged in a scratch folder, its driver
// running, both gone with the test. RONDO_SIM_STATE names it, for a
// SimulatedSystem (test_system.h) in the test's process.

#ifndef RONDO_SIM_DRIVER_TEST_NODE_H_
#define RONDO_SIM_DRIVER_TEST_NODE_H_

#include <stdlib.h>

#include <memory>
#include <optional>
#include <string>

#include "base/file.h"
#include "gtest/gtest.h"
#include "sim/driver/node_driver.h"
#include "sim/node.h"

namespace rondo::sim::driver {

class NodeTest : public testing::Test {
 protected:
  explicit NodeTest(std::string profile = "H200")
      : profile_(std::move(profile)) {}

  void SetUp() override {
    auto node = Node::Create(profile_, dir_.path());
    ASSERT_TRUE(node.ok()) << node.status();
    node_.emplace(*std::move(node));
    auto driver = NodeDriver::Start(dir_.path());
    ASSERT_TRUE(driver.ok()) << driver.status();
    driver_ = *std::move(driver);
    setenv("RONDO_SIM_STATE", dir_.path().c_str(), 1);
    uuid_ = *node_->Uuid(0);
  }
  void TearDown() override { unsetenv("RONDO_SIM_STATE"); }

  const std::string profile_;
  const TempDir dir_ = *TempDir::Create("rondo-sim-test");
  std::optional<Node> node_;
  std::unique_ptr<NodeDriver> driver_;
  std::string uuid_;  // of the first GPU
};

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_TEST_NODE_H_
