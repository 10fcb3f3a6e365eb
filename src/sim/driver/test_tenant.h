// SPDX-License-Identifier: Apache-2.0
//
// The tenant program as tests run it: on a simulated node, set up at once; what
// goes wrong fails the test.

#ifndef RONDO_SIM_DRIVER_TEST_TENANT_H_
#define RONDO_SIM_DRIVER_TEST_TENANT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "sim/driver/node_driver.h"
#include "sim/driver/tenant_process.h"

namespace rondo::sim::driver {

class Tenant {
 public:
  // program: the path of rondo-tenant. preload: what comes before the simulated
  // driver, such as the shim. It is set up when this returns.
  Tenant(const std::string& program, const Node& node,
         const std::string& options, const std::string& preload = "",
         const std::vector<std::string>& environment = {}) {
    std::vector<std::string> words = {program, "--wait"};
    for (absl::string_view word :
         absl::StrSplit(options, ' ', absl::SkipEmpty()))
      words.emplace_back(word);
    std::vector<std::string> variables = environment;
    for (const auto& [name, value] : Environment(node, "", preload))
      variables.push_back(absl::StrCat(name, "=", value));
    auto process = TenantProcess::Start(words, variables);
    EXPECT_TRUE(process.ok()) << process.status();
    if (!process.ok()) abort();
    process_ = *std::move(process);
    const absl::Status ready = process_->AwaitReady();
    EXPECT_TRUE(ready.ok()) << ready;
  }

  void Begin() {
    const absl::Status status = process_->Begin();
    EXPECT_TRUE(status.ok()) << status;
  }
  // The report, once it ended by itself.
  std::string Finish() {
    const absl::Status status = process_->Finish();
    EXPECT_TRUE(status.ok()) << status;
    return process_->report();
  }
  int Wait() { return process_->Wait(); }  // its exit status
  void Kill() { process_->Kill(); }
  pid_t pid() const { return process_->pid(); }

  double Number(const std::string& name) const {
    return process_->Number(name);
  }
  double Share() const { return Number("share"); }

 private:
  std::unique_ptr<TenantProcess> process_;
};

using Tenants = std::vector<std::unique_ptr<Tenant>>;

// All at the same time, to their end.
inline void RunAll(const Tenants& tenants) {
  for (const auto& t : tenants) t->Begin();
  for (const auto& t : tenants) t->Finish();
}

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_TEST_TENANT_H_
