// SPDX-License-Identifier: Apache-2.0
//
// `rondo run` by its executable, on a simulated node.

#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "run/program.h"
#include "run/test_run.h"

namespace rondo::run {
namespace {

using testing::HasSubstr;

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
  const Outcome folder = Run("-- /etc");
  EXPECT_EQ(folder.code, 126);
  EXPECT_EQ(folder.text, "rondo run: /etc: Permission denied\n");
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

// As those do that set the terminal right first when Ctrl-Z is pressed.
TEST_F(RunTest, StopsWithAProgramThatStopsItselfAtATerminal) {
  ASSERT_TRUE(
      WriteFileAtomically(
          dir_.path() + "/shell",
          absl::StrCat("set -m\n", run_, "-- sh -c 'kill -STOP $$; exit 9'\n",
                       "echo then $?\nfg %1 >fg; echo code $?\n",
                       // The shell inside has the terminal, by its own group.
                       run_, "-- bash -mc 'kill -STOP $$; exit 8'\n",
                       "echo then $?\nfg %1 >fg; echo code $?\n"))
          .ok());
  const Outcome outcome =
      Script("timeout -k 1 60 script -qec 'bash shell' /dev/null </dev/null\n");
  EXPECT_EQ(outcome.text, "then 147\r\ncode 9\r\nthen 147\r\ncode 8\r\n");
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
       "--limit: \"-0.5\" is under 0.001: write a part of the GPU's time from "
       "0.001 to 1, such as 0.5"},
      {"--limit 1e-9 -- true",
       "--limit: \"1e-9\" is under 0.001: write a part of the GPU's time from "
       "0.001 to 1, such as 0.5"},
      {"--limit= -- true",
       "--limit: \"\" is empty: write a part of the GPU's time from 0.001 to "
       "1, such as 0.5"},
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

}  // namespace
}  // namespace rondo::run
