// SPDX-License-Identifier: Apache-2.0
//
// Time slices and channels under librondo.so, and what happens to them when the
// agent goes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <memory>
#include <sstream>
#include <string>

#include "test/shim/fake_agent.h"
#include "test/shim/tenant_process.h"

namespace rondo {
namespace {

using testing::HasSubstr;

class ShimSlices : public testing::Test {
 protected:
  // A context as libcuda makes it, smaller: a compute and a copy group.
  void MakeContext(TenantProcess* tenant) {
    ASSERT_EQ(tenant->Do("open"), "ok");
    ASSERT_EQ(tenant->Do("group 10"), "0");
    ASSERT_EQ(tenant->Do("set_slice 10 2048"), "0 2048");
    ASSERT_EQ(tenant->Do("channel 20 10"), "0");
    ASSERT_EQ(tenant->Do("copy_group 11"), "0");
    ASSERT_EQ(tenant->Do("channel 21 11"), "0");
  }
  RunDir dir;
  std::string socket = dir.Socket(kGpu, 0);
};

auto AppliedTimes(size_t n) {
  return [n](const FakeAgentState& s) { return s.applied.size() == n; };
}

TEST_F(ShimSlices, AppliesWhatTheAgentAsksFor) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  MakeContext(&tenant);
  EXPECT_TRUE(agent.Wait([](const auto& s) { return s.channels.size() == 2; }));
  agent.SendSlice(20000);
  ASSERT_TRUE(agent.Wait(AppliedTimes(1)));
  const wire::Applied applied = agent.Get().applied[0];
  EXPECT_EQ(applied.us, 20000u);
  EXPECT_EQ(applied.groups, 1) << "of the compute engine";
  EXPECT_EQ(applied.failed, 0);
  EXPECT_EQ(tenant.Do("get_slice 10"), "20000");
  EXPECT_EQ(tenant.Do("get_slice 11"), "20000");
}

TEST_F(ShimSlices, NewGroupsGetIt) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  MakeContext(&tenant);
  agent.SendSlice(20000);
  ASSERT_TRUE(agent.Wait(AppliedTimes(1)));
  EXPECT_EQ(tenant.Do("group 12"), "0");
  EXPECT_EQ(tenant.Do("get_slice 12"), "20000");
}

TEST_F(ShimSlices, GroupsAreToldAsTheyAreMade) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  MakeContext(&tenant);
  EXPECT_TRUE(agent.Wait([](const auto& s) {
    return s.unasked.size() == 2 && s.unasked[1].groups == 1 &&
           s.unasked[1].us == 2048;
  }));
}

TEST_F(ShimSlices, TheWelcomeMayBringOne) {
  FakeAgent::Options options;
  options.policy.slice_us = 7000;
  FakeAgent agent(socket, options);
  TenantProcess tenant(dir);
  MakeContext(&tenant);
  EXPECT_EQ(tenant.Do("get_slice 10"), "7000");
  EXPECT_EQ(tenant.Do("get_slice 11"), "7000");
}

TEST_F(ShimSlices, TheProgramsOwnCallDoesNotUndoIt) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  MakeContext(&tenant);
  agent.SendSlice(20000);
  ASSERT_TRUE(agent.Wait(AppliedTimes(1)));
  EXPECT_EQ(tenant.Do("set_slice 10 4096"), "0 4096")
      << "the program's own buffer is left as it is";
  EXPECT_EQ(tenant.Do("get_slice 10"), "20000");
  agent.SendSlice(0);  // back to what the group has without us
  ASSERT_TRUE(agent.Wait(AppliedTimes(2)));
  EXPECT_EQ(tenant.Do("get_slice 10"), "4096");
  EXPECT_EQ(tenant.Do("get_slice 11"), "1024");
}

TEST_F(ShimSlices, BeforeAnyGroupItIsKept) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  tenant.Do("open");
  agent.SendSlice(5000);
  MakeContext(&tenant);
  ASSERT_TRUE(agent.Wait([](const auto& s) { return !s.applied.empty(); }));
  EXPECT_EQ(tenant.Do("get_slice 10"), "5000");
}

TEST_F(ShimSlices, ARefusalIsReported) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  MakeContext(&tenant);
  tenant.Do("refuse_slices 1");
  agent.SendSlice(20000);
  ASSERT_TRUE(agent.Wait(AppliedTimes(1)));
  EXPECT_EQ(agent.Get().applied[0].failed, 2);
  EXPECT_TRUE(agent.Wait(
      [](const auto& s) { return s.Has(wire::Reason::kSliceRefused); }));
  tenant.Do("refuse_slices 0");
  agent.SendSlice(20000);
  EXPECT_TRUE(agent.Wait(
      [](const auto& s) { return !s.Has(wire::Reason::kSliceRefused); }));
}

// Two groups on tiny slices would bring each other to a standstill.
TEST_F(ShimSlices, ATinySliceIsForALoneGroupThatIsAskedFor) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  MakeContext(&tenant);
  agent.SendSlice(20);
  ASSERT_TRUE(agent.Wait(AppliedTimes(1)));
  EXPECT_EQ(tenant.Do("get_slice 10"), "20");
  EXPECT_EQ(tenant.Do("get_slice 11"), "200") << "copies never";
  // A group that is made now does not get it, nor by the program's own call.
  EXPECT_EQ(tenant.Do("group 12"), "0");
  EXPECT_EQ(tenant.Do("set_slice 12 4096"), "0 4096");
  EXPECT_EQ(tenant.Do("get_slice 12"), "4096");
  ASSERT_TRUE(agent.Wait([](const auto& s) {
    return !s.unasked.empty() && s.unasked.back().groups == 2;
  }));
  // Asked for again it is refused, and nobody is tiny any more.
  agent.SendSlice(20);
  ASSERT_TRUE(agent.Wait(AppliedTimes(2)));
  EXPECT_EQ(agent.Get().applied[1].failed, 2);
  EXPECT_EQ(agent.Get().applied[1].us, 2048u);
  EXPECT_EQ(tenant.Do("get_slice 10"), "2048");
  EXPECT_EQ(tenant.Do("get_slice 12"), "4096");
  agent.SendSlice(1000);
  ASSERT_TRUE(agent.Wait(AppliedTimes(3)));
  EXPECT_EQ(tenant.Do("get_slice 12"), "1000");
}

TEST_F(ShimSlices, ChannelsAreReportedAsTheyComeAndGo) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  MakeContext(&tenant);
  EXPECT_TRUE(agent.Wait([](const auto& s) { return s.channels.size() == 2; }));
  tenant.Do("free 11");  // the group, its channel with it
  EXPECT_TRUE(agent.Wait([](const auto& s) { return s.channels.size() == 1; }));
  tenant.Do("suspend 20");  // the program's own business from now on
  EXPECT_TRUE(agent.Wait([](const auto& s) { return s.channels.empty(); }));
}

// The livelock rule: slices first, channels second, within 100 ms.
TEST_F(ShimSlices, AnAgentThatDiesLeavesARunningProgram) {
  auto agent = std::make_unique<FakeAgent>(socket, FakeAgent::Options{});
  TenantProcess tenant(dir);
  MakeContext(&tenant);
  tenant.Do("channel 22 10");
  tenant.Do("suspend 22");
  agent->SendSlice(20);
  ASSERT_TRUE(agent->Wait(AppliedTimes(1)));
  tenant.Send("wait_log resume 21");
  const auto killed = std::chrono::steady_clock::now();
  agent.reset();
  EXPECT_EQ(tenant.ReadLine(), "seen");
  EXPECT_LT(std::chrono::steady_clock::now() - killed,
            std::chrono::milliseconds(100));
  const std::string log = tenant.Do("log");
  EXPECT_THAT(log, testing::EndsWith(
                       "slice 10 20,slice 11 200,slice 10 2048,slice 11 1024,"
                       "resume 20,resume 21,"))
      << "and not channel 22, which the program itself had stopped";
}

TEST_F(ShimSlices, NothingIsResumedBeforeItsSliceIsBack) {
  auto agent = std::make_unique<FakeAgent>(socket, FakeAgent::Options{});
  TenantProcess tenant(dir);
  MakeContext(&tenant);
  agent->SendSlice(20);
  ASSERT_TRUE(agent->Wait(AppliedTimes(1)));
  tenant.Do("refuse_slices 1");
  agent.reset();
  // The next agent hears that the driver refuses; nothing was resumed.
  FakeAgent next(socket, {});
  EXPECT_TRUE(next.Wait(
      [](const auto& s) { return s.Has(wire::Reason::kSliceRefused); }));
  EXPECT_THAT(tenant.Do("log"), testing::Not(HasSubstr("resume")));
  tenant.Do("refuse_slices 0");
  EXPECT_EQ(tenant.Do("wait_log resume 21"), "seen");
}

TEST_F(ShimSlices, ARefusedResumeIsReportedAndTriedAgain) {
  auto agent = std::make_unique<FakeAgent>(socket, FakeAgent::Options{});
  TenantProcess tenant(dir);
  MakeContext(&tenant);
  tenant.Do("refuse_resume 1");
  agent.reset();
  FakeAgent next(socket, {});
  EXPECT_TRUE(next.Wait(
      [](const auto& s) { return s.Has(wire::Reason::kResumeFailed); }));
  tenant.Do("refuse_resume 0");
  EXPECT_EQ(tenant.Do("wait_log resume 21"), "seen");
  EXPECT_TRUE(next.Wait(
      [](const auto& s) { return !s.Has(wire::Reason::kResumeFailed); }));
}

TEST_F(ShimSlices, ARestartedAgentHearsEverything) {
  auto agent = std::make_unique<FakeAgent>(socket, FakeAgent::Options{});
  TenantProcess tenant(dir);
  MakeContext(&tenant);
  tenant.Do("alloc 1000 1048576");
  agent.reset();
  FakeAgent::Options options;
  options.policy.slice_us = 9000;
  FakeAgent next(socket, options);
  EXPECT_TRUE(next.Wait([](const auto& s) {
    return s.channels.size() == 2 && s.Used() == 1048576 && s.hello.held == 1 &&
           !s.unasked.empty();
  }));
  EXPECT_EQ(tenant.Do("get_slice 10"), "9000");
  EXPECT_TRUE(next.Wait([](const auto& s) {
    return s.Counter(wire::Counter::kAgentLost) == 1 &&
           s.Counter(wire::Counter::kUnblocked) == 1;
  }));
}

TEST_F(ShimSlices, ItsThreadTakesNoSignalsAndLittleRoom) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  ASSERT_EQ(tenant.Do("open"), "ok");
  EXPECT_EQ(tenant.Do("tasks"), "1") << "none before the first group";
  MakeContext(&tenant);
  EXPECT_TRUE(agent.Wait([](const auto& s) { return s.channels.size() == 2; }));
  EXPECT_EQ(tenant.Do("tasks"), "2");
  std::istringstream thread(tenant.Do("thread"));
  std::string blocked;
  int room = 0;
  thread >> blocked >> room;
  // All but SIGKILL, SIGSTOP and the two with which libc speaks to its threads.
  EXPECT_EQ(blocked, "fffffffe7ffbfeff");
  EXPECT_GT(room, 64);
  EXPECT_LT(room, 256);
}

TEST_F(ShimSlices, ItsThreadLetsLibcChangeTheUserOfAllThreads) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  tenant.Do("old_threads");
  MakeContext(&tenant);
  EXPECT_EQ(tenant.Do("tasks"), "2");
  EXPECT_EQ(tenant.Do("setuid"), "0");
}

TEST_F(ShimSlices, AStoppedProgramAppliesItWhenItContinues) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  MakeContext(&tenant);
  tenant.Kill(SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(tenant.pid(), &status, WUNTRACED), tenant.pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  agent.SendSlice(3000);
  TenantProcess neighbour(dir);  // of the same agent: it is not held up
  EXPECT_EQ(neighbour.Do("open"), "ok");
  EXPECT_EQ(neighbour.Do("alloc 1000 1048576"), "0 1048576");
  EXPECT_TRUE(agent.Get().applied.empty());
  tenant.Kill(SIGCONT);
  ASSERT_TRUE(agent.Wait(AppliedTimes(1)));
  EXPECT_EQ(agent.Get().applied[0].us, 3000u);
  EXPECT_EQ(tenant.Do("get_slice 10"), "3000");
}

TEST_F(ShimSlices, FourHundredChannelsAreResumedInPortions) {
  auto agent = std::make_unique<FakeAgent>(socket, FakeAgent::Options{});
  TenantProcess tenant(dir);
  MakeContext(&tenant);
  for (int i = 0; i < 400; ++i) {
    tenant.Do("channel " + std::to_string(5000 + i) + " 10");
  }
  agent.reset();
  EXPECT_EQ(tenant.Do("wait_log resume 5399"), "seen");
  const std::string log = tenant.Do("log");
  for (int i = 0; i < 400; ++i) {
    EXPECT_THAT(log, HasSubstr("resume " + std::to_string(5000 + i) + ","));
  }
}

}  // namespace
}  // namespace rondo
