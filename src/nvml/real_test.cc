// SPDX-License-Identifier: Apache-2.0
//
// Real against the simulated library: the code path of production, with GPUs
// that can be broken at will.
#include "nvml/real.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nvml/library.h"
#include "sim/node.h"

namespace rondo::nvml {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;

class RealTest : public testing::Test {
 protected:
  void Start(const std::string& profile) {
    auto dir = TempDir::Create("nvml");
    ASSERT_TRUE(dir.ok()) << dir.status();
    dir_.emplace(*std::move(dir));
    auto node = sim::Node::Create(profile, dir_->path());
    ASSERT_TRUE(node.ok()) << node.status();
    node_.emplace(*std::move(node));
    auto real = Real::Load(node_->library_path());
    ASSERT_TRUE(real.ok()) << real.status();
    real_ = *std::move(real);
    auto gpus = real_->ListGpus();
    ASSERT_TRUE(gpus.ok()) << gpus.status();
    for (auto& gpu : *gpus) {
      ASSERT_TRUE(gpu.ok()) << gpu.status();
      gpus_.push_back(*std::move(gpu));
    }
  }

  // Writes the profile into a file of the test's own.
  void StartYaml(const std::string& yaml) {
    auto dir = TempDir::Create("profile");
    ASSERT_TRUE(dir.ok());
    const std::string path = dir->path() + "/node.yaml";
    ASSERT_TRUE(WriteFileAtomically(path, yaml).ok());
    Start(path);
  }

  std::optional<TempDir> dir_;
  std::optional<sim::Node> node_;
  std::unique_ptr<Real> real_;
  std::vector<Gpu> gpus_;
};

TEST_F(RealTest, TellsWhatANodeIsMadeOf) {
  Start("2xA100-SXM4-80GB,T4,RTX-4090");
  EXPECT_EQ(*real_->DriverVersion(), "580.159.04");
  EXPECT_EQ(*real_->CudaDriverVersion(), 13000);
  ASSERT_EQ(gpus_.size(), 4);
  EXPECT_EQ(gpus_[0].name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(gpus_[0].memory_bytes, 81920 * kMiB);
  EXPECT_EQ(gpus_[0].usable_bytes, (81920 - 613) * kMiB);
  EXPECT_EQ(gpus_[0].compute_major, 8);
  EXPECT_EQ(gpus_[0].compute_minor, 0);
  EXPECT_EQ(gpus_[0].uuid, *node_->Uuid(0));
  EXPECT_EQ(gpus_[0].uuid.size(), 40);
  EXPECT_NE(gpus_[0].uuid, gpus_[1].uuid);
  EXPECT_EQ(gpus_[0].bus_id, "00000000:17:00.0");
  EXPECT_FALSE(gpus_[0].mig_enabled);
  EXPECT_EQ(gpus_[2].name, "Tesla T4");
  EXPECT_EQ(gpus_[2].index, 2);
  EXPECT_EQ(gpus_[2].minor, 2);
  EXPECT_EQ(gpus_[2].compute_minor, 5);
  EXPECT_EQ(gpus_[3].name, "NVIDIA GeForce RTX 4090");
}

TEST_F(RealTest, MemoryInUseIsTheDriversPartAndTheProcesses) {
  Start("H200");
  EXPECT_EQ(real_->MemoryInfo(gpus_[0].uuid)->used_bytes, 615 * kMiB);
  ASSERT_TRUE(node_->SetProcess(0, {.pid = 41, .used_bytes = 518 * kMiB}).ok());
  const auto memory = real_->MemoryInfo(gpus_[0].uuid);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(memory->total_bytes, 143771 * kMiB);
  EXPECT_EQ(memory->used_bytes, (615 + 518) * kMiB);
  EXPECT_EQ(memory->free_bytes, memory->total_bytes - memory->used_bytes);
}

TEST_F(RealTest, ProcessesComeAndGo) {
  Start("2xT4");
  EXPECT_TRUE(real_->ComputeProcesses(gpus_[0].uuid)->empty());
  EXPECT_EQ(real_->UtilizationRates(gpus_[0].uuid)->gpu_percent, 0);
  for (uint32_t pid = 100; pid < 120; ++pid)
    ASSERT_TRUE(node_
                    ->SetProcess(0, {.pid = pid,
                                     .used_bytes = pid * kMiB,
                                     .sm_percent = 3,
                                     .memory_percent = 1})
                    .ok());
  ASSERT_TRUE(
      node_->SetProcess(0, {.pid = 7, .used_bytes = 1, .graphics = true}).ok());
  const auto processes = real_->ComputeProcesses(gpus_[0].uuid);
  ASSERT_TRUE(processes.ok()) << processes.status();
  ASSERT_EQ(processes->size(), 20);  // the one that draws is not among them
  EXPECT_EQ((*processes)[5].pid, 105);
  EXPECT_EQ((*processes)[5].used_bytes, 105 * kMiB);
  EXPECT_EQ(real_->UtilizationRates(gpus_[0].uuid)->gpu_percent, 60);
  EXPECT_EQ(real_->UtilizationRates(gpus_[0].uuid)->memory_percent, 20);
  EXPECT_TRUE(real_->ComputeProcesses(gpus_[1].uuid)->empty());
  ASSERT_TRUE(node_->RemoveProcess(0, 105).ok());
  EXPECT_EQ(real_->ComputeProcesses(gpus_[0].uuid)->size(), 19);
}

TEST_F(RealTest, SamplesTellWhoRan) {
  Start("2xT4,A100+1g.10gb");
  const auto none = real_->ProcessSamples(gpus_[0].uuid, 0);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->empty());
  for (uint32_t pid = 100; pid < 140; ++pid)
    ASSERT_TRUE(node_->SetProcess(0, {.pid = pid, .sm_percent = 2}).ok());
  ASSERT_TRUE(node_->SetProcess(0, {.pid = 7, .used_bytes = 1}).ok());
  ASSERT_TRUE(node_->SetMeasured(0).ok());
  const auto samples = real_->ProcessSamples(gpus_[0].uuid, 0);
  ASSERT_TRUE(samples.ok()) << samples.status();
  ASSERT_EQ(samples->size(), 40);  // the one that did nothing is not among them
  EXPECT_EQ((*samples)[5].pid, 105);
  EXPECT_EQ((*samples)[5].sm_percent, 2);
  const uint64_t ended_us = (*samples)[5].time_us;
  EXPECT_TRUE(real_->ProcessSamples(gpus_[0].uuid, ended_us)->empty())
      << "as long as nothing new is measured";
  ASSERT_TRUE(node_->SetMeasured(0).ok());
  EXPECT_EQ(real_->ProcessSamples(gpus_[0].uuid, ended_us)->size(), 40);
  EXPECT_TRUE(real_->ProcessSamples(gpus_[1].uuid, 0)->empty());
  EXPECT_TRUE(
      absl::IsUnimplemented(real_->ProcessSamples(gpus_[2].uuid, 0).status()));
}

TEST_F(RealTest, ReadsMigDevices) {
  Start("A100+3g.40gb+2g.20gb+1g.10gb+1g.10gb+me,A100+1c.3g.40gb+2c.3g.40gb");
  ASSERT_EQ(gpus_.size(), 2);
  ASSERT_TRUE(gpus_[0].mig_enabled);
  ASSERT_EQ(gpus_[0].migs.size(), 4);
  const MigDevice& big = gpus_[0].migs[0];
  EXPECT_EQ(big.profile, "3g.40gb");
  EXPECT_EQ(big.slot, 0);
  EXPECT_EQ(big.gpu_slices, 3);
  EXPECT_EQ(big.compute_slices, 3);
  EXPECT_EQ(big.memory_mib, 40192);
  EXPECT_EQ(big.uuid.substr(0, 4), "MIG-");
  EXPECT_EQ(gpus_[0].migs[1].profile, "2g.20gb");
  EXPECT_EQ(gpus_[0].migs[2].profile, "1g.10gb");
  EXPECT_EQ(gpus_[0].migs[3].profile, "1g.10gb+me");
  EXPECT_NE(gpus_[0].migs[2].gpu_instance, gpus_[0].migs[3].gpu_instance);
  // Two compute instances of one GPU instance.
  ASSERT_EQ(gpus_[1].migs.size(), 2);
  EXPECT_EQ(gpus_[1].migs[0].profile, "1c.3g.40gb");
  EXPECT_EQ(gpus_[1].migs[1].profile, "2c.3g.40gb");
  EXPECT_EQ(gpus_[1].migs[0].gpu_instance, gpus_[1].migs[1].gpu_instance);
  EXPECT_EQ(gpus_[1].migs[1].compute_instance, 1);

  ASSERT_TRUE(
      node_->SetProcess(0, {.pid = 9, .used_bytes = 512 * kMiB, .mig_slot = 1})
          .ok());
  EXPECT_EQ(real_->MemoryInfo(gpus_[0].migs[1].uuid)->used_bytes, 512 * kMiB);
  EXPECT_EQ(real_->MemoryInfo(gpus_[0].migs[1].uuid)->total_bytes,
            19968 * kMiB);
  EXPECT_EQ(real_->ComputeProcesses(gpus_[0].migs[1].uuid)->size(), 1);
  EXPECT_TRUE(real_->ComputeProcesses(big.uuid)->empty());
  EXPECT_TRUE(
      absl::IsUnimplemented(real_->UtilizationRates(gpus_[0].uuid).status()));
}

TEST_F(RealTest, MigOnWithoutDevicesIsNotMigOff) {
  StartYaml("gpus: [{model: H100, mig: []}, {model: H100}]");
  EXPECT_TRUE(gpus_[0].mig_enabled);
  EXPECT_TRUE(gpus_[0].migs.empty());
  EXPECT_FALSE(gpus_[1].mig_enabled);
}

TEST_F(RealTest, LinksAreThoseOfTheBoard) {
  Start("8xV100");
  EXPECT_EQ(real_->LinkBetween(gpus_[0], gpus_[3])->nvlinks, 2);
  EXPECT_EQ(real_->LinkBetween(gpus_[3], gpus_[0])->nvlinks, 2);
  EXPECT_EQ(real_->LinkBetween(gpus_[0], gpus_[1])->nvlinks, 1);
  EXPECT_EQ(real_->LinkBetween(gpus_[0], gpus_[7])->nvlinks, 0);
  EXPECT_EQ(real_->LinkBetween(gpus_[0], gpus_[1])->ancestor,
            Ancestor::kSingleSwitch);
  EXPECT_EQ(real_->LinkBetween(gpus_[0], gpus_[2])->ancestor,
            Ancestor::kSameCpu);
  EXPECT_EQ(real_->LinkBetween(gpus_[0], gpus_[4])->ancestor,
            Ancestor::kCrossCpu);
  EXPECT_EQ(real_->LinkBetween(gpus_[0], gpus_[0])->ancestor,
            Ancestor::kSameBoard);
}

TEST_F(RealTest, LinksThroughASwitchLeadToNoSingleGpu) {
  Start("8xH100");
  EXPECT_EQ(real_->LinkBetween(gpus_[0], gpus_[7])->nvlinks, 0);
}

TEST_F(RealTest, CardsWithoutLinksShareABridge) {
  Start("4xT4");
  const auto link = real_->LinkBetween(gpus_[0], gpus_[1]);
  ASSERT_TRUE(link.ok()) << link.status();
  EXPECT_EQ(link->nvlinks, 0);
  EXPECT_EQ(link->ancestor, Ancestor::kHostBridge);
}

TEST_F(RealTest, UnknownUuidIsNotFound) {
  Start("T4");
  EXPECT_TRUE(absl::IsNotFound(real_->MemoryInfo("GPU-no").status()));
  EXPECT_THAT(std::string(real_->MemoryInfo("GPU-no").status().message()),
              HasSubstr("GPU-no: Not Found"));
  EXPECT_FALSE(real_->Probe("GPU-no").ok());
}

TEST_F(RealTest, ALostGpuIsAnErrorInItsOwnPlace) {
  Start("3xA10");
  ASSERT_TRUE(node_->Lose(1).ok());
  const auto gpus = real_->ListGpus();
  ASSERT_TRUE(gpus.ok());
  ASSERT_EQ(gpus->size(), 3);
  EXPECT_TRUE((*gpus)[0].ok());
  EXPECT_TRUE(absl::IsUnavailable((*gpus)[1].status()));
  EXPECT_EQ((*gpus)[1].status().message(),
            "GPU 1: GetHandleByIndex: GPU is lost");
  EXPECT_TRUE((*gpus)[2].ok());
  EXPECT_TRUE(absl::IsUnavailable(real_->MemoryInfo(gpus_[1].uuid).status()));
}

TEST_F(RealTest, ProbeFollowsTheFault) {
  Start("A100,T4");
  const struct {
    int gpu;
    absl::Status (*fault)(sim::Node&, int);
    const char* reason;  // null = the GPU stays well
  } kRows[] = {
      {0, [](sim::Node& n, int g) { return n.Xid(g, 31); }, nullptr},
      {0, [](sim::Node& n, int g) { return n.Xid(g, 43); }, nullptr},
      {0, [](sim::Node& n, int g) { return n.Xid(g, 79); }, "a reboot"},
      {0, [](sim::Node& n, int g) { return n.Xid(g, 48); },
       "waits for a reset"},
      {0, [](sim::Node& n, int g) { return n.Xid(g, 64); }, "cannot be remapp"},
      {0, [](sim::Node& n, int g) { return n.EccError(g); }, "waits for a res"},
      {0, [](sim::Node& n, int g) { return n.Lose(g); }, "GPU is lost"},
      {1, [](sim::Node& n, int g) { return n.EccError(g); }, "a GPU reset"},
      {1, [](sim::Node& n, int g) { return n.Xid(g, 95); }, "a GPU reset"},
  };
  for (const auto& row : kRows) {
    ASSERT_TRUE(row.fault(*node_, row.gpu).ok());
    const absl::Status status = real_->Probe(gpus_[row.gpu].uuid);
    if (row.reason == nullptr) {
      EXPECT_TRUE(status.ok()) << status;
    } else {
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(row.reason));
    }
    EXPECT_TRUE(real_->Probe(gpus_[1 - row.gpu].uuid).ok());
    ASSERT_TRUE(node_->Clear(row.gpu).ok());
    EXPECT_TRUE(real_->Probe(gpus_[row.gpu].uuid).ok());
  }
}

TEST_F(RealTest, EventsArriveInOrderWithTheirGpu) {
  Start("2xH100");
  for (const Gpu& gpu : gpus_)
    ASSERT_TRUE(real_->RegisterXidEvents(gpu.uuid).ok());
  EXPECT_FALSE(real_->WaitForEvent(milliseconds(0))->has_value());
  ASSERT_TRUE(node_->Xid(1, 31).ok());
  ASSERT_TRUE(node_->Xid(0, 79).ok());
  const auto first = real_->WaitForEvent(seconds(10));
  ASSERT_TRUE(first.ok() && first->has_value()) << first.status();
  EXPECT_EQ((*first)->xid, 31);
  EXPECT_EQ((*first)->uuid, gpus_[1].uuid);
  EXPECT_FALSE((*first)->gpu_instance.has_value());
  const auto second = real_->WaitForEvent(seconds(10));
  ASSERT_TRUE(second.ok() && second->has_value());
  EXPECT_EQ((*second)->xid, 79);
  EXPECT_EQ((*second)->uuid, gpus_[0].uuid);
  EXPECT_FALSE(real_->WaitForEvent(milliseconds(1))->has_value());
}

TEST_F(RealTest, EventsBeforeTheRegistrationAreNotSeen) {
  Start("2xT4");
  ASSERT_TRUE(node_->Xid(0, 31).ok());
  ASSERT_TRUE(real_->RegisterXidEvents(gpus_[0].uuid).ok());
  ASSERT_TRUE(node_->Xid(1, 32).ok());  // not registered
  ASSERT_TRUE(node_->Xid(0, 33).ok());
  EXPECT_EQ((*real_->WaitForEvent(seconds(10)))->xid, 33);
}

TEST_F(RealTest, AnEventOfALostGpuStillHasItsName) {
  Start("2xA100");
  ASSERT_TRUE(real_->RegisterXidEvents(gpus_[1].uuid).ok());
  ASSERT_TRUE(node_->Lose(1).ok());
  const auto event = real_->WaitForEvent(seconds(10));
  ASSERT_TRUE(event.ok() && event->has_value()) << event.status();
  EXPECT_EQ((*event)->uuid, gpus_[1].uuid);
  EXPECT_EQ((*event)->xid, 79);
}

TEST_F(RealTest, AnEventNamesItsMigDevice) {
  Start("A100+3g.40gb+3g.40gb");
  ASSERT_TRUE(real_->RegisterXidEvents(gpus_[0].uuid).ok());
  ASSERT_TRUE(node_->Xid(0, 94, 1).ok());
  const auto event = real_->WaitForEvent(seconds(10));
  ASSERT_TRUE(event.ok() && event->has_value()) << event.status();
  EXPECT_EQ((*event)->uuid, gpus_[0].uuid);
  EXPECT_EQ((*event)->gpu_instance, gpus_[0].migs[1].gpu_instance);
  EXPECT_EQ((*event)->compute_instance, 0);
}

TEST_F(RealTest, AFaultEndsAWaitAtOnce) {
  Start("T4");
  ASSERT_TRUE(real_->RegisterXidEvents(gpus_[0].uuid).ok());
  const auto start = std::chrono::steady_clock::now();
  std::thread fault([&] { EXPECT_TRUE(node_->Xid(0, 62).ok()); });
  const auto event = real_->WaitForEvent(seconds(60));
  fault.join();
  ASSERT_TRUE(event.ok() && event->has_value()) << event.status();
  EXPECT_EQ((*event)->xid, 62);
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(30));
}

TEST_F(RealTest, AFullRingDropsTheOldestEvents) {
  Start("T4");
  ASSERT_TRUE(real_->RegisterXidEvents(gpus_[0].uuid).ok());
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(node_->Xid(0, 1000 + i).ok());
  EXPECT_EQ((*real_->WaitForEvent(seconds(10)))->xid, 1000 + 300 - 256);
}

TEST_F(RealTest, AGpuWithoutXidEventsSaysSo) {
  StartYaml("gpus: [{model: T4, xidEvents: false}]");
  EXPECT_TRUE(absl::IsUnimplemented(real_->RegisterXidEvents(gpus_[0].uuid)));
}

TEST_F(RealTest, DisplayGpusAreLeftOutAndKeepTheirIndex) {
  StartYaml(
      "gpus: [{model: A100}, {model: T4, name: NVIDIA DGX Display}, "
      "{model: A100}]");
  ASSERT_EQ(gpus_.size(), 2);
  EXPECT_EQ(gpus_[1].index, 2);
}

TEST_F(RealTest, TwoNodesInOneProcessAreTwo) {
  Start("2xT4");
  auto other_dir = TempDir::Create("other");
  ASSERT_TRUE(other_dir.ok());
  auto other_node = sim::Node::Create("8xH100", other_dir->path());
  ASSERT_TRUE(other_node.ok()) << other_node.status();
  auto other = Real::Load(other_node->library_path());
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ((*other)->ListGpus()->size(), 8);
  EXPECT_EQ(real_->ListGpus()->size(), 2);
}

TEST_F(RealTest, ThreadsShareOneBackendWhileGpusBreak) {
  Start("4xA100");
  for (const Gpu& gpu : gpus_)
    ASSERT_TRUE(real_->RegisterXidEvents(gpu.uuid).ok());
  constexpr int kFaults = 50;
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&, i] {
      while (!done) {
        const auto gpus = real_->ListGpus();
        ASSERT_TRUE(gpus.ok());
        EXPECT_EQ(gpus->size(), 4);
        // GPU 3 is never broken.
        EXPECT_TRUE((*gpus)[3].ok());
        EXPECT_TRUE(real_->Probe(gpus_[3].uuid).ok());
        (void)real_->Probe(gpus_[i].uuid);
        (void)real_->ComputeProcesses(gpus_[i].uuid);
      }
    });
  }
  std::thread faults([&] {
    for (int i = 0; i < kFaults; ++i) {
      const int gpu = i % 3;
      EXPECT_TRUE(i % 2 == 0 ? node_->Lose(gpu).ok()
                             : node_->Xid(gpu, 48).ok());
      EXPECT_TRUE(node_->SetProcess(gpu, {.pid = 1000u + i}).ok());
      EXPECT_TRUE(node_->Clear(gpu).ok());
    }
  });
  int seen = 0;
  while (seen < kFaults) {
    const auto event = real_->WaitForEvent(seconds(30));
    ASSERT_TRUE(event.ok() && event->has_value()) << event.status();
    EXPECT_EQ((*event)->uuid, gpus_[seen % 3].uuid);
    ++seen;
  }
  faults.join();
  done = true;
  for (std::thread& reader : readers) reader.join();
}

TEST(FindLibrary, LooksUnderTheDriverRootFirst) {
  auto dir = TempDir::Create("root");
  ASSERT_TRUE(dir.ok());
  EXPECT_EQ(FindLibrary(""), "libnvidia-ml.so.1");
  EXPECT_EQ(FindLibrary("/"), "libnvidia-ml.so.1");
  EXPECT_EQ(FindLibrary(dir->path()), "libnvidia-ml.so.1");
  const std::string lib = dir->path() + "/usr/lib/x86_64-linux-gnu";
  ASSERT_TRUE(MakeDirectories(lib).ok());
  ASSERT_TRUE(WriteFileAtomically(lib + "/libnvidia-ml.so.1", "x").ok());
  EXPECT_TRUE(absl::EndsWith(FindLibrary(dir->path()),
                             "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"));
}

TEST(RealLoad, SaysWhatIsMissing) {
  EXPECT_TRUE(
      absl::IsNotFound(Real::Load("/nowhere/libnvidia-ml.so.1").status()));
  // The library without a node beside it: a driver that does not run.
  auto dir = TempDir::Create("lone");
  ASSERT_TRUE(dir.ok());
  auto node = sim::Node::Create("T4", dir->path());
  ASSERT_TRUE(node.ok());
  ASSERT_EQ(unlink(node->state_path().c_str()), 0);
  ASSERT_EQ(unsetenv("RONDO_SIM_STATE"), 0);
  const absl::Status status = Real::Load(node->library_path()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(status.message(), "nvmlInit: Driver Not Loaded");
}

}  // namespace
}  // namespace rondo::nvml
