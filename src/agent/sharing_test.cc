// SPDX-License-Identifier: Apache-2.0
//
// A pod's way through the agent: the slots that a config makes; then programs
// started with what Allocate answered, on the simulated kernel driver.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/test_pod.h"
#include "base/clock.h"
#include "base/unix_socket.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "sim/driver/node_driver.h"
#include "sim/driver/protocol.h"
#include "sim/driver/test_tenant.h"

namespace rondo::agent {
namespace {

using nlohmann::json;
using sim::driver::Tenant;
using testing::AllOf;
using testing::Gt;
using testing::HasSubstr;
using testing::Le;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kGiB = 1 << 30;

TEST_F(PodTest, ALimitIsKeptAndShown) {
  Config("rondo: {memory: enforce, slotMemory: 2Gi, injection: env}\n");
  StartAgent();
  const demo::Grant grant = Admit("greedy"), other = Admit("modest");
  EXPECT_EQ(grant.envs.at("LD_PRELOAD"), "/usr/local/rondo/librondo.so");
  EXPECT_EQ(grant.envs.at("RONDO_SLOTS"), grant.device_ids.at(0));
  EXPECT_EQ(OnHost(grant, "/usr/local/rondo"), Path("state/lib"));
  EXPECT_EQ(OnHost(grant, "/run/rondo/" + Folder(grant)),
            Path("state/" + Folder(grant)));

  auto greedy = Run(grant, "--seconds 0 --memory 4096 --chunk 64");
  auto modest = Run(other, "--seconds 0 --memory 1024 --chunk 64");
  const json slot = Slot(grant, [](const json& s) { return s["denials"] > 0; });
  EXPECT_EQ(slot["memoryLimitBytes"], 2 * kGiB);
  EXPECT_GE(slot["denials"], 1) << slot;
  EXPECT_EQ(slot["processes"][0]["pid"], greedy->pid());
  EXPECT_TRUE(slot["governed"]) << slot["reason"];
  EXPECT_THAT(slot["memoryUsedBytes"].get<uint64_t>(),
              AllOf(Gt(2 * kGiB - 64 * kMiB), Le(2 * kGiB)));
  greedy->Begin();
  EXPECT_THAT(greedy->Finish(), HasSubstr("OUT_OF_MEMORY"));
  EXPECT_EQ(greedy->Number("total_bytes"), 2.0 * kGiB);
  EXPECT_GE(greedy->Number("memory_bytes"), 1024.0 * kMiB);
  EXPECT_LT(greedy->Number("memory_bytes"), 2.0 * kGiB);
  modest->Begin();
  EXPECT_THAT(modest->Finish(), Not(HasSubstr("OUT_OF_MEMORY")));
  EXPECT_EQ(modest->Number("memory_bytes"), 1024.0 * kMiB);
}

// A program without the library, beside one with it.
TEST_F(PodTest, WhoUsesASharedGpuAndIsInNoSlotIsTold) {
  Config("rondo: {memory: enforce, slotMemory: 2Gi, injection: env}\n");
  StartAgent();
  const demo::Grant grant = Admit("a");
  const std::string uuid = grant.envs.at("NVIDIA_VISIBLE_DEVICES");
  auto tenant = Run(grant, "--seconds 0 --memory 1024 --chunk 64");
  sim::driver::Tenant foreign(TENANT, *node_, "--seconds 0 --memory 512", "",
                              {"CUDA_VISIBLE_DEVICES=" + uuid});
  const std::string line =
      absl::StrCat("\nrondo_gpu_foreign_processes{uuid=\"", uuid, "\"} ");
  const auto until = [&](const std::string& wanted) {
    const MonotonicTime end = RealClock().Now() + std::chrono::seconds(20);
    std::string text;
    do text = Get("/metrics");
    while (!absl::StrContains(text, wanted) && RealClock().Now() < end);
    return text;
  };
  EXPECT_THAT(until(line + "1\n"),
              HasSubstr(absl::StrCat("\nrondo_gpu_foreign_memory_bytes{uuid=\"",
                                     uuid, "\"} ", (518 + 512) * kMiB, "\n")));
  const json sharing = Sharing();
  json processes;
  for (const json& gpu : sharing["gpus"])
    if (gpu["uuid"] == uuid) processes = gpu["foreignProcesses"];
  ASSERT_EQ(processes.size(), 1u) << processes;
  EXPECT_EQ(processes[0]["pid"], foreign.pid());
  EXPECT_EQ(processes[0]["name"], "rondo-tenant");
  const auto told = agent_->NextLineWith(
      absl::StrCat(uuid, ": process ", foreign.pid(), " (rondo-tenant) uses"));
  EXPECT_TRUE(told.ok()) << told.status();
  foreign.Kill();
  EXPECT_THAT(until(line + "0\n"), HasSubstr(line + "0\n"));
}

TEST_F(PodTest, AnAgentThatWasKilledFindsItsPodsAgain) {
  Config("rondo: {memory: enforce, slotMemory: 2Gi, injection: env}\n");
  StartAgent();
  const demo::Grant grant = Admit("a");
  auto tenant = Run(grant, "--seconds 0 --memory 1024 --chunk 64");
  const auto held = [](const json& slot) {
    return slot["memoryUsedBytes"] >= 1024 * kMiB;
  };
  const json before = Slot(grant, held);
  ASSERT_TRUE(!before.empty() && held(before)) << before;
  agent_->Signal(SIGKILL);
  agent_->Wait();
  StartAgent();
  const json after = Slot(grant, [&](const json& slot) {
    return slot["memoryUsedBytes"] == before["memoryUsedBytes"];
  });
  EXPECT_EQ(after["memoryUsedBytes"], before["memoryUsedBytes"]);
  EXPECT_EQ(after["memoryLimitBytes"], 2 * kGiB);
  EXPECT_EQ(after["processes"][0]["pid"], tenant->pid());
  tenant->Kill();
  EXPECT_EQ(Slot(grant,
                 [](const json& slot) {
                   return slot["memoryUsedBytes"] == 0;
                 })["memoryUsedBytes"],
            0);
}

// A program allocates on and on while the agent is killed and comes back: it
// waits for an answer longer than a new agent defers one (replay_window), so
// nothing is refused; and what it took meanwhile, with or without an answer, is
// charged.
TEST_F(PodTest, AllocationsDuringARestartAreNeitherRefusedNorForgotten) {
  Config("rondo: {memory: enforce, slotMemory: 8Gi}\n");
  StartAgent();
  const demo::Grant grant = Admit("a");
  auto neighbour = Run(grant, "--seconds 0 --memory 1024 --chunk 64");
  uint64_t before = 0, after = 0;  // of the kill, and of the replay
  std::thread restart([&] {
    before = Slot(grant, [](const json& slot) {
      return slot["memoryUsedBytes"] > 2 * kGiB + 64 * kMiB;
    })["memoryUsedBytes"];
    agent_->Signal(SIGKILL);
    agent_->Wait();
    StartAgent();
    after = Slot(grant, [&](const json& slot) {
      return slot["memoryUsedBytes"] >= before;
    })["memoryUsedBytes"];
  });
  auto tenant = Run(grant, "--seconds 0 --memory 4096 --chunk 0.25");
  restart.join();
  const json slot = Slot(grant, [](const json& s) {
    return s["memoryUsedBytes"] > 5 * kGiB && s["auditDifferenceBytes"] == 0;
  });
  EXPECT_EQ(slot["auditDifferenceBytes"], 0) << "the driver's own number";
  EXPECT_GT(slot["memoryUsedBytes"], 5 * kGiB);
  EXPECT_LT(after, slot["memoryUsedBytes"])
      << "it had all of its memory before the agent was back: no test";
  EXPECT_EQ(slot["denials"], 0);
  tenant->Begin();
  EXPECT_THAT(tenant->Finish(), Not(HasSubstr("OUT_OF_MEMORY")));
  EXPECT_EQ(tenant->Number("memory_bytes"), 4096.0 * kMiB);
}

TEST_F(PodTest, AnEditReachesRunningPodsAlsoOneThatTakesTheKeyAway) {
  Config("rondo: {memory: enforce, slotMemory: 2Gi}\n");
  StartAgent();
  const demo::Grant first = Admit("a"), second = Admit("b");
  auto one = Run(first, "--seconds 0"), two = Run(second, "--seconds 0");
  Config("rondo: {memory: enforce, slotMemory: 3Gi}\n");
  Slot(first, [](const json& s) { return s["memoryLimitBytes"] == 3 * kGiB; });
  one->Begin();
  one->Finish();
  EXPECT_EQ(one->Number("total_bytes"), 3.0 * kGiB);
  Config("");
  Slot(second, [](const json& s) { return s["memoryEnforced"] == false; });
  two->Begin();
  two->Finish();
  EXPECT_GT(two->Number("total_bytes"), 70.0 * kGiB);
  EXPECT_EQ(Admit("c").envs.count("LD_PRELOAD"), 0u);
}

TEST_F(PodTest, ByFileThePreloadFileNamesTheLibrary) {
  Config("rondo: {memory: observe, injection: file}\n");
  StartAgent();
  const demo::Grant grant = Admit("a");
  EXPECT_EQ(grant.envs.count("LD_PRELOAD"), 0u);
  EXPECT_EQ(*ReadFile(OnHost(grant, "/etc/ld.so.preload")),
            "/usr/local/rondo/librondo.so\n");
  EXPECT_TRUE(ReadFile(OnHost(grant, "/usr/local/rondo/librondo.so")).ok());
  EXPECT_EQ(access(OnHost(grant, "/run/rondo/" + Folder(grant)).c_str(), F_OK),
            0);
}

// What a container runtime makes of the CDI devices of the grant.
demo::Grant WithCdiEdits(demo::Grant grant, const std::string& cdi_dir) {
  const json spec =
      json::parse(ReadFile(cdi_dir + "/rondo-slot.json").value_or(""), nullptr,
                  /*allow_exceptions=*/false);
  const auto apply = [&](const json& edits) {
    for (const std::string env : edits.value("env", json::array()))
      grant.envs[env.substr(0, env.find('='))] = env.substr(env.find('=') + 1);
    for (const json& mount : edits.value("mounts", json::array()))
      grant.mounts.emplace_back(mount["containerPath"], mount["hostPath"]);
  };
  if (!spec.is_object()) return grant;
  apply(spec["containerEdits"]);
  for (const std::string& name : grant.cdi_devices)
    for (const json& device : spec["devices"])
      if (absl::StrCat(spec["kind"].get<std::string>(), "=",
                       device["name"].get<std::string>()) == name)
        apply(device["containerEdits"]);
  return grant;
}

TEST_F(PodTest, ByCdiTheRuntimePutsItIn) {
  Config("rondo: {memory: enforce, slotMemory: 2Gi, injection: cdi}\n");
  StartAgent();
  const demo::Grant bare = Admit("a");
  EXPECT_EQ(bare.envs.count("LD_PRELOAD"), 0u);
  EXPECT_TRUE(bare.mounts.empty());
  EXPECT_THAT(bare.cdi_devices,
              testing::ElementsAre("rondo/slot=" + bare.device_ids.at(0)));
  const demo::Grant grant = WithCdiEdits(bare, Path("cdi"));
  ASSERT_EQ(grant.envs.count("LD_PRELOAD"), 1u);
  auto tenant = Run(grant, "--seconds 0");
  tenant->Begin();
  tenant->Finish();
  EXPECT_EQ(tenant->Number("total_bytes"), 2.0 * kGiB);
}

// The device plugin serves on where the folder cannot be used.
TEST_F(PodTest, TroubleWithTheFolderIsShownAndStopsNothing) {
  Write("state", "a file in the folder's place");
  Config("rondo: {memory: enforce}\n");
  StartAgent();
  EXPECT_EQ(Admit("a").device_ids.size(), 1u);
  EXPECT_FALSE(Sharing()["problem"].is_null());
  EXPECT_THAT(Get("/metrics"), HasSubstr("\nrondo_sharing_problem 1\n"));
  EXPECT_THAT(Get("/readyz"), HasSubstr("200 OK"));
}

TEST_F(PodTest, WhatIsRemovedOrCouldNotBeMadeIsMadeAgain) {
  Config("rondo: {memory: enforce, slotMemory: 2Gi, injection: env}\n");
  StartAgent();
  EXPECT_TRUE(Sharing()["problem"].is_null());
  const demo::Grant grant = Admit("a");
  const std::string folder = Path("state/" + Folder(grant));
  // Without a config that changes.
  const auto mended = [&](const std::string& path) {
    // At once: a folder that is only gone would be there again.
    const std::string file = Path("in-its-place");
    Write("in-its-place", "");
    ASSERT_EQ(renameat2(AT_FDCWD, file.c_str(), AT_FDCWD, path.c_str(),
                        RENAME_EXCHANGE),
              0);
    std::filesystem::remove_all(file);
    ASSERT_TRUE(agent_->NextLineWith("sharing: ").ok());
    EXPECT_THAT(Sharing()["problem"].dump(), HasSubstr(path));
    std::filesystem::remove(path);
    const auto told = agent_->NextLineWith("sharing: well again");
    ASSERT_TRUE(told.ok()) << told.status();
    EXPECT_TRUE(Sharing()["problem"].is_null());
  };
  mended(folder);
  mended(Path("state/lib"));
  // One that was not there from the start.
  agent_->Signal(SIGKILL);
  agent_->Wait();
  std::filesystem::remove_all(folder);
  Write("state/" + Folder(grant), "");
  StartAgent();
  Sharing();  // its address is the log's first line
  ASSERT_TRUE(agent_->NextLineWith("sharing: slot").ok());
  EXPECT_FALSE(Sharing()["problem"].is_null());
  std::filesystem::remove(folder);
  EXPECT_TRUE(agent_->NextLineWith("sharing: well again").ok());
  auto tenant = Run(grant, "--seconds 0");
  tenant->Begin();
  tenant->Finish();
  EXPECT_EQ(tenant->Number("total_bytes"), 2.0 * kGiB);
}

// 2 GPUs of 80 GB, each as 4 slots.
TEST_F(PodTest, PromisingMoreMemoryThanThereIsIsSaidAndStopsNothing) {
  Config("rondo: {memory: enforce, slotMemory: 2Gi}\n");
  StartAgent();
  const demo::Grant first = Admit("a");
  EXPECT_TRUE(Sharing()["problem"].is_null());
  Config("rondo: {memory: enforce,\n  slotMemory: 30Gi}\n");
  const auto told = agent_->NextLineWith("slotMemory`");
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_THAT(*told, AllOf(HasSubstr(Path("config") + ": line 3, column 15: "),
                           HasSubstr("4 slots of 30Gi need more than the"),
                           HasSubstr("write auto, or at most 20"),
                           HasSubstr("or lower replicas to 2")));
  EXPECT_EQ(Sharing()["problem"].get<std::string>(),
            told->substr(told->find(Path("config"))));
  EXPECT_THAT(Get("/metrics"), HasSubstr("\nrondo_sharing_problem 1\n"));
  // The limit is in force, and the running pod has it too.
  EXPECT_EQ(Slot(first,
                 [](const json& s) {
                   return s["memoryLimitBytes"] == 30 * kGiB;
                 })["memoryLimitBytes"],
            30 * kGiB);
  EXPECT_EQ(Admit("b").envs.count("LD_PRELOAD"), 1u);
  EXPECT_THAT(Get("/readyz"), HasSubstr("200 OK"));
  Config("rondo: {memory: enforce, slotMemory: 4Gi}\n");
  EXPECT_TRUE(agent_->NextLineWith("sharing: well again").ok());
  EXPECT_TRUE(Sharing()["problem"].is_null());
}

TEST_F(PodTest, ItsProblemNamesTheKeyThatTheNodeHasNow) {
  Config("rondo: {memory: enforce, slotMemory: 30Gi}\n");
  const std::string text = ReadFile(Path("config")).value_or("");
  ASSERT_TRUE(MakeDirectories(Path("configs")).ok());
  Write("configs/NVIDIA-A100-SXM4-80GB", text);
  Start({"--config-dir=" + Path("configs"), "--fallback-strategies=named"});
  Admit("a");
  EXPECT_THAT(Sharing()["problem"].get<std::string>(),
              StartsWith(Path("configs/NVIDIA-A100-SXM4-80GB") + ": line 2"));
  Write("configs/default", text);
  EXPECT_TRUE(
      agent_->NextLineWith("sharing: " + Path("configs/default") + ": line 2")
          .ok());
  EXPECT_THAT(Sharing()["problem"].get<std::string>(),
              StartsWith(Path("configs/default") + ": line 2"));
}

TEST_F(PodTest, TheAgentEndsThoughTheDriverHangs) {
  Config("rondo: {memory: enforce, slotMemory: 2Gi}\n");
  const std::string library = node_->library_path();
  driver_.reset();
  // One that takes requests and answers none.
  auto driver =
      ListenUnix(absl::StrCat(library.substr(0, library.rfind('/') + 1),
                              sim::driver::kSocketPrefix, "nvidiactl"),
                 SOCK_SEQPACKET, 0600);
  ASSERT_TRUE(driver.ok()) << driver.status();
  StartAgent();
  Admit("a");
  pollfd asked{.fd = driver->get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&asked, 1, 20'000), 1);
  agent_->Signal(SIGTERM);
  const auto told = agent_->NextLineWith("ending without having waited for ");
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_THAT(*told, HasSubstr("/dev/nvidiactl (for "));
  EXPECT_EQ(agent_->Wait(), 0);
}

TEST_F(PodTest, WithoutTheKeyNothingIsInstalled) {
  Config("");
  StartAgent();
  const demo::Grant grant = Admit("a");
  EXPECT_THAT(grant.envs,
              testing::ElementsAre(Pair("NVIDIA_VISIBLE_DEVICES", testing::_)));
  EXPECT_TRUE(grant.mounts.empty());
  EXPECT_EQ(Sharing()["on"], false);
  EXPECT_NE(access(Path("state/lib").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace rondo::agent
