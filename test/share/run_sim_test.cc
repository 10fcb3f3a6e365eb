// SPDX-License-Identifier: Apache-2.0
//
// What --weight, --class and --limit of `rondo run` do: programs that it runs
// on the simulated driver, which meet in one run folder.

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "nlohmann/json.hpp"
#include "rm/control.h"
#include "run/status.h"
#include "sim/driver/tenant_process.h"
#include "sim/driver/test_node.h"

namespace rondo::run {
namespace {

using nlohmann::json;
using sim::driver::TenantProcess;
using Tenant = std::unique_ptr<TenantProcess>;

constexpr char kBusy[] = "--kernel-us 1000 --warmup 1 --seconds 2";

class RunSim : public sim::driver::NodeTest {
 protected:
  // A program that is set up, and that nobody has told to begin.
  Tenant Run(const std::string& options, const std::string& work) {
    std::vector<std::string> words = {RONDO, "run", "--run-dir", run_dir_};
    for (absl::string_view word :
         absl::StrSplit(absl::StrCat(options, " -- ", TENANT,
                                     " --wait --turns 1000 ", work),
                        ' ', absl::SkipEmpty()))
      words.emplace_back(word);
    std::vector<std::string> variables;
    for (const auto& [name, value] : sim::driver::Environment(*node_, "", ""))
      variables.push_back(absl::StrCat(name, "=", value));
    if (const char* sanitizer = getenv("ASAN_OPTIONS"))
      variables.push_back(absl::StrCat("ASAN_OPTIONS=", sanitizer));
    auto tenant = TenantProcess::Start(words, variables);
    EXPECT_TRUE(tenant.ok()) << tenant.status();
    if (!tenant.ok()) abort();
    EXPECT_TRUE((*tenant)->AwaitReady().ok());
    return *std::move(tenant);
  }
  static void RunToTheEnd(const std::vector<Tenant>& tenants) {
    for (const Tenant& tenant : tenants) ASSERT_TRUE(tenant->Begin().ok());
    for (const Tenant& tenant : tenants) ASSERT_TRUE(tenant->Finish().ok());
  }
  // Of that class, as `rondo run --status` tells.
  uint64_t Suspensions(const std::string& cls) {
    const auto text = AskStatus(run_dir_);
    EXPECT_TRUE(text.ok()) << text.status();
    uint64_t sum = 0;
    if (!text.ok()) return sum;
    const json status = json::parse(*text);
    for (const json& slot : status["slots"])
      if (slot["class"] == cls) sum += slot["suspensions"].get<uint64_t>();
    return sum;
  }

  std::string run_dir_ = dir_.path() + "/run";
};

// Slices are the card's own work: no arbiter has to be in time for them.
TEST_F(RunSim, TwoRunsShareByTheirWeights) {
  std::vector<Tenant> tenants;
  tenants.push_back(Run("--weight 3", kBusy));
  tenants.push_back(Run("", kBusy));
  RunToTheEnd(tenants);
  const double first = tenants[0]->Number("share");
  const double sum = first + tenants[1]->Number("share");
  EXPECT_NEAR(first / sum, 0.75, 0.02);
  EXPECT_GT(sum, 0.9);
}

// A busy machine lets the arbiter come late, here twice as late as it allows.
TEST_F(RunSim, ALimitHoldsEvenAlone) {
  std::vector<Tenant> tenants;
  tenants.push_back(Run("--limit 0.3", kBusy));
  RunToTheEnd(tenants);
  EXPECT_LT(tenants[0]->Number("share"), 0.6);
  EXPECT_EQ(tenants[0]->said().find("rondo run"), std::string::npos);
}

TEST_F(RunSim, BatchRunsTakeTurnsBesideALatencyRun) {
  const std::string endless = " --warmup 0 --seconds 1000";
  std::vector<Tenant> tenants;
  tenants.push_back(Run("--class latency", "--think-us 10000" + endless));
  for (int i = 0; i < 2; ++i)
    tenants.push_back(Run("--class batch", "--kernel-us 1000" + endless));
  for (const Tenant& tenant : tenants) ASSERT_TRUE(tenant->Begin().ok());
  const MonotonicTime end = RealClock().Now() + std::chrono::seconds(60);
  while (Suspensions("batch") < 4 && RealClock().Now() < end)
    poll(nullptr, 0, 10);  // nothing tells of it: the arbiter is asked again
  EXPECT_GE(Suspensions("batch"), 4u);
  EXPECT_EQ(Suspensions("latency"), 0u);
  for (const Tenant& tenant : tenants) kill(tenant->pid(), SIGTERM);
  for (const Tenant& tenant : tenants) EXPECT_EQ(tenant->Wait(), 128 + SIGTERM);
}

// Of a release that is not known: it has not the calls that shares are made of.
TEST_F(RunSim, ADriverThatRefusesItsControlsIsToldOnce) {
  const struct {
    uint32_t lacks;
    const char* options;
    const char* told;
  } rows[] = {{rm::kCtrlSetTimeslice, "", "the driver did not take the time"},
              {rm::kCtrlDisableChannels, "--limit 0.5",
               "the driver does not suspend its channels"}};
  for (const auto& row : rows) {
    driver_.reset();
    driver_ = *sim::driver::NodeDriver::Start(dir_.path(), {row.lacks});
    run_dir_ += "x";  // the last arbiter has a driver that is gone
    const Tenant tenant = Run(row.options, kBusy);
    ASSERT_TRUE(tenant->Begin().ok());
    ASSERT_TRUE(tenant->Finish().ok());
    const std::string line =
        absl::StrCat("rondo run: ", TENANT,
                     " is not governed, so its share may not hold: ", row.told);
    const std::vector<std::string> parts = absl::StrSplit(tenant->said(), line);
    EXPECT_EQ(parts.size(), 2u) << tenant->said();
  }
}

}  // namespace
}  // namespace rondo::run
