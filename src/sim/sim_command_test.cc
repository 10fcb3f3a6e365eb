// SPDX-License-Identifier: Apache-2.0
//
// The executable itself: `rondo sim` as people type it.
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/node.h"

namespace rondo::sim {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A child with its output on a pipe.
class Program {
 public:
  explicit Program(std::vector<std::string> words) {
    int fds[2];
    if (pipe(fds) != 0) abort();
    output_ = fdopen(fds[0], "r");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(fds[1], 1);
      dup2(fds[1], 2);
      execv(argv[0], argv.data());
      _exit(99);
    }
    close(fds[1]);
  }
  Program(const Program&) = delete;
  ~Program() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    fclose(output_);
  }

  // Empty at the end.
  std::string Line() {
    char line[4096];
    if (fgets(line, sizeof(line), output_) == nullptr) return "";
    return std::string(absl::StripSuffix(line, "\n"));
  }
  std::string Rest() {
    std::string text;
    char part[4096];
    while (size_t n = fread(part, 1, sizeof(part), output_))
      text.append(part, n);
    return text;
  }
  void Signal(int signal) { kill(pid_, signal); }
  int ExitCode() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  FILE* output_;
  pid_t pid_;
};

struct Outcome {
  int code;
  std::string output;
};

std::vector<std::string> Sim(std::vector<std::string> words) {
  words.insert(words.begin(), {RONDO, "sim"});
  return words;
}

Outcome RunSim(std::vector<std::string> words) {
  Program program(Sim(std::move(words)));
  std::string output = program.Rest();
  return {program.ExitCode(), std::move(output)};
}

TEST(SimCommand, ListShowsModels) {
  const Outcome list = RunSim({"list"});
  EXPECT_EQ(list.code, 0);
  EXPECT_THAT(list.output, HasSubstr("A100-SXM4-80GB"));
  EXPECT_THAT(list.output, HasSubstr("7g.141gb"));
}

TEST(SimCommand, AProgramSeesTheNode) {
  const Outcome run = RunSim({"--profile", "2xA10,H200", "--", PROBE});
  EXPECT_EQ(run.code, 0) << run.output;
  const std::vector<std::string> lines = absl::StrSplit(run.output, '\n');
  ASSERT_EQ(lines.size(), 4) << run.output;
  EXPECT_THAT(lines[0], StartsWith("0 GPU-"));
  EXPECT_THAT(lines[1], HasSubstr(" NVIDIA A10"));
  EXPECT_THAT(lines[2], HasSubstr(" NVIDIA H200"));
}

TEST(SimCommand, AProgramUsesTheGpu) {
  const Outcome run = RunSim({"--profile", "2xA10", "--", TENANT, "--device",
                              "1", "--seconds", "0.1", "--memory", "100"});
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("\"memory_bytes\": 104857600,"));
}

TEST(SimCommand, ADriverRunsByItself) {
  const auto dir = TempDir::Create("rondo-sim-test");
  ASSERT_TRUE(dir.ok());
  const std::string lib = absl::StrCat(dir->path(), "/usr/lib64");
  const std::string tenant =
      absl::StrCat("LD_LIBRARY_PATH=", lib, " LD_PRELOAD=", lib,
                   "/librondo-sim-driver.so ", TENANT, " --seconds 0.1");
  EXPECT_EQ(RunSim({"--profile", "T4", "--state", dir->path()}).code, 0);
  Program without({"/bin/sh", "-c", tenant});
  EXPECT_THAT(without.Rest(), HasSubstr("CUDA_ERROR_SYSTEM_NOT_READY"));
  Program driver(Sim({"driver", "--state", dir->path()}));
  EXPECT_THAT(driver.Line(), StartsWith("The driver of "));
  Program with({"/bin/sh", "-c", tenant});
  EXPECT_THAT(with.Rest(), HasSubstr("\"share\": 0.9"));
  driver.Signal(SIGTERM);
  EXPECT_EQ(driver.ExitCode(), 0);
}

TEST(SimCommand, ExitStatusIsTheProgramsAndTheNodeGoes) {
  const Outcome run = RunSim({"--profile", "T4", "--", "/bin/sh", "-c",
                              "echo $RONDO_SIM_STATE; exit 7"});
  EXPECT_EQ(run.code, 7);
  const std::string dir(absl::StripSuffix(run.output, "\n"));
  EXPECT_THAT(dir, HasSubstr("rondo-sim"));
  EXPECT_NE(access(dir.c_str(), F_OK), 0);
  EXPECT_EQ(
      RunSim({"--profile", "T4", "--", "/bin/sh", "-c", "kill -9 $$"}).code,
      128 + 9);
  EXPECT_EQ(RunSim({"--profile", "T4", "--", "/no/such/program"}).code, 127);
  EXPECT_EQ(RunSim({"--profile", "T4", "--", "/"}).code, 126);
}

// MIG needs the node's /proc, passDeviceSpecs its /dev.
TEST(SimCommand, AnAgentFindsTheRestOfTheNode) {
  const Outcome run =
      RunSim({"--profile", "A100+3g.40gb", "--", "/bin/sh", "-c",
              "test -e $RONDO_ROOT/proc/driver/nvidia-caps/mig-minors && "
              "test -e $RONDO_ROOT/dev/nvidia0"});
  EXPECT_EQ(run.code, 0) << run.output;
}

TEST(SimCommand, SignalsArePassedOn) {
  Program program(Sim({"--profile", "T4", "--", PROBE, "signal"}));
  ASSERT_EQ(program.Line(), "ready");
  program.Signal(SIGTERM);
  EXPECT_EQ(program.ExitCode(), 42);
}

TEST(SimCommand, AFaultReachesAWaitingProgram) {
  auto dir = TempDir::Create("sim");
  ASSERT_TRUE(dir.ok());
  Program program(
      Sim({"--profile", "2xT4", "--state", dir->path(), "--", PROBE, "wait"}));
  ASSERT_EQ(program.Line(), "ready");
  const Outcome fault =
      RunSim({"fault", "--state", dir->path(), "--gpu", "1", "xid", "79"});
  EXPECT_EQ(fault.code, 0) << fault.output;
  EXPECT_EQ(program.Line(),
            absl::StrCat("79 ", *Node::Open(dir->path())->Uuid(1)));
  EXPECT_EQ(program.ExitCode(), 0);
}

TEST(SimCommand, FaultsAndProcessesFromInsideTheNode) {
  auto dir = TempDir::Create("sim");
  ASSERT_TRUE(dir.ok());
  const std::string rondo = absl::StrCat(RONDO, " sim ");
  const Outcome run = RunSim(
      {"--profile", "2xT4", "--state", dir->path(), "--", "/bin/sh", "-ec",
       absl::StrCat(rondo, "fault --gpu 0 lost; ", rondo,
                    "process --gpu 1 --pid 77 --memory 2GiB --sm 30; ",
                    PROBE)});
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("GPU 0: GetHandleByIndex: GPU is lost\n1"));
  EXPECT_EQ(
      RunSim({"fault", "--state", dir->path(), "--gpu", "0", "clear"}).code, 0);
  EXPECT_EQ(RunSim({"process", "--state", dir->path(), "--gpu", "1", "--pid",
                    "77", "--remove"})
                .code,
            0);
  // It is gone now.
  EXPECT_EQ(RunSim({"process", "--state", dir->path(), "--gpu", "1", "--pid",
                    "77", "--remove"})
                .code,
            1);
}

TEST(SimCommand, StagesWithoutAProgram) {
  auto dir = TempDir::Create("sim");
  ASSERT_TRUE(dir.ok());
  const std::string node = dir->path() + "/deep/node";
  const Outcome run = RunSim({"--profile", "8xH100", "--state", node});
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("A node of 8 GPUs is staged in "));
  EXPECT_EQ(Node::Open(node)->gpu_count(), 8);
}

TEST(SimCommand, BadUsageIsExitCode2AndSaysWhatToDo) {
  auto dir = TempDir::Create("sim");
  ASSERT_TRUE(dir.ok());
  ASSERT_TRUE(Node::Create("RTX-4090", dir->path()).ok());
  const std::string at = dir->path();
  const struct {
    std::vector<std::string> words;
    const char* output;
  } kRows[] = {
      {{}, "give --profile, such as 8xH100"},
      {{"--profile", "T4"}, "give a program to run after --"},
      {{"--profile", "T4", "true"}, "what is 'true'? A program to run follows"},
      {{"--profile", "T5", "--", "true"}, "no GPU model 'T5'; known are"},
      {{"fault", "--gpu", "0", "xid", "79"}, "which node? Give --state DIR"},
      {{"fault", "--state", at, "--gpu", "0", "xid"}, "xid takes a number"},
      {{"fault", "--state", at, "--gpu", "0", "xid", "-1"}, "not in range"},
      {{"fault", "--state", at, "--gpu", "0", "melt"}, "melt"},
      {{"fault", "--state", at, "--gpu", "4", "lost"}, "has 0 to 0"},
      {{"fault", "--state", at, "--gpu", "0", "ecc"}, "4090 has no ECC"},
      {{"process", "--state", at, "--gpu", "0", "--pid", "1", "--memory", "x"},
       "'x' is not an amount of memory"},
  };
  ASSERT_EQ(unsetenv("RONDO_SIM_STATE"), 0);
  for (const auto& row : kRows) {
    const Outcome run = RunSim(row.words);
    EXPECT_EQ(run.code, 2) << row.output << run.output;
    EXPECT_THAT(run.output, HasSubstr(row.output));
  }
}

}  // namespace
}  // namespace rondo::sim
