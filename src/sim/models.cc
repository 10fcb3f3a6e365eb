// SPDX-License-Identifier: Apache-2.0
#include "sim/models.h"

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "nvml/nvml_constants.h"
#include "sim/state.h"

namespace rondo::sim {
namespace {

// NVML_BRAND_* and NVML_DEVICE_ARCH_*.
enum Brand : uint32_t { kTesla = 2, kGeForce = 5, kNvidia = 14 };
enum Architecture : uint32_t {
  kVolta = 5,
  kTuring = 6,
  kAmpere = 7,
  kAda = 8,
  kHopper = 9,
};

constexpr uint32_t kDataCenter = kHasEcc | kHasXidEvents;
constexpr uint32_t kMigCapable = kDataCenter | kHasRowRemap | kHasMig | kHasHbm;

// The kinds of GPU instance are the same on all MIG GPUs of these generations;
// what differs is their multiprocessors and memory.
std::vector<MigProfileModel> MigTable(const char* const (&names)[7],
                                      const uint32_t (&multiprocessors)[7],
                                      const uint32_t (&memory_mib)[7]) {
  namespace abi = nvml::abi;
  struct Kind {
    uint32_t profile, id, slices, memory_slices, max_instances;
  };
  static constexpr Kind kKinds[7] = {
      {abi::kProfile1Slice, 19, 1, 1, 7},
      {abi::kProfile1SliceMe, 20, 1, 1, 1},
      {abi::kProfile1SliceMemory, 15, 1, 2, 4},
      {abi::kProfile2Slice, 14, 2, 2, 3},
      {abi::kProfile3Slice, 9, 3, 4, 2},
      {abi::kProfile4Slice, 5, 4, 4, 1},
      {abi::kProfile7Slice, 0, 7, 8, 1},
  };
  std::vector<MigProfileModel> table;
  for (int i = 0; i < 7; ++i) {
    const Kind& kind = kKinds[i];
    table.push_back({names[i], kind.profile, kind.id, kind.slices,
                     kind.memory_slices, kind.max_instances, multiprocessors[i],
                     memory_mib[i]});
  }
  return table;
}

constexpr uint32_t kA100Multiprocessors[7] = {14, 14, 14, 28, 42, 56, 98};
constexpr uint32_t kHopperMultiprocessors[7] = {16, 16, 26, 32, 60, 64, 132};

Model A100(const char* id, const char* aliases, const char* name) {
  Model m{};
  m.id = id, m.aliases = aliases, m.name = name;
  m.brand = kNvidia, m.architecture = kAmpere;
  m.compute_major = 8, m.compute_minor = 0;
  m.cores = 6912, m.multiprocessors = 108, m.bus_width = 5120;
  m.pcie_generation = 4;
  m.power_idle = 60, m.power_limit = 400, m.power_min = 100, m.power_max = 400;
  m.clock_idle = 210, m.clock_base = 1275, m.clock_max = 1410;
  m.flags = kMigCapable, m.on_switch = true, m.numa_nodes = 2;
  m.nvlinks = 12, m.nvswitches = 6, m.nvlink_version = 4;
  m.nvlink_mbps = 25781;
  return m;
}

Model A100With80GB() {
  Model m = A100("A100-SXM4-80GB", "A100 A100-80GB", "NVIDIA A100-SXM4-80GB");
  m.device_id = 0x20B210DE;
  m.memory_mib = 81920, m.reserved_mib = 613, m.bar1_mib = 131072;
  m.memory_clock_idle = m.memory_clock = 1593;
  m.mig = MigTable({"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb",
                    "4g.40gb", "7g.80gb"},
                   kA100Multiprocessors,
                   {9728, 9728, 19968, 19968, 40192, 40192, 80640});
  return m;
}

Model A100With40GB() {
  Model m = A100("A100-SXM4-40GB", "A100-40GB", "NVIDIA A100-SXM4-40GB");
  m.device_id = 0x20B010DE;
  m.memory_mib = 40960, m.reserved_mib = 571, m.bar1_mib = 65536;
  m.memory_clock_idle = m.memory_clock = 1215;
  m.mig = MigTable({"1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb",
                    "4g.20gb", "7g.40gb"},
                   kA100Multiprocessors,
                   {4864, 4864, 9856, 9856, 19968, 19968, 40192});
  return m;
}

Model Hopper(const char* id, const char* aliases, const char* name) {
  Model m{};
  m.id = id, m.aliases = aliases, m.name = name;
  m.brand = kNvidia, m.architecture = kHopper;
  m.compute_major = 9, m.compute_minor = 0;
  m.cores = 16896, m.multiprocessors = 132, m.pcie_generation = 5;
  m.power_idle = 72, m.power_limit = 700, m.power_min = 200, m.power_max = 700;
  m.clock_idle = 345, m.clock_base = 1590, m.clock_max = 1980;
  m.flags = kMigCapable | kHasFabric, m.on_switch = true, m.numa_nodes = 2;
  m.nvlinks = 18, m.nvswitches = 4, m.nvlink_version = 6;
  m.nvlink_mbps = 26562;
  return m;
}

Model H100() {
  Model m = Hopper("H100-SXM5-80GB", "H100 H100-80GB", "NVIDIA H100 80GB HBM3");
  m.device_id = 0x233010DE, m.bus_width = 5120;
  m.memory_mib = 81559, m.reserved_mib = 550, m.bar1_mib = 131072;
  m.memory_clock_idle = m.memory_clock = 2619;
  m.mig = MigTable({"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb",
                    "4g.40gb", "7g.80gb"},
                   kHopperMultiprocessors,
                   {9984, 9984, 20096, 20096, 40448, 40448, 81152});
  return m;
}

Model H200() {
  Model m = Hopper("H200", "H200-SXM5-141GB H200-141GB", "NVIDIA H200");
  m.device_id = 0x233510DE, m.bus_width = 6144;
  m.memory_mib = 143771, m.reserved_mib = 615, m.bar1_mib = 262144;
  m.memory_clock_idle = m.memory_clock = 3201;
  m.mig = MigTable({"1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb",
                    "4g.71gb", "7g.141gb"},
                   kHopperMultiprocessors,
                   {16384, 16384, 33280, 33280, 71296, 71296, 143360});
  return m;
}

Model T4() {
  Model m{};
  m.id = "T4", m.aliases = "Tesla-T4", m.name = "Tesla T4";
  m.device_id = 0x1EB810DE, m.brand = kTesla, m.architecture = kTuring;
  m.compute_major = 7, m.compute_minor = 5;
  m.cores = 2560, m.multiprocessors = 40, m.bus_width = 256;
  m.pcie_generation = 3;
  m.memory_mib = 15360, m.reserved_mib = 441, m.bar1_mib = 256;
  m.power_idle = 10, m.power_limit = 70, m.power_min = 60, m.power_max = 70;
  m.clock_idle = 300, m.clock_base = 585, m.clock_max = 1590;
  m.memory_clock_idle = 405, m.memory_clock = 5001;
  m.flags = kDataCenter, m.numa_nodes = 2;
  return m;
}

Model A10() {
  Model m{};
  m.id = "A10", m.aliases = "A10-24GB", m.name = "NVIDIA A10";
  m.device_id = 0x223610DE, m.brand = kNvidia, m.architecture = kAmpere;
  m.compute_major = 8, m.compute_minor = 6;
  m.cores = 9216, m.multiprocessors = 72, m.bus_width = 384;
  m.pcie_generation = 4;
  m.memory_mib = 23028, m.reserved_mib = 429, m.bar1_mib = 32768;
  m.power_idle = 16, m.power_limit = 150, m.power_min = 100, m.power_max = 150;
  m.clock_idle = 210, m.clock_base = 885, m.clock_max = 1695;
  m.memory_clock_idle = 405, m.memory_clock = 6251;
  m.flags = kDataCenter | kHasRowRemap, m.numa_nodes = 2;
  return m;
}

Model V100() {
  Model m{};
  m.id = "V100-SXM2-16GB", m.aliases = "V100 V100-16GB";
  m.name = "Tesla V100-SXM2-16GB";
  m.device_id = 0x1DB110DE, m.brand = kTesla, m.architecture = kVolta;
  m.compute_major = 7, m.compute_minor = 0;
  m.cores = 5120, m.multiprocessors = 80, m.bus_width = 4096;
  m.pcie_generation = 3;
  m.memory_mib = 16384, m.reserved_mib = 233, m.bar1_mib = 16384;
  m.power_idle = 38, m.power_limit = 300, m.power_min = 150, m.power_max = 300;
  m.clock_idle = 135, m.clock_base = 1290, m.clock_max = 1530;
  m.memory_clock_idle = m.memory_clock = 877;
  m.flags = kDataCenter | kHasHbm, m.on_switch = true, m.numa_nodes = 2;
  m.nvlinks = 6, m.nvlink_version = 2, m.nvlink_mbps = 25781;
  return m;
}

Model Rtx4090() {
  Model m{};
  m.id = "RTX-4090", m.aliases = "RTX4090 GeForce-RTX-4090";
  m.name = "NVIDIA GeForce RTX 4090";
  m.device_id = 0x268410DE, m.brand = kGeForce, m.architecture = kAda;
  m.compute_major = 8, m.compute_minor = 9;
  m.cores = 16384, m.multiprocessors = 128, m.bus_width = 384;
  m.pcie_generation = 4;
  m.memory_mib = 24564, m.reserved_mib = 347, m.bar1_mib = 32768;
  m.power_idle = 20, m.power_limit = 450, m.power_min = 150, m.power_max = 600;
  m.clock_idle = 210, m.clock_base = 2235, m.clock_max = 3105;
  m.memory_clock_idle = 405, m.memory_clock = 10501;
  m.flags = kHasXidEvents | kHasFan;
  return m;
}

}  // namespace

const std::vector<Model>& Models() {
  static const auto* const kModels =
      new std::vector<Model>{A100With80GB(), A100With40GB(), H100(), H200(),
                             T4(),           A10(),          V100(), Rtx4090()};
  return *kModels;
}

const Model* FindModel(absl::string_view text) {
  for (const Model& model : Models()) {
    if (absl::EqualsIgnoreCase(model.id, text)) return &model;
    for (absl::string_view alias : absl::StrSplit(model.aliases, ' '))
      if (absl::EqualsIgnoreCase(alias, text)) return &model;
  }
  return nullptr;
}

}  // namespace rondo::sim
