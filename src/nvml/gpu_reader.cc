// SPDX-License-Identifier: Apache-2.0
#include "nvml/gpu_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "nvml/mig_profile.h"

namespace rondo::nvml {
namespace {

using abi::Symbols;

class GpuReader {
 public:
  GpuReader(const Symbols& nvml, abi::Device device)
      : nvml_(nvml), device_(device) {}

  absl::StatusOr<Gpu> Read(int index) const {
    Gpu gpu;
    gpu.index = index;
    char text[abi::kUuidSize];
    RONDO_RETURN_IF_ERROR(
        nvml_.Check(nvml_.uuid(device_, text, sizeof(text)), "GetUUID"));
    gpu.uuid = text;
    RONDO_RETURN_IF_ERROR(
        nvml_.Check(nvml_.name(device_, text, sizeof(text)), "GetName"));
    gpu.name = text;
    unsigned minor = 0;
    RONDO_RETURN_IF_ERROR(
        nvml_.Check(nvml_.minor(device_, &minor), "GetMinorNumber"));
    gpu.minor = static_cast<int>(minor);
    RONDO_ASSIGN_OR_RETURN(gpu.bus_id, BusId());
    RONDO_RETURN_IF_ERROR(
        nvml_.Check(nvml_.compute_capability(device_, &gpu.compute_major,
                                             &gpu.compute_minor),
                    "GetCudaComputeCapability"));
    if (abi::Memory memory; nvml_.memory(device_, &memory) == abi::kSuccess)
      gpu.memory_bytes = memory.total;
    // Since driver 510.
    abi::MemoryV2 memory{};
    memory.version = abi::kMemoryV2Version;
    if (nvml_.memory_v2(device_, &memory) == abi::kSuccess &&
        memory.total > memory.reserved)
      gpu.usable_bytes = memory.total - memory.reserved;
    unsigned current = 0, pending = 0;
    const abi::Return mode = nvml_.mig_mode(device_, &current, &pending);
    if (mode != abi::kNotSupported && mode != abi::kFunctionNotFound)
      RONDO_RETURN_IF_ERROR(nvml_.Check(mode, "GetMigMode"));
    gpu.mig_enabled = mode == abi::kSuccess && current == 1;
    if (gpu.mig_enabled) RONDO_RETURN_IF_ERROR(ReadMigs(&gpu));
    return gpu;
  }

 private:
  absl::StatusOr<std::string> BusId() const {
    if (nvml_.pci_v3) {
      abi::PciInfoV3 pci{};
      RONDO_RETURN_IF_ERROR(
          nvml_.Check(nvml_.pci_v3(device_, &pci), "GetPciInfo"));
      return std::string(pci.bus_id);
    }
    abi::PciInfoV2 pci{};
    RONDO_RETURN_IF_ERROR(
        nvml_.Check(nvml_.pci_v2(device_, &pci), "GetPciInfo"));
    return absl::StrFormat("%08X:%02X:%02X.0", pci.domain, pci.bus, pci.device);
  }

  absl::Status ReadMigs(Gpu* gpu) const {
    unsigned max = 0;
    RONDO_RETURN_IF_ERROR(
        nvml_.Check(nvml_.max_migs(device_, &max), "GetMaxMigDeviceCount"));
    for (unsigned slot = 0; slot < max; ++slot) {
      abi::Device device = nullptr;
      const abi::Return got = nvml_.mig_by_index(device_, slot, &device);
      // Slots may be empty, and not only at the end.
      if (got == abi::kNotFound || got == abi::kInvalidArgument) continue;
      RONDO_RETURN_IF_ERROR(nvml_.Check(got, "GetMigDeviceHandleByIndex"));
      auto mig = ReadMig(device, slot, gpu->memory_bytes.value_or(0));
      if (!mig.ok())
        return Annotate(mig.status(), absl::StrCat("MIG device ", slot));
      gpu->migs.push_back(*std::move(mig));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<MigDevice> ReadMig(abi::Device device, unsigned slot,
                                    uint64_t gpu_memory_bytes) const {
    MigDevice mig;
    mig.slot = static_cast<int>(slot);
    char uuid[abi::kUuidSize];
    RONDO_RETURN_IF_ERROR(
        nvml_.Check(nvml_.uuid(device, uuid, sizeof(uuid)), "GetUUID"));
    mig.uuid = uuid;
    unsigned gpu_instance = 0, compute_instance = 0;
    RONDO_RETURN_IF_ERROR(nvml_.Check(
        nvml_.gpu_instance_id(device, &gpu_instance), "GetGpuInstanceId"));
    RONDO_RETURN_IF_ERROR(
        nvml_.Check(nvml_.compute_instance_id(device, &compute_instance),
                    "GetComputeInstanceId"));
    mig.gpu_instance = static_cast<int>(gpu_instance);
    mig.compute_instance = static_cast<int>(compute_instance);
    abi::Attributes attributes{};
    RONDO_RETURN_IF_ERROR(
        nvml_.Check(nvml_.attributes(device, &attributes), "GetAttributes"));
    mig.gpu_slices = static_cast<int>(attributes.gpu_instance_slices);
    mig.compute_slices = static_cast<int>(attributes.compute_instance_slices);
    mig.memory_mib = attributes.memory_mib;
    mig.profile = MigProfileText({.gpu_slices = mig.gpu_slices,
                                  .compute_slices = mig.compute_slices,
                                  .memory_mib = mig.memory_mib,
                                  .gpu_memory_bytes = gpu_memory_bytes,
                                  .suffix = Suffix(gpu_instance)});
    return mig;
  }

  // Which of the profiles with equal slices it is, only its GPU instance knows,
  // and only a privileged process may ask that. Without the answer the plain
  // profile is named.
  absl::string_view Suffix(unsigned gpu_instance) const {
    abi::GpuInstance instance = nullptr;
    abi::GpuInstanceInfo info{};
    if (nvml_.gpu_instance(device_, gpu_instance, &instance) != abi::kSuccess ||
        nvml_.gpu_instance_info(instance, &info) != abi::kSuccess)
      return "";
    for (uint32_t profile = 0; profile < abi::kProfileCount; ++profile) {
      abi::GpuInstanceProfileInfo known{};
      if (nvml_.gpu_instance_profile(device_, profile, &known) ==
              abi::kSuccess &&
          known.id == info.profile_id)
        return MigProfileSuffix(profile);
    }
    return "";
  }

  const Symbols& nvml_;
  const abi::Device device_;
};

}  // namespace

absl::StatusOr<Gpu> ReadGpu(const Symbols& nvml, abi::Device device,
                            int index) {
  return GpuReader(nvml, device).Read(index);
}

}  // namespace rondo::nvml
