// SPDX-License-Identifier: Apache-2.0
//
// The real executable on a simulated node, with the stand-in kubelet.

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "agent/test_agent.h"
#include "base/file.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::agent {
namespace {

using testing::HasSubstr;

constexpr char kGpu[] = "nvidia.com/gpu";

std::string Replicas(absl::string_view replicas) {
  return absl::StrCat(
      "sharing: {timeSlicing: {resources: [{name: gpu, replicas: ", replicas,
      "}]}}\n");
}

// gpu-operator #1144: edited, applied, and nothing happened.
TEST_F(AgentTest, AnEditIsAppliedWithoutANewRegistration) {
  Write("config", Replicas("4"));
  Start({"--config-file=" + Path("config")});
  ASSERT_TRUE(kubelet_.WaitForAllocatable(kGpu, 8));
  std::ofstream(Path("config")) << Replicas("6");  // in place, as an editor may
  EXPECT_TRUE(kubelet_.WaitForAllocatable(kGpu, 12));
  Write("config", Replicas("2"));
  EXPECT_TRUE(kubelet_.WaitForAllocatable(kGpu, 4));
  EXPECT_EQ(kubelet_.Counts(kGpu).registrations, 1);
}

// Between emptying and filling a file in place there is a valid, empty config.
TEST_F(AgentTest, AFileBeingWrittenInPlaceIsNotTakenForAnEmptyOne) {
  Write("config", Replicas("4"));
  Start({"--config-file=" + Path("config")});
  ASSERT_TRUE(kubelet_.WaitForAllocatable(kGpu, 8));
  EXPECT_THAT(Get("/metrics"), HasSubstr("\nrondo_config_generation 1\n"));
  std::ofstream file(Path("config"));
  ASSERT_TRUE(agent_->NextLineWith("is empty: looking again").ok());
  file << Replicas("6");
  file.close();
  EXPECT_TRUE(kubelet_.WaitForAllocatable(kGpu, 12));
  EXPECT_THAT(Get("/metrics"), HasSubstr("\nrondo_config_generation 2\n"));
  Write("config", "");  // meant
  EXPECT_TRUE(kubelet_.WaitForAllocatable(kGpu, 2));
}

TEST_F(AgentTest, ABadEditIsRefusedAndReported) {
  Write("config", Replicas("4"));
  Start({"--config-file=" + Path("config")});
  ASSERT_TRUE(kubelet_.WaitForAllocatable(kGpu, 8));
  EXPECT_THAT(Get("/readyz"), HasSubstr("200 OK"));
  Write("config", Replicas("0"));
  ASSERT_TRUE(agent_->NextLineWith("config refused: /").ok());
  EXPECT_EQ(kubelet_.Counts(kGpu).allocatable, 8);
  EXPECT_THAT(Get("/metrics"), HasSubstr("\nrondo_config_refused 1\n"));
  EXPECT_THAT(Get("/api/v1/node"),
              HasSubstr("number of replicas must be >= 2"));
  EXPECT_THAT(Get("/healthz"), HasSubstr("200 OK"));
  Write("config", Replicas("5"));
  EXPECT_TRUE(kubelet_.WaitForAllocatable(kGpu, 10));
  EXPECT_THAT(Get("/metrics"), HasSubstr("\nrondo_config_refused 0\n"));
}

TEST_F(AgentTest, ARestartBesideABadConfigGoesOnWithTheLastGoodOne) {
  Write("config", Replicas("4"));
  Start({"--config-file=" + Path("config")});
  ASSERT_TRUE(kubelet_.WaitForAllocatable(kGpu, 8));
  agent_->Signal(SIGKILL);
  agent_->Wait();
  Write("config", "sharing: {timeSlicing: }\n");
  Start({"--config-file=" + Path("config")});
  EXPECT_TRUE(agent_->NextLineWith("config that was in force before").ok());
  EXPECT_TRUE(kubelet_.WaitForAllocatable(kGpu, 8));
  Write("config", Replicas("3"));
  EXPECT_TRUE(kubelet_.WaitForAllocatable(kGpu, 6));
}

TEST_F(AgentTest, ABadFirstConfigIsExitCode2AndAMissingDriver1) {
  Write("config", "version: v2\n");
  Start({"--config-file=" + Path("config")});
  EXPECT_TRUE(
      agent_->NextLineWith("stopping: " + Path("config") + ": line 1").ok());
  EXPECT_EQ(agent_->Wait(), kExitUsage);
  Write("config", "version: v1\n");
  Start({"--config-file=" + Path("config")}, /*with_driver=*/false);
  EXPECT_EQ(agent_->Wait(), kExitFailure);
}

// The manifest runs on every node; one without a driver must not stop a
// roll-out.
TEST_F(AgentTest, WithoutADriverItWaitsAndIsReadyIfToldSo) {
  Start({"--fail-on-init-error=false"}, /*with_driver=*/false);
  EXPECT_THAT(Get("/readyz"), HasSubstr("200 OK"));
  agent_->Signal(SIGTERM);
  EXPECT_EQ(agent_->Wait(), kExitOk);
}

TEST_F(AgentTest, ChoosesAKeyOfAConfigMapAndFollowsItsSwap) {
  const std::string dir = Path("configs");
  ASSERT_TRUE(MakeDirectories(dir + "/..1").ok());
  ASSERT_TRUE(MakeDirectories(dir + "/..2").ok());
  Write("configs/..1/NVIDIA-A100-SXM4-80GB", Replicas("4"));
  Write("configs/..1/Tesla-T4", Replicas("8"));
  Write("configs/..2/NVIDIA-A100-SXM4-80GB", Replicas("6"));
  Write("configs/..2/Tesla-T4", Replicas("8"));
  ASSERT_EQ(symlink("..1", (dir + "/..data").c_str()), 0);
  for (const char* key : {"NVIDIA-A100-SXM4-80GB", "Tesla-T4"})
    ASSERT_EQ(symlink(absl::StrCat("..data/", key).c_str(),
                      absl::StrCat(dir, "/", key).c_str()),
              0);
  Start({"--config-dir=" + dir});
  EXPECT_TRUE(kubelet_.WaitForAllocatable(kGpu, 8)) << "the model's key";
  ASSERT_EQ(symlink("..2", (dir + "/..data_tmp").c_str()), 0);
  ASSERT_EQ(rename((dir + "/..data_tmp").c_str(), (dir + "/..data").c_str()),
            0);
  EXPECT_TRUE(kubelet_.WaitForAllocatable(kGpu, 12));
}

TEST_F(AgentTest, WaitsForAConfigThatIsNotThereYet) {
  Start({"--config-dir=" + Path("configs"), "--default-config=any"});
  EXPECT_THAT(Get("/readyz"), HasSubstr("503"));
  EXPECT_THAT(Get("/healthz"), HasSubstr("200 OK"));
  ASSERT_TRUE(MakeDirectories(Path("configs")).ok());
  Write("configs/any", Replicas("4"));
  EXPECT_TRUE(kubelet_.WaitForAllocatable(kGpu, 8));
  EXPECT_THAT(Get("/readyz"), HasSubstr("200 OK"));
}

TEST_F(AgentTest, RegistersAgainWhenKubeletRestarts) {
  Write("config", Replicas("4"));
  Start({"--config-file=" + Path("config")});
  ASSERT_TRUE(kubelet_.WaitForAllocatable(kGpu, 8));
  kubelet_.Stop();
  ASSERT_TRUE(kubelet_.Start().ok());
  EXPECT_TRUE(kubelet_.WaitFor(kGpu, [](const demo::ResourceCounts& c) {
    return c.allocatable == 8 && c.registrations == 2;
  }));
}

TEST_F(AgentTest, AGpuLostAtTheStartIsOfferedOnceItIsBack) {
  ASSERT_TRUE(node_->Lose(1).ok());
  Start({});
  ASSERT_TRUE(kubelet_.WaitForAllocatable(kGpu, 1));
  ASSERT_TRUE(node_->Clear(1).ok());
  EXPECT_TRUE(kubelet_.WaitForAllocatable(kGpu, 2));
}

TEST_F(AgentTest, EndsThoughNvmlHangs) {
  std::filesystem::copy_file(HANGING_NVML, node_->library_path(),
                             std::filesystem::copy_options::overwrite_existing);
  Start({});
  ASSERT_TRUE(agent_->NextLineWith("listening on").ok());
  agent_->Signal(SIGTERM);
  EXPECT_TRUE(agent_
                  ->NextLineWith("ending without having waited for "
                                 "nvmlInit_v2 (for ")
                  .ok());
  EXPECT_EQ(agent_->Wait(), kExitOk);
}

TEST_F(AgentTest, SighupReadsEverythingAnew) {
  Start({});
  ASSERT_TRUE(kubelet_.WaitForAllocatable(kGpu, 2));
  ASSERT_TRUE(agent_->NextLineWith("Running with config:").ok());
  agent_->Signal(SIGHUP);
  EXPECT_TRUE(agent_->NextLineWith("Running with config:").ok());
  agent_->Signal(SIGTERM);
  EXPECT_EQ(agent_->Wait(), kExitOk);
}

}  // namespace
}  // namespace rondo::agent
