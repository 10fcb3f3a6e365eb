// SPDX-License-Identifier: Apache-2.0
//
// librondo.so through the life of a process: fork, exec, kill, threads, agents
// that are away, slow or strange, and places where little is allowed.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "test/shim/fake_agent.h"
#include "test/shim/tenant_process.h"

namespace rondo {
namespace {

using testing::HasSubstr;

constexpr uint64_t kGiB = 1ull << 30;

class ShimProcess : public testing::Test {
 protected:
  RunDir dir;
  std::string socket = dir.Socket(kGpu, 0);
};

auto Uses(uint64_t bytes) {
  return [bytes](const FakeAgentState& s) { return s.Used() == bytes; };
}
auto Connected(int n) {
  return [n](const FakeAgentState& s) { return s.connections == n; };
}

pid_t Pid(const std::string& text) {
  int pid = 0;
  EXPECT_TRUE(absl::SimpleAtoi(text, &pid)) << text;
  return pid;
}

TEST_F(ShimProcess, AForkedChildHasAConnectionOfItsOwn) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do("alloc 1000 1048576");
  // The child frees what is not its own account's, then works for itself.
  EXPECT_EQ(tenant.Do("child free 999;open;alloc 2000 2097152;in_use"),
            "51|ok|0 2097152|3145728|");
  EXPECT_EQ(agent.Get().hellos, 2);
  EXPECT_TRUE(agent.Wait(Uses(1048576))) << "the child's is gone with it";
  EXPECT_EQ(tenant.Do("alloc 1001 1"), "0 1") << "the parent goes on";
}

// A forked child that keeps the driver's descriptor keeps the memory alive.
TEST_F(ShimProcess, AChildThatHoldsTheDescriptorsHoldsTheCharge) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do("alloc 1000 1048576");
  const pid_t child = Pid(tenant.Do("hold"));
  tenant.Kill(SIGKILL);
  tenant.Finish();
  FakeAgent unrelated(dir.Socket(kSecondGpu, 0), {});
  TenantProcess other(dir, {.slots = std::string(kGpu) + "::0"});
  other.Do("open");
  other.Do("alloc 1 1");
  EXPECT_TRUE(agent.Wait(Uses(1048577))) << "still charged";
  other.Finish();
  kill(child, SIGKILL);
  EXPECT_TRUE(agent.Wait(Uses(0)));
}

TEST_F(ShimProcess, ExecStartsAfresh) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do("alloc 1000 1048576");
  EXPECT_EQ(tenant.Do("exec"), "exec");
  EXPECT_TRUE(agent.Wait(Uses(0)));
  EXPECT_EQ(tenant.Do("open"), "ok");
  EXPECT_EQ(tenant.Do("alloc 1000 2097152"), "0 2097152");
  EXPECT_TRUE(agent.Wait(Uses(2097152)));
}

// What shells and launchers do.
TEST_F(ShimProcess, ForkThenExecStartsAfreshBesideItsParent) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  const std::string descriptors = tenant.Do("descriptors");
  tenant.Do("open");
  tenant.Do("group 10");  // with the library's thread
  tenant.Do("alloc 1000 " + std::to_string(5 * kGiB));
  EXPECT_EQ(tenant.Do("launch descriptors;open;alloc 1 " +
                      std::to_string(5 * kGiB) + ";alloc 1 4096"),
            descriptors + "|ok|81 5368709120|0 4096|")
      << "nothing of its parent's is open in it, and one limit is for both";
  EXPECT_EQ(agent.Get().hellos, 2);
  EXPECT_TRUE(agent.Wait(Connected(1)));
  EXPECT_EQ(agent.Get().Used(), 5 * kGiB);
  EXPECT_EQ(tenant.Do("free 1000"), "0");
  EXPECT_TRUE(agent.Wait(Uses(0))) << "the parent goes on";
}

TEST_F(ShimProcess, KilledAtAnyInstantItLeaksNothing) {
  FakeAgent agent(socket, {});
  for (int round = 0; round < 30; ++round) {
    TenantProcess tenant(dir);
    tenant.Do("open");
    const int before = agent.Get().asked;
    tenant.Send("threads 4 4000 65536");
    ASSERT_TRUE(agent.Wait(
        [&](const auto& s) { return s.asked > before + round * 7; }));
    tenant.Kill(SIGKILL);
    tenant.Finish();
    ASSERT_TRUE(agent.Wait(Connected(0)));
    ASSERT_EQ(agent.Get().Used(), 0u);
  }
}

TEST_F(ShimProcess, WithoutAnAgentEverythingRunsAndIsCountedLater) {
  TenantProcess tenant(dir);
  EXPECT_EQ(tenant.Do("open"), "ok");
  EXPECT_EQ(tenant.Do("group 10"), "0");
  EXPECT_EQ(tenant.Do("channel 20 10"), "0");
  EXPECT_EQ(tenant.Do("alloc 1000 " + std::to_string(20 * kGiB)),
            "0 21474836480");
  EXPECT_EQ(tenant.Errors(), "");
  FakeAgent agent(socket, {});
  EXPECT_TRUE(agent.Wait([](const auto& s) {
    return s.Used() == 20 * kGiB && s.channels.size() == 1 &&
           s.Counter(wire::Counter::kAgentAbsent) > 0;
  }));
}

TEST_F(ShimProcess, ClosedKeepsTheLimitWhileTheAgentIsAway) {
  FakeAgent::Options options;
  options.used_by_others = kGiB;
  auto agent = std::make_unique<FakeAgent>(socket, options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do("alloc 1000 " + std::to_string(4 * kGiB));
  agent.reset();
  EXPECT_EQ(tenant.Do("alloc 1001 " + std::to_string(3 * kGiB)),
            "0 3221225472");
  EXPECT_THAT(tenant.Do("alloc 1002 1"), HasSubstr("81 "));
  EXPECT_EQ(tenant.Do("view 27"), std::to_string(8 * kGiB / 1024));
  tenant.Do("group 10");  // from here on its thread reconnects
  FakeAgent next(socket, options);
  EXPECT_TRUE(next.Wait([](const auto& s) {
    return s.Used() == 7 * kGiB &&
           s.Counter(wire::Counter::kDeniedLocally) == 1;
  }));
}

TEST_F(ShimProcess, OpenLiftsTheLimitWhileTheAgentIsAway) {
  FakeAgent::Options options;
  options.policy.on_agent_loss = wire::OnAgentLoss::kOpen;
  auto agent = std::make_unique<FakeAgent>(socket, options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do("alloc 1000 1");
  agent.reset();
  EXPECT_EQ(tenant.Do("alloc 1001 " + std::to_string(20 * kGiB)),
            "0 21474836480");
}

TEST_F(ShimProcess, AMuteAgentCostsABoundedWait) {
  FakeAgent::Options options;
  options.mute = true;
  FakeAgent agent(socket, options);
  TenantProcess tenant(dir);
  const auto start = std::chrono::steady_clock::now();
  tenant.Do("open");
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(tenant.Do("alloc " + std::to_string(1000 + i) + " 1"), "0 1");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(ShimProcess, NonsenseAndStaleAnswersAreSkipped) {
  FakeAgent::Options options;
  options.garbage = true;
  FakeAgent agent(socket, options);
  TenantProcess tenant(dir);
  tenant.Do("open");
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(tenant.Do("alloc " + std::to_string(1000 + i) + " 1"), "0 1");
  }
  EXPECT_THAT(tenant.Do("alloc 2000 " + std::to_string(9 * kGiB)),
              HasSubstr("81 "));
  EXPECT_EQ(agent.Get().connections, 1);
}

// A program that closes every descriptor, and gets our number for its own file.
TEST_F(ShimProcess, AClosedSocketIsNeverWrittenTo) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do("alloc 1000 1048576");
  tenant.Do("close_all");
  EXPECT_EQ(tenant.Do("alloc 1001 1048576"), "0 1048576");
  EXPECT_EQ(tenant.Do("group 10"), "0");
  EXPECT_TRUE(agent.Wait([](const auto& s) {
    return s.hellos == 2 && s.Used() == 2097152 &&
           s.Counter(wire::Counter::kSocketStolen) == 1;
  }));
}

TEST_F(ShimProcess, AnOldDriverIsLeftAlone) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  tenant.Do("version 525.147.05");
  tenant.Do("open");
  EXPECT_EQ(tenant.Do("alloc 1000 " + std::to_string(20 * kGiB)),
            "0 21474836480");
  EXPECT_TRUE(agent.Wait(
      [](const auto& s) { return s.Has(wire::Reason::kDriverTooOld); }));
}

TEST_F(ShimProcess, AnUnknownSizePassesThroughAndIsReported) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  tenant.Do("open");
  EXPECT_EQ(tenant.Do("unknown_size"), "0");
  EXPECT_TRUE(agent.Wait([](const auto& s) {
    return s.Has(wire::Reason::kUnknownIoctl) &&
           s.Counter(wire::Counter::kPassedThrough) == 1;
  }));
}

TEST_F(ShimProcess, AWildPointerGetsTheDriversAnswer) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  tenant.Do("open");
  EXPECT_EQ(tenant.Do("wild_pointer"), "-1 14");
}

TEST_F(ShimProcess, ADriverThatKnowsNothing) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  tenant.Do("no_ioctl 1");
  EXPECT_EQ(tenant.Do("open"), "ok");
  for (const char* call : {"group 10", "set_slice 10 4096", "alloc 1000 1",
                           "export 1000", "free 1000", "view 27"}) {
    tenant.Do(call);
    EXPECT_EQ(tenant.Do("last_ioctl"), "-1 38") << call << ": ENOSYS";
  }
  EXPECT_TRUE(
      agent.Wait([](const auto& s) { return s.asked == 1 && s.Used() == 0; }));
  EXPECT_EQ(tenant.Finish(), 0);
}

TEST_F(ShimProcess, DlcloseDoesNotUnloadIt) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  tenant.Do("open");
  tenant.Do("group 10");
  EXPECT_EQ(tenant.Do(std::string("dlclose ") + RONDO_TEST_LIBRONDO), "0");
  EXPECT_EQ(tenant.Do("alloc 1000 1048576"), "0 1048576");
  EXPECT_TRUE(agent.Wait(Uses(1048576)));
}

// Its own view of a container: `etc` and `run` are what it has for /etc and
// /run/rondo.
std::string etc_here, run_here;
void SeeContainer() {
  const auto bind = [](const char* from, const char* to) {
    return mount(from, to, nullptr, MS_BIND, nullptr) == 0;
  };
  if (unshare(CLONE_NEWNS) != 0 ||
      mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("run", "/run", "tmpfs", 0, nullptr) != 0 ||
      mkdir("/run/rondo", 0755) != 0 || !bind(run_here.c_str(), "/run/rondo") ||
      !bind(etc_here.c_str(), "/etc")) {
    _exit(126);
  }
}

// No variable is left: the library comes by /etc/ld.so.preload, and the pod's
// run folder says the rest.
TEST_F(ShimProcess, UnderEnvIgnoreEnvironmentTheLimitStays) {
  FakeAgent agent(socket, {});
  const RunDir etc;
  std::ofstream(etc.path() + "/ld.so.preload") << RONDO_TEST_LIBRONDO << "\n";
  etc_here = etc.path();
  run_here = dir.path();
  TenantProcess tenant(dir, {.program = "/usr/bin/env",
                             .preload = "",
                             .args = {"-i", RONDO_TEST_TENANT},
                             .prepare = SeeContainer});
  if (tenant.Do("open") != "ok") GTEST_SKIP() << "needs root";
  EXPECT_THAT(tenant.Do("alloc 1000 " + std::to_string(9 * kGiB)),
              HasSubstr("81 "));
  EXPECT_EQ(tenant.Do("alloc 1000 1048576"), "0 1048576");
  EXPECT_TRUE(agent.Wait(Uses(1048576)));
}

TEST_F(ShimProcess, WithoutRondoSlotsTheFolderTells) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir, {.clear_slots = true});
  tenant.Do("open");
  EXPECT_THAT(tenant.Do("alloc 1000 " + std::to_string(9 * kGiB)),
              HasSubstr("81 "));
  EXPECT_EQ(tenant.Do("alloc 1000 1048576"), "0 1048576");
  EXPECT_TRUE(agent.Wait(Uses(1048576)));
}

TEST_F(ShimProcess, WithoutAnySlotItIsInert) {
  RunDir empty;
  TenantProcess tenant(empty, {.clear_slots = true});
  tenant.Do("open");
  tenant.Do("group 10");
  EXPECT_EQ(tenant.Do("alloc 1000 " + std::to_string(20 * kGiB)),
            "0 21474836480");
  EXPECT_EQ(tenant.Do("tasks"), "1") << "no thread";
}

TEST_F(ShimProcess, AProgramWithoutTheDriverIsLeftAlone) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir);
  EXPECT_EQ(tenant.Do("map_over 17592186044416 4096"), "ok");
  EXPECT_EQ(tenant.Do("unmap 17592186044416 4096"), "0");
  EXPECT_EQ(tenant.Do("tasks"), "1");
  EXPECT_EQ(tenant.Finish(), 0);
  EXPECT_EQ(agent.Get().hellos, 0);
}

TEST_F(ShimProcess, UserNobody) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir, {.prepare = [] {
                         if (setgroups(0, nullptr) != 0 ||
                             setresgid(65534, 65534, 65534) != 0 ||
                             setresuid(65534, 65534, 65534) != 0) {
                           _exit(126);
                         }
                       }});
  if (tenant.Do("open") != "ok") GTEST_SKIP() << "needs root";
  EXPECT_EQ(tenant.Do("alloc 1000 1048576"), "0 1048576");
  EXPECT_TRUE(agent.Wait(Uses(1048576)));
}

TEST_F(ShimProcess, ReadOnlyRoot) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(
      dir, {.prepare = [] {
        if (unshare(CLONE_NEWNS) != 0 ||
            mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY,
                  nullptr) != 0) {
          _exit(126);
        }
      }});
  if (tenant.Do("open") != "ok") GTEST_SKIP() << "needs root";
  EXPECT_EQ(tenant.Do("alloc 1000 1048576"), "0 1048576");
  EXPECT_TRUE(agent.Wait(Uses(1048576)));
}

TEST_F(ShimProcess, PrivatePidNamespace) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir, {.prepare = [] {
                         if (unshare(CLONE_NEWPID) != 0) _exit(126);
                         const pid_t child = fork();
                         if (child == 0) {
                           prctl(PR_SET_PDEATHSIG, SIGKILL);
                           return;
                         }
                         int status = 0;
                         waitpid(child, &status, 0);
                         _exit(WEXITSTATUS(status));
                       }});
  if (tenant.Do("pid") != "1") GTEST_SKIP() << "needs root";
  tenant.Do("open");
  EXPECT_EQ(tenant.Do("alloc 1000 1048576"), "0 1048576");
  EXPECT_TRUE(agent.Wait(Uses(1048576)));
  EXPECT_EQ(agent.Get().hello.pid, 1);
  EXPECT_EQ(tenant.Finish(), 0);
}

// Containers that may not make this system call: the program must not notice.
void Forbid(unsigned number) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{sizeof code / sizeof code[0], code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    _exit(126);
  }
}

TEST_F(ShimProcess, SeccompThatForbidsSockets) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir, {.prepare = [] { Forbid(SYS_socket); }});
  ASSERT_EQ(tenant.Do("open"), "ok");
  EXPECT_EQ(tenant.Do("group 10"), "0");
  EXPECT_EQ(tenant.Do("alloc 1000 " + std::to_string(20 * kGiB)),
            "0 21474836480");
  EXPECT_EQ(agent.Get().hellos, 0);
  EXPECT_EQ(tenant.Errors(), "");
}

TEST_F(ShimProcess, SeccompThatForbidsThreads) {
  FakeAgent agent(socket, {});
  TenantProcess tenant(dir, {.prepare = [] {
                         Forbid(SYS_clone);
                         Forbid(SYS_clone3);
                       }});
  ASSERT_EQ(tenant.Do("open"), "ok");
  EXPECT_EQ(tenant.Do("group 10"), "0");
  EXPECT_EQ(tenant.Do("alloc 1000 1"), "0 1");
  EXPECT_TRUE(
      agent.Wait([](const auto& s) { return s.Has(wire::Reason::kNoThread); }));
  // Slices wait for the program's next call.
  agent.SendSlice(6000);
  EXPECT_EQ(tenant.Do("alloc 1001 1"), "0 1");
  EXPECT_EQ(tenant.Do("get_slice 10"), "6000");
}

}  // namespace
}  // namespace rondo
