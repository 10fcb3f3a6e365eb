// SPDX-License-Identifier: Apache-2.0

#include "run/gpus.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "run/test_run.h"

namespace rondo::run {
namespace {

using testing::MatchesRegex;

TEST_F(RunTest, KeepsToTheGpuThatIsVisible) {
  const std::string script = dir_.path() + "/script";
  ASSERT_TRUE(
      WriteFileAtomically(
          script,
          absl::StrCat(
              "run() { ", run_, "$1 -- printenv CUDA_VISIBLE_DEVICES; }\n",
              "first=$(run '--gpu 0') second=$(run '--gpu 1')\n"
              "is() { case $(run) in $first) echo first;; $second) echo "
              "second;;"
              " esac; }\n"
              "is\n"
              "export CUDA_VISIBLE_DEVICES=$second; is\n"
              "CUDA_VISIBLE_DEVICES=${second%???}; is\n"
              "test $(run '--gpu 0') = $first && echo as told\n"
              "for CUDA_VISIBLE_DEVICES in 1 GPU- GPU-0-0 ''; do is; done\n"
              "export CUDA_DEVICE_ORDER=PCI_BUS_ID\n"
              "for CUDA_VISIBLE_DEVICES in 1 2; do is; done\n"
              "CUDA_VISIBLE_DEVICES=$second; ",
              run_, "-- ", run_,
              "-- printenv CUDA_VISIBLE_DEVICES | grep -q $second && "
              "echo inside too\n"))
          .ok());
  const Outcome outcome =
      Shell(absl::StrCat("env -u CUDA_VISIBLE_DEVICES -u CUDA_DEVICE_ORDER ",
                         RONDO, " sim --profile 2xH200 -- bash ", script));
  EXPECT_EQ(outcome.text,
            "first\nsecond\nsecond\nas told\n"
            "rondo run: CUDA_VISIBLE_DEVICES=1 counts the fastest GPU first, "
            "unlike nvidia-smi; give --gpu with the index that nvidia-smi "
            "shows\n"
            "rondo run: CUDA_VISIBLE_DEVICES=GPU- names more than one GPU of "
            "this machine; give --gpu\n"
            "rondo run: CUDA_VISIBLE_DEVICES=GPU-0-0 names no GPU of this "
            "machine; give --gpu\n"
            "rondo run: CUDA_VISIBLE_DEVICES=\"\" leaves no GPU; give --gpu, "
            "the index that nvidia-smi shows\n"
            "second\n"
            "rondo run: no GPU 2: this machine has 2\n"
            "inside too\n");
  const char* const index = "; give --gpu, the index that nvidia-smi shows\n";
  for (const auto& [list, wrong] :
       {std::pair<const char*, const char*>{
            "0,1", " names several devices, and rondo run shares one GPU"},
        {"MIG-GPU-1/2/3",
         " names a MIG device, and rondo run shares whole GPUs"},
        {"-1", " names no GPU"},
        {"all", " names no GPU"}}) {
    const Outcome refused = Shell(absl::StrCat("CUDA_VISIBLE_DEVICES=", list,
                                               " ", run_, "-- echo it ran"));
    EXPECT_EQ(refused.code, 2);
    EXPECT_EQ(refused.text, absl::StrCat("rondo run: CUDA_VISIBLE_DEVICES=\"",
                                         list, "\"", wrong, index));
  }
  EXPECT_THAT(
      Shell(absl::StrCat("CUDA_VISIBLE_DEVICES=0 ", RONDO,
                         " sim --profile H200 -- ", RONDO, " run --run-dir ",
                         dir_.path(), "/other -- echo it ran"))
          .text,
      "it ran\n");
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

}  // namespace
}  // namespace rondo::run
