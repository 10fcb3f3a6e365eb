// SPDX-License-Identifier: Apache-2.0
//
// The library's ABI as other programs use it: every version of a call with its
// own struct, the rules of lists, what is refused.
#include <dlfcn.h>

#include <cstring>
#include <set>

#include "base/file.h"
#include "gtest/gtest.h"
#include "sim/libnvml/abi.h"
#include "sim/libnvml/mig_abi.h"
#include "sim/node.h"

namespace rondo::sim {
namespace {

using namespace nvml::abi;  // NOLINT

class LibnvmlTest : public testing::Test {
 protected:
  void Start(const std::string& profile) {
    auto dir = TempDir::Create("libnvml");
    ASSERT_TRUE(dir.ok());
    dir_.emplace(*std::move(dir));
    auto node = Node::Create(profile, dir_->path());
    ASSERT_TRUE(node.ok()) << node.status();
    node_.emplace(*std::move(node));
    library_ = dlopen(node_->library_path().c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    ASSERT_EQ(Call("nvmlInit_v2"), kSuccess);
    ASSERT_EQ(Call("nvmlDeviceGetHandleByIndex_v2", 0u, &device_), kSuccess);
  }
  void TearDown() override {
    if (library_ != nullptr) {
      EXPECT_EQ(Call("nvmlShutdown"), kSuccess);
      dlclose(library_);
    }
  }

  template <typename... Args>
  Return Call(const char* name, Args... args) {
    void* const symbol = dlsym(library_, name);
    if (symbol == nullptr) {
      ADD_FAILURE() << name << " is not exported";
      return kFunctionNotFound;
    }
    return reinterpret_cast<Return (*)(Args...)>(symbol)(args...);
  }

  std::optional<TempDir> dir_;
  std::optional<Node> node_;
  void* library_ = nullptr;
  Device device_ = nullptr;
};

TEST_F(LibnvmlTest, ProcessListsHaveAStructForEachVersion) {
  Start("A100+3g.40gb+3g.40gb");
  ASSERT_TRUE(
      node_->SetProcess(0, {.pid = 11, .used_bytes = 7, .mig_slot = 1}).ok());
  unsigned count = 0;
  EXPECT_EQ(Call("nvmlDeviceGetComputeRunningProcesses_v3", device_, &count,
                 static_cast<ProcessV2*>(nullptr)),
            kInsufficientSize);
  EXPECT_EQ(count, 1);
  ProcessV2 v3{};
  ASSERT_EQ(
      Call("nvmlDeviceGetComputeRunningProcesses_v3", device_, &count, &v3),
      kSuccess);
  EXPECT_EQ(v3.pid, 11);
  EXPECT_EQ(v3.used, 7);
  EXPECT_EQ(v3.gpu_instance, 2);
  EXPECT_EQ(v3.compute_instance, 0);
  struct {
    ProcessV1 v1;
    uint64_t guard;
  } old{{}, 0x5A5A};
  ASSERT_EQ(
      Call("nvmlDeviceGetComputeRunningProcesses", device_, &count, &old.v1),
      kSuccess);
  EXPECT_EQ(old.v1.pid, 11);
  EXPECT_EQ(old.v1.used, 7);
  EXPECT_EQ(old.guard, 0x5A5A);
}

TEST_F(LibnvmlTest, SamplesAreThoseOfBusyProcesses) {
  Start("T4");
  unsigned count = 0;
  EXPECT_EQ(Call("nvmlDeviceGetProcessUtilization", device_,
                 static_cast<ProcessSample*>(nullptr), &count, 0ull),
            kInsufficientSize);
  ProcessSample samples[64];
  EXPECT_GE(count, 1);
  EXPECT_EQ(
      Call("nvmlDeviceGetProcessUtilization", device_, samples, &count, 0ull),
      kNotFound);
  ASSERT_TRUE(node_->SetProcess(0, {.pid = 5}).ok());
  ASSERT_TRUE(
      node_->SetProcess(0, {.pid = 6, .sm_percent = 40, .memory_percent = 7})
          .ok());
  count = 64;
  ASSERT_EQ(
      Call("nvmlDeviceGetProcessUtilization", device_, samples, &count, 0ull),
      kSuccess);
  ASSERT_EQ(count, 1);
  EXPECT_EQ(samples[0].pid, 6);
  EXPECT_EQ(samples[0].sm, 40);
  EXPECT_EQ(samples[0].memory, 7);
  // Nothing is newer than the far future.
  count = 64;
  EXPECT_EQ(
      Call("nvmlDeviceGetProcessUtilization", device_, samples, &count, ~0ull),
      kNotFound);
}

TEST_F(LibnvmlTest, VersionedStructsAreChecked) {
  Start("H100");
  MemoryV2 memory{};
  EXPECT_EQ(Call("nvmlDeviceGetMemoryInfo_v2", device_, &memory),
            kArgumentVersionMismatch);
  memory.version = Version<MemoryV2>(2);
  ASSERT_EQ(Call("nvmlDeviceGetMemoryInfo_v2", device_, &memory), kSuccess);
  EXPECT_EQ(memory.total, 81559ull << 20);
  EXPECT_EQ(memory.reserved, 550ull << 20);
  EXPECT_EQ(memory.used, 0);
  FabricInfoV3 fabric{};
  EXPECT_EQ(Call("nvmlDeviceGetGpuFabricInfoV", device_, &fabric),
            kArgumentVersionMismatch);
  struct {
    FabricInfoV2 v2;
    uint32_t guard;
  } older{{}, 0x5A5A};
  older.v2.version = Version<FabricInfoV2>(2);
  EXPECT_EQ(Call("nvmlDeviceGetGpuFabricInfoV", device_, &older.v2), kSuccess);
  EXPECT_EQ(older.v2.info.state, 3);
  EXPECT_EQ(older.guard, 0x5A5A);
}

TEST_F(LibnvmlTest, TheFirstEventWaitWritesTheFirstStructOnly) {
  Start("T4");
  EventSet set = nullptr;
  ASSERT_EQ(Call("nvmlEventSetCreate", &set), kSuccess);
  ASSERT_EQ(Call("nvmlDeviceRegisterEvents", device_,
                 static_cast<unsigned long long>(kEventXid), set),
            kSuccess);
  ASSERT_TRUE(node_->Xid(0, 31).ok());
  EventData data{};
  data.gpu_instance = data.compute_instance = 0x5A5A;
  ASSERT_EQ(Call("nvmlEventSetWait", set, &data, 10000u), kSuccess);
  EXPECT_EQ(data.data, 31);
  EXPECT_EQ(data.device, device_);
  EXPECT_EQ(data.gpu_instance, 0x5A5A);
  EXPECT_EQ(Call("nvmlEventSetWait_v2", set, &data, 0u), kTimeout);
  EXPECT_EQ(Call("nvmlEventSetFree", set), kSuccess);
  EXPECT_EQ(Call("nvmlEventSetWait_v2", set, &data, 0u), kInvalidArgument);
}

TEST_F(LibnvmlTest, AnEccErrorIsSeenInEveryPlace) {
  Start("A100");
  EventSet set = nullptr;
  ASSERT_EQ(Call("nvmlEventSetCreate", &set), kSuccess);
  unsigned long long types = 0;
  ASSERT_EQ(Call("nvmlDeviceGetSupportedEventTypes", device_, &types),
            kSuccess);
  ASSERT_EQ(Call("nvmlDeviceRegisterEvents", device_, types, set), kSuccess);
  ASSERT_TRUE(node_->EccError(0).ok());
  EventData data{};
  ASSERT_EQ(Call("nvmlEventSetWait_v2", set, &data, 10000u), kSuccess);
  EXPECT_EQ(data.type, kEventDoubleBitEcc);
  ASSERT_EQ(Call("nvmlEventSetWait_v2", set, &data, 10000u), kSuccess);
  EXPECT_EQ(data.type, kEventXid);
  EXPECT_EQ(data.data, 48);
  unsigned long long errors = 0;
  EXPECT_EQ(Call("nvmlDeviceGetTotalEccErrors", device_, 1u, 0u, &errors),
            kSuccess);
  EXPECT_EQ(errors, 1);
  FieldValue fields[3] = {};
  fields[0].field = 4;    // double-bit errors since the reset
  fields[1].field = 144;  // remap pending
  fields[2].field = 9999;
  ASSERT_EQ(Call("nvmlDeviceGetFieldValues", device_, 3, fields), kSuccess);
  EXPECT_EQ(fields[0].value.u64, 1);
  EXPECT_EQ(fields[1].value.u32, 1);
  EXPECT_EQ(fields[2].result, kNotSupported);
  ASSERT_TRUE(node_->Clear(0).ok());
  EXPECT_EQ(Call("nvmlDeviceGetTotalEccErrors", device_, 1u, 0u, &errors),
            kSuccess);
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(Call("nvmlDeviceGetTotalEccErrors", device_, 1u, 1u, &errors),
            kSuccess);
  EXPECT_EQ(errors, 1);  // ever
  EXPECT_EQ(Call("nvmlEventSetFree", set), kSuccess);
}

TEST_F(LibnvmlTest, RefusesWhatIsNoHandle) {
  Start("T4");
  char name[96];
  int elsewhere = 0;
  EXPECT_EQ(
      Call("nvmlDeviceGetName", static_cast<Device>(nullptr), &name[0], 96u),
      kInvalidArgument);
  EXPECT_EQ(Call("nvmlDeviceGetName", reinterpret_cast<Device>(&elsewhere),
                 &name[0], 96u),
            kInvalidArgument);
  EXPECT_EQ(Call("nvmlDeviceGetName", device_, &name[0], 4u),
            kInsufficientSize);
  Device other = nullptr;
  EXPECT_EQ(Call("nvmlDeviceGetHandleByIndex_v2", 1u, &other),
            kInvalidArgument);
}

TEST_F(LibnvmlTest, PciIdsAreFoundInEverySpelling) {
  Start("2xT4");
  for (const char* id :
       {"00000000:1B:00.0", "0000:1b:00.0", "0000:1B:00", "0:1b:0.0"}) {
    Device device = nullptr;
    EXPECT_EQ(Call("nvmlDeviceGetHandleByPciBusId_v2", id, &device), kSuccess)
        << id;
    unsigned index = 0;
    EXPECT_EQ(Call("nvmlDeviceGetIndex", device, &index), kSuccess);
    EXPECT_EQ(index, 1);
  }
  Device device = nullptr;
  EXPECT_EQ(Call("nvmlDeviceGetHandleByPciBusId_v2", "0000:99:00.0", &device),
            kNotFound);
  PciInfoV3 pci{};
  ASSERT_EQ(Call("nvmlDeviceGetPciInfo_v3", device_, &pci), kSuccess);
  EXPECT_STREQ(pci.bus_id, "00000000:17:00.0");
  EXPECT_STREQ(pci.bus_id_legacy, "0000:17:00.0");
  EXPECT_EQ(pci.bus, 0x17);
  EXPECT_EQ(pci.device_id, 0x1EB810DE);
}

TEST_F(LibnvmlTest, MigInstancesLeadBackToTheirProfile) {
  Start("H200+1g.18gb+me+2g.35gb");
  GpuInstance instance = nullptr;
  ASSERT_EQ(Call("nvmlDeviceGetGpuInstanceById", device_, 7u, &instance),
            kSuccess);
  GpuInstanceInfo info{};
  ASSERT_EQ(Call("nvmlGpuInstanceGetInfo", instance, &info), kSuccess);
  EXPECT_EQ(info.device, device_);
  EXPECT_EQ(info.profile_id, 20);
  GpuInstanceProfileInfoV2 profile{};
  profile.version = Version<GpuInstanceProfileInfoV2>(2);
  ASSERT_EQ(Call("nvmlDeviceGetGpuInstanceProfileInfoV", device_,
                 static_cast<unsigned>(kProfile1SliceMe), &profile),
            kSuccess);
  EXPECT_EQ(profile.id, 20);
  EXPECT_STREQ(profile.name, "MIG 1g.18gb+me");
  EXPECT_EQ(Call("nvmlDeviceGetGpuInstanceById", device_, 9u, &instance),
            kNotFound);
  Device mig = nullptr;
  ASSERT_EQ(Call("nvmlDeviceGetMigDeviceHandleByIndex", device_, 1u, &mig),
            kSuccess);
  char name[96];
  ASSERT_EQ(Call("nvmlDeviceGetName", mig, &name[0], 96u), kSuccess);
  EXPECT_STREQ(name, "NVIDIA H200 MIG 2g.35gb");
  unsigned celsius = 0;
  EXPECT_EQ(Call("nvmlDeviceGetTemperature", mig, 0u, &celsius), kNotSupported);
}

TEST_F(LibnvmlTest, ALostGpuAnswersThatToEverything) {
  Start("2xA100");
  ASSERT_TRUE(node_->Lose(0).ok());
  unsigned value = 0;
  char text[96];
  Memory memory{};
  EXPECT_EQ(Call("nvmlDeviceGetPowerUsage", device_, &value), kGpuIsLost);
  EXPECT_EQ(Call("nvmlDeviceGetUUID", device_, &text[0], 96u), kGpuIsLost);
  EXPECT_EQ(Call("nvmlDeviceGetMemoryInfo", device_, &memory), kGpuIsLost);
  EXPECT_EQ(Call("nvmlDeviceGetCount_v2", &value), kSuccess);
  EXPECT_EQ(value, 2);
}

TEST_F(LibnvmlTest, WhatIsNotSimulatedSaysSo) {
  Start("T4");
  EXPECT_EQ(Call("nvmlDeviceGetVgpuMetadata"), kNotSupported);
  EXPECT_EQ(Call("nvmlDeviceSetPowerManagementLimit"), kNotSupported);
  unsigned long long field = 0;
  EXPECT_EQ(Call("nvmlDeviceGetRemappedRows", device_, &field, &field, &field,
                 &field),
            kNotSupported);
}

TEST_F(LibnvmlTest, CallsOutsideInitAreRefused) {
  Start("T4");
  ASSERT_EQ(Call("nvmlShutdown"), kSuccess);
  unsigned value = 0;
  EXPECT_EQ(Call("nvmlDeviceGetCount_v2", &value), kUninitialized);
  EXPECT_EQ(Call("nvmlDeviceGetPowerUsage", device_, &value), kUninitialized);
  EXPECT_EQ(Call("nvmlShutdown"), kUninitialized);
  ASSERT_EQ(Call("nvmlInitWithFlags", 0u), kSuccess);
  ASSERT_EQ(Call("nvmlInit"), kSuccess);
  ASSERT_EQ(Call("nvmlShutdown"), kSuccess);
  EXPECT_EQ(Call("nvmlDeviceGetCount_v2", &value), kSuccess);
}

}  // namespace
}  // namespace rondo::sim
