// SPDX-License-Identifier: Apache-2.0
#include "activity/foreign_processes.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace rondo::activity {
namespace {

using std::chrono::seconds;

constexpr char kGpu[] = "GPU-0";
constexpr uint32_t kAgent = 1;

class ForeignProcessesTest : public testing::Test {
 protected:
  ForeignProcessesTest() { account_.ready = true; }
  // At so many seconds.
  ForeignView Update(const std::vector<nvml::Process>& processes, int at,
                     bool with_account = true) {
    foreign_.Update(kGpu, processes, attached_,
                    with_account ? &account_ : nullptr, seconds(at));
    const auto views = foreign_.View();
    return views.empty() ? ForeignView() : views[0];
  }

  std::optional<std::set<uint32_t>> attached_{{10}};
  GpuAccount account_;
  int names_ = 0;  // asked for; one a line of the log
  ForeignProcesses foreign_{kAgent, [this](uint32_t pid) {
                              ++names_;
                              return "program-" + std::to_string(pid);
                            }};
};

TEST_F(ForeignProcessesTest, WhoIsInNoSlotOfTheGpuCountsAfterAWhile) {
  const std::vector<nvml::Process> all = {{kAgent, 500}, {10, 1000}, {20, 2000},
                                          {30, 3000},    {40, 0},    {50, {}}};
  EXPECT_TRUE(Update(all, 0).processes.empty());
  EXPECT_TRUE(Update(all, 1).processes.empty());
  const auto view = Update(all, 2);
  EXPECT_EQ(view.gpu_uuid, kGpu);
  ASSERT_EQ(view.processes.size(), 3u)
      << "not the agent, not who is attached, not who holds nothing";
  EXPECT_EQ(view.processes[0].pid, 20u);
  EXPECT_EQ(view.processes[0].name, "program-20");
  EXPECT_EQ(view.processes[0].memory_bytes, 2000u);
  EXPECT_EQ(view.processes[1].pid, 30u) << "attached to another GPU's slot";
  EXPECT_EQ(view.processes[2].pid, 50u);
  EXPECT_FALSE(view.processes[2].memory_bytes) << "NVML does not say";
  Update(all, 3);
  EXPECT_EQ(names_, 3) << "told once";
  EXPECT_EQ(Update({{20, 700}}, 4).processes[0].memory_bytes, 700u);
  EXPECT_TRUE(Update({}, 5).processes.empty());
  Update({{20, 1}}, 6);
  EXPECT_TRUE(Update({{20, 1}}, 7).processes.empty()) << "a new one";
}

TEST_F(ForeignProcessesTest, WhoAttachesInTimeIsNotForeign) {
  Update({{20, 1}}, 0);
  Update({{20, 1}}, 1);
  attached_->insert(20);
  EXPECT_TRUE(Update({{20, 1}}, 2).processes.empty());
  attached_->erase(20);
  EXPECT_TRUE(Update({{20, 1}}, 3).processes.empty()) << "counted from here";
  EXPECT_EQ(Update({{20, 1}}, 5).processes.size(), 1u);
}

TEST_F(ForeignProcessesTest, AProcessThatCannotBeSeenMakesItUnknown) {
  Update({{20, 1}}, 0);
  Update({{20, 1}}, 2);
  EXPECT_EQ(foreign_.View().size(), 1u);
  attached_.reset();
  Update({{20, 1}}, 3);
  EXPECT_TRUE(foreign_.View().empty());
}

TEST_F(ForeignProcessesTest, TheirTimeAddsUpAndNeverFalls) {
  account_.processes[10].busy_ns = 9'000'000'000;
  account_.processes[20].busy_ns = 1'000'000'000;
  EXPECT_EQ(Update({{20, 1}}, 0).gpu_seconds, 0) << "nobody counts yet";
  EXPECT_EQ(Update({{20, 1}}, 2).gpu_seconds, 1);
  account_.processes[20].busy_ns = 1'500'000'000;
  EXPECT_EQ(Update({{20, 1}}, 3).gpu_seconds, 1.5);
  account_.processes[20].busy_ns = 100'000'000;  // opened anew
  EXPECT_EQ(Update({{20, 1}}, 4).gpu_seconds, 1.5);
  account_.processes[20].busy_ns = 200'000'000;
  EXPECT_EQ(Update({{20, 1}}, 5).gpu_seconds, 1.6);
  EXPECT_EQ(Update({}, 6).gpu_seconds, 1.6);
  EXPECT_FALSE(Update({}, 7, /*with_account=*/false).gpu_seconds);
}

TEST_F(ForeignProcessesTest, TheLogIsNotFilled) {
  testing::internal::CaptureStderr();
  std::vector<nvml::Process> many;
  for (uint32_t pid = 100; pid < 150; ++pid) many.push_back({pid, 1});
  Update(many, 0);
  EXPECT_EQ(Update(many, 2).processes.size(), 50u) << "all are counted";
  many.clear();
  many.push_back({200, 1});
  Update(many, 60);
  Update(many, 62);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("process 109 (program-109) uses it"), std::string::npos)
      << log;
  EXPECT_EQ(log.find("process 110"), std::string::npos) << log;
  EXPECT_NE(log.find("process 200"), std::string::npos) << log;
}

TEST(ProcessNameTest, IsOneLineWhateverTheProcessCallsItself) {
  char before[16] = {};
  ASSERT_EQ(prctl(PR_GET_NAME, before), 0);
  ASSERT_EQ(prctl(PR_SET_NAME, "a\nb\x1b[2J"), 0);
  EXPECT_EQ(ProcessName(getpid()), "a?b?[2J");
  ASSERT_EQ(prctl(PR_SET_NAME, before), 0);
  EXPECT_EQ(ProcessName(0x7fffffff), "");
}

}  // namespace
}  // namespace rondo::activity
