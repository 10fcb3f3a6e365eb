// SPDX-License-Identifier: Apache-2.0
//
// `rondo run` by its executable, on a simulated node.

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/file.h"
#include "base/test_shell.h"
#include "base/unix_socket.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rm/system.h"
#include "run/arbiter.h"
#include "run/control.h"
#include "run/gpus.h"
#include "run/program.h"
#include "run/status.h"
#include "share/test_shim.h"

namespace rondo::run {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

class RunTest : public testing::Test {
 protected:
  // rondo run OPTIONS on a simulated H200.
  Outcome Run(const std::string& options) {
    return Shell(absl::StrCat(RONDO, " sim --profile H200 -- ", RONDO,
                              " run --run-dir ", dir_.path(), "/run ",
                              options));
  }
  // A shell script in the folder, itself under rondo run: so there is one
  // arbiter for the runs in it.
  Outcome Script(const std::string& text) {
    EXPECT_TRUE(
        WriteFileAtomically(dir_.path() + "/script",
                            absl::StrCat("cd ", dir_.path(), "\n", text))
            .ok());
    return Run(absl::StrCat("-- bash ", dir_.path(), "/script"));
  }

  TempDir dir_ = *TempDir::Create("rondo-run-test");
  const std::string run_ =
      absl::StrCat(RONDO, " run --run-dir ", dir_.path(), "/run ");
};

TEST_F(RunTest, TheProgramSeesItsLimitAsTheCardAndCannotPassIt) {
  const Outcome over = Run(absl::StrCat(
      "--memory 1Gi -- ", TENANT, " --memory 2048 --seconds 0.1 --turns 1000"));
  EXPECT_EQ(over.code, 0) << over.text;
  EXPECT_THAT(over.text, HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
  EXPECT_THAT(over.text, HasSubstr("\"total_bytes\": 1073741824"));
  const Outcome within = Run(absl::StrCat(
      "--memory 4Gi -- ", TENANT, " --memory 2048 --seconds 0.1 --turns 1000"));
  EXPECT_THAT(within.text, HasSubstr("\"memory_bytes\": 2147483648"));
  EXPECT_THAT(within.text, HasSubstr("\"memory_denied\": \"\""));
}

TEST_F(RunTest, OptionsOfTheProgramAreItsOwn) {
  EXPECT_THAT(Run("--weight 2 echo --memory=lots -n -- x").text,
              HasSubstr("--memory=lots -n -- x\n"));
  EXPECT_THAT(Run("-- sh -c 'echo \"$@\"' sh --status -- y").text,
              HasSubstr("--status -- y\n"));
}

TEST_F(RunTest, ExitsAsTheProgramDoes) {
  EXPECT_EQ(Run("-- true").code, 0);
  EXPECT_EQ(Run("-- sh -c 'exit 7'").code, 7);
  EXPECT_EQ(Run("-- sh -c 'kill -9 $$'").code, 128 + 9);
  const Outcome missing = Run("-- /nonexistent/program");
  EXPECT_EQ(missing.code, 127);
  EXPECT_THAT(missing.text, HasSubstr("/nonexistent/program"));
}

TEST_F(RunTest, StatusShowsTheLedgerBesideTheDriver) {
  // The program asks for the status of its own slot, once it holds memory.
  const Outcome outcome = Run(
      absl::StrCat("--memory 2Gi --weight 3 -- bash -c 'coproc ", TENANT,
                   " --memory 512 --seconds 0.1 --turns 1000 --wait; read -ru "
                   "${COPROC[0]}; ",
                   RONDO, " run --run-dir ", dir_.path(), "/run --status'"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("\"arbiterPid\":"));
  EXPECT_THAT(outcome.text, HasSubstr("\"weight\":3.0"));
  EXPECT_THAT(outcome.text, HasSubstr("\"memoryLimitBytes\":2147483648"));
  // 512 MiB and a context of 518.
  EXPECT_THAT(outcome.text,
              HasSubstr(absl::StrCat("\"memoryBytes\":", 1030 << 20)));
}

TEST_F(RunTest, StatusWhereNothingRuns) {
  const Outcome outcome = Shell(
      absl::StrCat(RONDO, " run --run-dir ", dir_.path(), "/run --status"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, HasSubstr("nothing runs in"));
  EXPECT_EQ(Run("").code, 2);
  EXPECT_EQ(Run("--status -- true").code, 2);
}

// A program that ends with the code when it gets the signal. Not by bash, which
// loses one that comes while it goes from one command to the next.
std::string Ends(int code, const char* signal, const std::string& meanwhile) {
  return absl::StrCat("-- sh -c 'sleep 1000 >/dev/null 2>&1 & trap \"kill $!; ",
                      "exit ", code, "\" ", signal, "; ", meanwhile, "; wait'");
}

TEST_F(RunTest, PassesSignalsOn) {
  // The program signals its parent, which is rondo run, and gets it back.
  EXPECT_EQ(Run(Ends(5, "TERM", "kill -TERM $PPID")).code, 5);
  // Somebody signals rondo run.
  EXPECT_EQ(Script(absl::StrCat("mkfifo up; exec 7<>up; ", run_,
                                Ends(6, "TERM", "echo >up"),
                                " & read -u 7 x; kill -TERM $!; wait $!; "
                                "echo code $?\n"))
                .text,
            "code 6\n");
}

TEST_F(RunTest, PassesOnWhateverIsSentToIt) {
  for (const char* signal : {"HUP", "TSTP", "ALRM", "XCPU", "RTMIN+3"})
    EXPECT_EQ(
        Run(Ends(5, signal, absl::StrCat("kill -", signal, " $PPID"))).code, 5)
        << signal;
}

TEST_F(RunTest, StopsAsAJobDoesWhileItsProgramIsStopped) {
  const Outcome outcome = Script(absl::StrCat(
      "set -m\n", run_, "-- sh -c 'kill -TSTP $$; exit 9' &\n",
      "wait %1; test $? -gt 128 && echo stopped\n", "fg %1; echo code $?\n"));
  EXPECT_THAT(outcome.text, HasSubstr("stopped\n"));
  EXPECT_THAT(outcome.text, HasSubstr("code 9\n"));
}

TEST_F(RunTest, EndsWithItsTerminal) {
  // The kernel tells the leader of the session alone, which is rondo run here.
  const Outcome outcome = Script(
      absl::StrCat("mkfifo alive; script -qc \"exec ", run_,
                   "-- sh -c 'exec 8>alive; echo >&8; exec sleep 1000'\" ",
                   "/dev/null </dev/null >/dev/null &\n",
                   "exec 9<alive; read x <&9; kill -9 $!\n",
                   "timeout 20 cat <&9 && echo ended\n"));
  EXPECT_THAT(outcome.text, HasSubstr("\nended\n"));
}

// A daemon that does `wait`, which ends at a line on its input, and only then
// comes to the GPU. It closes what it inherits and loses its parent.
class LateDaemonTest : public RunTest {
 protected:
  void KeepsItsSlot(const std::string& wait) {
    ASSERT_TRUE(WriteFileAtomically(
                    dir_.path() + "/daemon",
                    absl::StrCat("exec <>go >out 2>&1\n"
                                 "for fd in 3 4 5 6 7 8 9; do eval \"exec "
                                 "$fd>&-\"; done\n",
                                 wait, " ", TENANT,
                                 " --memory 4096 --seconds 0.1 --turns 1000\n"))
                    .ok());
    // Whoever reads the output of its rondo run sees the end of it all the
    // same, and runs that come later get other slots.
    const Outcome outcome = Script(absl::StrCat(
        "mkfifo go; exec 7<>go\n"
        "text=$(",
        run_,
        "--memory 2Gi -- sh -c 'setsid sh daemon & echo started')\n"
        "echo $text $?\n",
        run_, "-- printenv RONDO_SLOTS\n", run_,
        "--status\necho >&7\n"
        // When it has ended, its slot is free.
        "for i in $(seq 1000); do slot=$(",
        run_,
        "-- printenv RONDO_SLOTS); case $slot in *::1) break;; esac; done\n"
        "cat out; echo then $slot\n"));
    EXPECT_THAT(outcome.text, HasSubstr("started 0\n"));
    EXPECT_THAT(outcome.text, HasSubstr("::2\n")) << "0 is the outer's";
    EXPECT_THAT(outcome.text, HasSubstr("\"memoryLimitBytes\":2147483648"));
    EXPECT_THAT(outcome.text, HasSubstr("\"total_bytes\": 2147483648"));
    EXPECT_THAT(outcome.text, HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
    EXPECT_THAT(outcome.text, HasSubstr("::1\n"));
  }
};

TEST_F(LateDaemonTest, KeepsItsSlotByItsEnvironment) {
  KeepsItsSlot("read x; exec");
}

TEST_F(LateDaemonTest, KeepsItsSlotWhereItsTitleIsWrittenOverThat) {
  KeepsItsSlot(absl::StrCat("exec ", TITLED));
}

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

TEST_F(RunTest, ARelativeFolderHoldsWhereverTheProgramGoes) {
  const Outcome outcome = Shell(absl::StrCat(
      "cd ", dir_.path(), " && ", RONDO, " sim --profile H200 -- ", RONDO,
      " run --run-dir run --memory 1Gi -- sh -c 'cd / && exec ", TENANT,
      " --memory 2048 --seconds 0.1 --turns 1000'"));
  EXPECT_THAT(outcome.text, HasSubstr("\"total_bytes\": 1073741824"));
}

TEST_F(RunTest, ADaemonKeepsTheSlotOfTheRunThatStartedIt) {
  // The outer run starts it, by an inner one that ends before it does.
  const std::string run =
      absl::StrCat(RONDO, " run --run-dir ", dir_.path(), "/run ");
  ASSERT_TRUE(
      WriteFileAtomically(
          dir_.path() + "/outer",
          absl::StrCat("cd ", dir_.path(),
                       "; mkfifo in out; exec 5<>in 6<>out\n", run,
                       "--memory 2Gi -- sh -c 'setsid ", TENANT,
                       " --memory 512 --seconds 0.1 --turns 1000 --wait "
                       "<in >out 2>err & head -n1 out >ready'\n",
                       run, "-- printenv RONDO_SLOTS\n", run,
                       "--status\necho >&5; read -r report <&6\n"))
          .ok());
  const Outcome outcome = Run(absl::StrCat("-- sh ", dir_.path(), "/outer"));
  EXPECT_THAT(outcome.text, HasSubstr("::2\n")) << "0 is the outer's";
  EXPECT_THAT(outcome.text, HasSubstr("\"memoryLimitBytes\":2147483648"));
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

TEST_F(RunTest, CanBeEndedWhileTheArbiterDoesNotAnswer) {
  const std::string run =
      absl::StrCat(RONDO, " run --run-dir ", dir_.path(), "/run ");
  const Outcome outcome = Run(
      absl::StrCat("-- sh -c 'pid=$(", run,
                   "--status | grep -o \"arbiterPid.:[0-9]*\" | cut -d: -f2); "
                   "kill -STOP $pid; timeout -k 5 0.1 ",
                   run, "-- true; echo code $?; kill -CONT $pid'"));
  EXPECT_EQ(outcome.text, "code 124\n");
}

TEST_F(RunTest, SaysWhatIsWrong) {
  struct Row {
    std::string options, text;
  };
  const std::string options = " (`rondo run --help` tells the options)";
  const Row rows[] = {
      {"--memroy=8Gi -- true",
       "there is no option --memroy; did you mean --memory?" + options},
      {"--memory 8Gi --wieght 3 true",
       "there is no option --wieght; did you mean --weight?" + options},
      {"--class fast -- true",
       "--class: \"fast\" is not a class: write latency, standard or batch"},
      {"--class Batch -- true",
       "--class: \"Batch\" is not a class: write batch (classes are latency, "
       "standard and batch)"},
      {"--memory lots -- true",
       "--memory: \"lots\" is not an amount of memory: write a quantity such "
       "as 8Gi, at least 64Mi"},
      {"--memory 8 -- true",
       "--memory: \"8\" has no unit, so it means bytes: write a quantity such "
       "as 8Gi"},
      {"--memory 8gb -- true",
       "--memory: \"8gb\" has the unknown unit \"gb\": write a quantity "
       "such as 8Gi"},
      {"--memory -8Gi -- true",
       "--memory: \"-8Gi\" is negative: write a quantity such as 8Gi, at least "
       "64Mi"},
      {"--memory '' -- true",
       "--memory: \"\" is empty: write a quantity such as 8Gi, at least 64Mi"},
      {"--memory= -- true",
       "--memory: \"\" is empty: write a quantity such as 8Gi, at least 64Mi"},
      {"--memory -- true", "--memory needs a value" + options},
      {"--memory", "--memory needs a value" + options},
      {"--weight 0 -- true",
       "--weight: \"0\" is under 0.001: write a number from 0.001 to 1000, "
       "such as 3"},
      {"--weight three -- true",
       "--weight: \"three\" is not a number: write a number from 0.001 to "
       "1000, such as 3"},
      {"--weight 1 --weight 2 -- true",
       "--weight stands more than once" + options},
      {"--limit 50% -- true", "--limit: \"50%\" is a percentage: write 0.5"},
      {"--limit 50 -- true", "--limit: \"50\" is above 1: write 0.5"},
      {"--limit -0.5 -- true",
       "--limit: \"-0.5\" is not above 0: write a part of the GPU's time above "
       "0, at most 1, such as 0.5"},
      {"--limit= -- true",
       "--limit: \"\" is empty: write a part of the GPU's time above 0, at "
       "most 1, such as 0.5"},
      {"--gpu all -- true",
       "--gpu: \"all\" is not the index of a GPU: write one index as "
       "`nvidia-smi` counts, such as 0"},
      {"--gpu -1 -- true",
       "--gpu: \"-1\" is not the index of a GPU: write one index as "
       "`nvidia-smi` counts, such as 0"},
      {"--gpu 0,1 -- true",
       "--gpu: \"0,1\" is not the index of a GPU: write one index as "
       "`nvidia-smi` counts, such as 0"},
      {"--gpu 99999999999 -- true",
       "--gpu: \"99999999999\" is not the index of a GPU: write one index as "
       "`nvidia-smi` counts, such as 0"},
      {"--memory 8Gi", "CMD is required" + options},
      {"--status -- true", "--status takes no CMD" + options}};
  // No GPU is needed to see these.
  for (const Row& row : rows) {
    const Outcome outcome = Shell(absl::StrCat(RONDO, " run ", row.options));
    EXPECT_EQ(outcome.code, 2) << row.options;
    EXPECT_EQ(outcome.text, absl::StrCat("rondo run: ", row.text, "\n"));
  }
  for (const Row& row :
       {Row{"--memory 800Gi -- true", "--memory: GPU 0 has 143771Mi in all"},
        Row{"--gpu 3 -- true", "no GPU 3: this machine has 1"}}) {
    const Outcome outcome = Run(row.options);
    EXPECT_EQ(outcome.code, 2) << row.options;
    EXPECT_THAT(outcome.text, HasSubstr(row.text));
  }
  // In these the program would run without its limit.
  const std::string long_name(100, 'x');
  for (const auto& [folder, text] :
       {std::pair<std::string, std::string>{"a b", "has a space, a colon"},
        {"a$LIB", "has a space, a colon"},
        {long_name, "is longer than 50 bytes"}}) {
    const Outcome outcome =
        Shell(absl::StrCat(RONDO, " run --run-dir '", dir_.path(), "/", folder,
                           "' -- echo it ran"));
    EXPECT_EQ(outcome.code, 2) << folder;
    EXPECT_THAT(outcome.text, HasSubstr(text));
  }
  const Outcome everybodys =
      Shell(absl::StrCat("mkdir -m 1777 ", dir_.path(), "/tmp; ", RONDO,
                         " run --run-dir ", dir_.path(), "/tmp -- true"));
  EXPECT_EQ(everybodys.code, 1);
  EXPECT_THAT(everybodys.text, HasSubstr("that everybody may write to"));
  // A folder without an arbiter that has found one.
  const Outcome no_driver =
      Shell(absl::StrCat("env -u LD_LIBRARY_PATH ", RONDO, " run --run-dir ",
                         dir_.path(), "/other -- true"));
  EXPECT_EQ(no_driver.code, 1);
  EXPECT_THAT(no_driver.text, HasSubstr("no NVIDIA driver"));
}

TEST_F(RunTest, RefusesADriverThatIsTooOld) {
  const std::string profile = dir_.path() + "/old.yaml";
  ASSERT_TRUE(
      WriteFileAtomically(profile, "driver: 525.60.13\ngpus: [{model: H200}]\n")
          .ok());
  const Outcome outcome =
      Shell(absl::StrCat(RONDO, " sim --profile ", profile, " -- ", RONDO,
                         " run --run-dir ", dir_.path(), "/run -- true"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, HasSubstr("driver 525.60.13: its interface"));
}

TEST_F(RunTest, TheArbiterAloneAsksNvml) {
  // The inner runs would not find it; the outer one holds the arbiter.
  const std::string inner =
      absl::StrCat("env -u LD_LIBRARY_PATH ", RONDO, " run --run-dir ",
                   dir_.path(), "/run ");
  const Outcome outcome =
      Run(absl::StrCat("-- sh -c 'echo outer $CUDA_VISIBLE_DEVICES; ", inner,
                       "-- printenv CUDA_VISIBLE_DEVICES RONDO_SLOTS; ", inner,
                       "--gpu 1 -- true; echo code $?'"));
  EXPECT_THAT(outcome.text, MatchesRegex("outer (GPU-[-0-9a-f]+)\n"
                                         "GPU-[-0-9a-f]+\n"
                                         "GPU-[-0-9a-f]+::1\n"
                                         "rondo run: no GPU 1: this machine "
                                         "has 1\n"
                                         "code 2\n"));
}

TEST(WithoutSlot, LeavesWhatARunDidNotAdd) {
  std::string words[] = {"A=1", "RONDO_SLOTS=g::1",
                         "LD_PRELOAD=/r/lib/librondo.so /x/liby.so",
                         "RONDO_RUN_DIR=/r", "RONDO_LOG_LEVEL=debug"};
  char* environment[] = {words[0].data(), words[1].data(), words[2].data(),
                         words[3].data(), words[4].data(), nullptr};
  EXPECT_THAT(WithoutSlot(environment),
              testing::ElementsAre("A=1", "LD_PRELOAD=/x/liby.so",
                                   "RONDO_LOG_LEVEL=debug"));
}

TEST(Preload, PutsTheShimFirst) {
  EXPECT_EQ(Preload("/a.so", nullptr), "/a.so");
  EXPECT_EQ(Preload("/a.so", ""), "/a.so");
  EXPECT_EQ(Preload("/a.so", "/b.so"), "/a.so:/b.so");
  EXPECT_EQ(Preload("/r/librondo.so", "/b.so /q/librondo.so:/c.so"),
            "/r/librondo.so:/b.so:/c.so");
}

TEST(Control, MessagesSurviveTheTrip) {
  Request request{.gpu = 2,
                  .memory_bytes = 1 << 30,
                  .tenant = {.cls = share::TenantClass::kLatency,
                             .weight = 2.5,
                             .limit = 0.5},
                  .slot = "GPU-x::1"};
  const auto decoded = DecodeRequest(EncodeRequest(request));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->gpu, 2);
  EXPECT_EQ(decoded->memory_bytes, request.memory_bytes);
  EXPECT_EQ(decoded->tenant.cls, request.tenant.cls);
  EXPECT_EQ(decoded->tenant.weight, 2.5);
  EXPECT_EQ(decoded->slot, "GPU-x::1");
  EXPECT_EQ(*DecodeAnswer(EncodeAnswer(std::string("s"))), "s");
  EXPECT_EQ(
      DecodeAnswer(EncodeAnswer(absl::InternalError("no"))).status().message(),
      "no");
  EXPECT_TRUE(absl::IsInvalidArgument(
      DecodeAnswer(EncodeAnswer(absl::InvalidArgumentError("no"))).status()));
  EXPECT_EQ(*DecodeNotice(EncodeNotice("n\xff")), "n\xEF\xBF\xBD");
  EXPECT_EQ(GpuOfSlot("GPU-x::1"), "GPU-x");
  EXPECT_EQ(GpuOfSlot(""), "");
  for (const char* bad : {"", "[]", "{}", "{\"gpu\":1}"}) {
    EXPECT_FALSE(DecodeRequest(bad).ok()) << bad;
    EXPECT_FALSE(DecodeAnswer(bad).ok()) << bad;
    EXPECT_FALSE(DecodeNotice(bad).ok()) << bad;
  }
}

TEST(RenderStatus, IsJsonWhateverProgramsSent) {
  share::ShareStats stats;
  stats.gpus.push_back({.uuid = "GPU-x"});
  stats.slots.push_back(
      {.slot = "GPU-x::1", .processes = {{.driver_version = "580\xff"}}});
  const std::string text = RenderStatus(stats, 7);
  EXPECT_THAT(text, HasSubstr("{\"arbiterPid\":7,\"gpus\":[{"));
  EXPECT_THAT(text, HasSubstr("\"driverVersion\":\"580\xEF\xBF\xBD\""));
  EXPECT_THAT(text, HasSubstr("\"pid\":null"));
  EXPECT_THAT(text, HasSubstr("\"reason\":null"));
  EXPECT_THAT(text, HasSubstr("\"activitySource\":null"));
}

}  // namespace
}  // namespace rondo::run
