// SPDX-License-Identifier: Apache-2.0
//
// The life of the arbiter, and what it leaves.

#include "run/arbiter.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/unix_socket.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rm/system.h"
#include "run/control.h"
#include "run/status.h"
#include "run/test_run.h"
#include "share/test_shim.h"

namespace rondo::run {
namespace {

using testing::HasSubstr;

TEST_F(RunTest, AnArbiterThatAnInnerRunStartedEndsWithTheLastProgram) {
  // It has the slot of the outer run in its environment.
  const std::string pid =
      run_ + "--status | grep -o 'arbiterPid.:[0-9]*' | cut -d: -f2";
  const Outcome outcome = Script(
      absl::StrCat("kill -9 $(", pid, ")\n", run_, "-- true\n", pid, "\n"));
  int arbiter = 0;
  ASSERT_TRUE(
      absl::SimpleAtoi(absl::StripAsciiWhitespace(outcome.text), &arbiter))
      << outcome.text;
  const MonotonicTime end = RealClock().Now() + std::chrono::seconds(20);
  while (kill(arbiter, 0) == 0 && RealClock().Now() < end) sched_yield();
  EXPECT_NE(kill(arbiter, 0), 0);
}

TEST_F(RunTest, AnArbiterWhoseFolderWasRemovedLeavesTheNextOneAlone) {
  // As that of a user who logs out is. The first arbiter ends in the time of
  // the second, whose program waits for it.
  ASSERT_TRUE(
      WriteFileAtomically(
          dir_.path() + "/script",
          absl::StrCat("cd ", dir_.path(), "; mkfifo up go; exec 6<>up 7<>go\n",
                       run_,
                       "--gpu 1 -- sh -c 'echo >&6; read x <&7' &\n"
                       "read x <&6; first=$(",
                       run_, "--status | grep -o 'arbiterPid.:[0-9]*' | cut ",
                       "-d: -f2); rm -r run\n", run_,
                       "-- sh -c 'echo >&7; tail -s 0.1 --pid=$0 -f /dev/null; "
                       "test -S run/arbiter.sock && echo it listens' $first\n"))
          .ok());
  EXPECT_EQ(Shell(absl::StrCat(RONDO, " sim --profile 2xH200 -- bash ",
                               dir_.path(), "/script"))
                .text,
            "it listens\n");
}

// Its folder is gone with the arbiter, and for a while no other can be made.
TEST_F(RunTest, TriesOnForAnArbiterAndPutsTheLibraryBack) {
  ASSERT_TRUE(
      WriteFileAtomically(
          dir_.path() + "/script",
          absl::StrCat(
              "cd ", dir_.path(), "; mkfifo up go said; exec 6<>up 7<>go\n",
              run_, "--memory 1Gi -- sh -c 'echo >&6; read x <&7; exec ",
              TENANT, " --memory 2048 --seconds 0.1 --turns 1000' 2>said &\n",
              "exec 8<said; read x <&6; pid=$(", run_,
              "--status | grep -o 'arbiterPid.:[0-9]*' | cut -d: -f2)\n"
              "rm -r run; touch run; kill -9 $pid; read text <&8; "
              "echo \"$text\"\n"
              "rm run\n"
              "until test -s run/GPU*/librondo.so; do ",
              run_, "--status; done >out 2>&1\necho >&7; wait %1\n"))
          .ok());
  const Outcome outcome =
      Shell(absl::StrCat("timeout 60 ", RONDO, " sim --profile H200 -- bash ",
                         dir_.path(), "/script"));
  EXPECT_THAT(outcome.text, HasSubstr("no arbiter: "));
  EXPECT_THAT(outcome.text, HasSubstr("\"total_bytes\": 1073741824"));
}

TEST_F(RunTest, TheNextArbiterKeepsADaemonToItsLimit) {
  ASSERT_TRUE(
      WriteFileAtomically(
          dir_.path() + "/daemon",
          absl::StrCat("exec <>go >out 2>&1; read x; exec ", TENANT,
                       " --memory 4096 --seconds 0.1 ", "--turns 1000\n"))
          .ok());
  ASSERT_TRUE(
      WriteFileAtomically(
          dir_.path() + "/script",
          absl::StrCat(
              "cd ", dir_.path(), "; mkfifo go; exec 7<>go\n", run_,
              "--memory 2Gi --weight 3 --limit 0.5 --class batch -- "
              "sh -c 'setsid sh daemon 7<&- & echo started'\n"
              "kill -9 $(",
              run_, "--status | grep -o 'arbiterPid.:[0-9]*' | cut -d: -f2)\n",
              run_, "-- ", run_, "--status; echo >&7\n",
              "for i in $(seq 1000); do slot=$(", run_,
              "-- printenv RONDO_SLOTS); case $slot in *::0) break;; esac; "
              "done\n"
              "cat out; echo then $slot; ls run/*-1\n"))
          .ok());
  const Outcome outcome = Shell(absl::StrCat(
      RONDO, " sim --profile H200 -- bash ", dir_.path(), "/script"));
  EXPECT_THAT(outcome.text, HasSubstr("\"memoryLimitBytes\":2147483648"));
  EXPECT_THAT(outcome.text, HasSubstr("\"weight\":3.0"));
  EXPECT_THAT(outcome.text, HasSubstr("\"class\":\"batch\""));
  EXPECT_THAT(outcome.text, HasSubstr("\"total_bytes\": 2147483648"));
  EXPECT_THAT(outcome.text, HasSubstr("::0\nlibrondo.so\n"))
      << "what slot 1 was granted for is gone with it";
}

TEST_F(RunTest, TheArbiterCanBeEndedBySignals) {
  const Outcome outcome = Run(absl::StrCat(
      "-- sh -c 'pid=$(", RONDO, " run --run-dir ", dir_.path(),
      "/run --status | grep -o \"arbiterPid.:[0-9]*\" | cut -d: -f2); "
      "grep SigBlk /proc/$pid/status'"));
  EXPECT_EQ(outcome.text, "SigBlk:\t0000000000000000\n");
}

TEST_F(RunTest, TheArbiterEndsThoughTheDriverHangs) {
  // The first parent is the simulated driver.
  ASSERT_TRUE(
      WriteFileAtomically(
          dir_.path() + "/script",
          absl::StrCat("cd ", dir_.path(), "\n", run_,
                       "-- sh -c 'kill -STOP $1; ", run_,
                       "--status' sh $PPID | grep -o 'arbiterPid.:[0-9]*' | "
                       "cut -d: -f2 >pid\n"
                       "timeout 20 tail -s 0.1 --pid=$(cat pid) -f /dev/null; "
                       "kill -CONT $PPID; cat run/arbiter.log\n"))
          .ok());
  EXPECT_THAT(Shell(absl::StrCat(RONDO, " sim --profile H200 -- bash ",
                                 dir_.path(), "/script"))
                  .text,
              HasSubstr("ending without having waited for "));
}

TEST_F(RunTest, WaitsForAnArbiterThatTakesItsTimeToEnd) {
  // It has gone when whoever has its lock has.
  const Outcome outcome = Shell(absl::StrCat(
      "cd ", dir_.path(), "; mkdir -m 700 run; exec 9>run/arbiter.lock; ",
      "flock 9; sleep 1 & exec 9>&-; ", RONDO, " sim --profile H200 -- ", run_,
      "-- echo it ran"));
  EXPECT_EQ(outcome.text, "it ran\n");
}

TEST_F(RunTest, TheArbiterMayHaveMoreDescriptorsThanTheFirstRun) {
  const Outcome outcome = Shell(absl::StrCat(
      "ulimit -Sn 64; ", RONDO, " sim --profile H200 -- ", run_,
      "-- sh -c 'pid=$(", run_,
      "--status | grep -o \"arbiterPid.:[0-9]*\" | cut -d: -f2); "
      "ulimit -n; grep -c \"open files  *64 \" /proc/$pid/limits'"));
  EXPECT_EQ(outcome.text, "64\n0\n");
}

TEST_F(RunTest, TheArbiterIsNotBoundAsTheFirstRunIs) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  // The library of slot 0 is there when no file may be written any more.
  const std::string pid = absl::StrCat(
      run_, "--status | grep -o 'arbiterPid.:[0-9]*' | cut -d: -f2");
  ASSERT_TRUE(
      WriteFileAtomically(
          dir_.path() + "/script",
          absl::StrCat("cd ", dir_.path(), "; ", run_, "-- true\n",
                       "kill -9 $(", pid, ")\nulimit -f 0\n", "nice -n 5 ",
                       run_, "-- bash -c \"cut -d' ' -f19 /proc/\\$(",
                       absl::StrReplaceAll(pid, {{"'", ""}}), ")/stat\"\n"))
          .ok());
  EXPECT_EQ(Shell(absl::StrCat(RONDO, " sim --profile H200 -- bash ",
                               dir_.path(), "/script"))
                .text,
            "0\n");
}

TEST_F(RunTest, TheFolderIsLockedAgainstThoseWhoTidyUp) {
  EXPECT_EQ(Script("flock -n run true; echo $?").text, "1\n");
}

TEST_F(RunTest, TheLogOfTheArbiterIsBegunAnewWhereItIsLong) {
  ASSERT_TRUE(MakeDirectories(dir_.path() + "/run", 0700).ok());
  ASSERT_TRUE(WriteFileAtomically(dir_.path() + "/run/arbiter.log",
                                  std::string(5 << 20, '\n'))
                  .ok());
  EXPECT_EQ(
      Script("cd run; stat -c '%n %s' arbiter.log.1; grep -c class arbiter.log")
          .text,
      absl::StrCat("arbiter.log.1 ", 5 << 20, "\n1\n"));
}

TEST(Arbiter, LooksAwayWhileItHasNoDescriptorsLeft) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UBSan looks at memory by a pipe, and there is none to have";
#endif
  const TempDir dir = *TempDir::Create("rondo-run-test");
  EventLoop loop;
  auto arbiter = Arbiter::Create(loop, rm::RealSystem(),
                                 {.run_dir = dir.path(), .home = dir.path()});
  ASSERT_TRUE(arbiter.ok()) << arbiter.status();
  const auto client = ConnectUnix(ControlSocket(dir.path()), SOCK_SEQPACKET);
  ASSERT_TRUE(client.ok()) << client.status();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const UniqueFd next(dup(STDERR_FILENO));  // the lowest free one
  rlimit none = before;
  none.rlim_cur = next.get();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  int rounds = 0;
  const MonotonicTime end = RealClock().Now() + std::chrono::milliseconds(90);
  for (; RealClock().Now() < end; ++rounds)
    loop.RunOnce(std::chrono::milliseconds(10));
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_LT(rounds, 200) << "a busy loop makes thousands";
}

TEST(Arbiter, IsNotKeptByThoseWhoOnlyAskForTheStatus) {
  const TempDir dir = *TempDir::Create("rondo-run-test");
  EventLoop loop;
  auto arbiter = Arbiter::Create(loop, rm::RealSystem(),
                                 {.run_dir = dir.path(),
                                  .home = dir.path(),
                                  .linger = std::chrono::milliseconds(300)});
  ASSERT_TRUE(arbiter.ok()) << arbiter.status();
  std::atomic<int> answers = 0;
  std::thread asks([&] {
    while (AskStatus(dir.path()).ok()) ++answers;
  });
  bool kept = false;
  loop.RunAfter(std::chrono::seconds(10), [&] {
    kept = true;
    loop.Stop();
  });
  loop.Run();
  arbiter->reset();
  asks.join();
  EXPECT_FALSE(kept);
  EXPECT_GT(answers, 1);
}

// Whoever ran before has left folders of slots, and nobody in them.
TEST(Arbiter, MakesNobodyWaitForTheProgramsOfOneThatEndedAsItShould) {
  const TempDir dir = *TempDir::Create("rondo-run-test");
  ASSERT_TRUE(MakeDirectories(dir.path() + "/GPU-x-0", 0755).ok());
  EventLoop loop;
  auto arbiter = Arbiter::Create(loop, rm::RealSystem(),
                                 {.run_dir = dir.path(),
                                  .home = dir.path(),
                                  .replay_window = std::chrono::hours(1)});
  ASSERT_TRUE(arbiter.ok()) << arbiter.status();
  const auto client = ConnectUnix(ControlSocket(dir.path()), SOCK_SEQPACKET);
  ASSERT_TRUE(client.ok()) << client.status();
  const std::string request = EncodeRequest({.slot = "GPU-x::0"});
  ASSERT_EQ(send(client->get(), request.data(), request.size(), 0),
            static_cast<ssize_t>(request.size()));
  share::TestShim shim(&loop);
  ASSERT_TRUE(share::RunUntil(loop, [&] {
    return shim.Connect(dir.path() + "/GPU-x-0/" + wire::kSocketName);
  }));
  ASSERT_TRUE(shim.Hello().has_value());
  EXPECT_TRUE(shim.Reserve(1, 4096));
}

}  // namespace
}  // namespace rondo::run
