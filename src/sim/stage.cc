// SPDX-License-Identifier: Apache-2.0
#include "sim/stage.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cctype>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/status.h"
#include "sim/driver/node_driver.h"
#include "sim/layout.h"

extern "C" {
// embedded.S
extern const char rondo_sim_nvml_begin[];
extern const char rondo_sim_nvml_end[];
}

namespace rondo::sim {
namespace {

// The driver numbers 15 GPU instances of 8 compute instances for each GPU.
constexpr int kGpuInstances = 15;
constexpr int kComputeInstances = 8;
constexpr int kFirstCap = 3;  // 1 = config, 2 = monitor

// A device node that takes and gives nothing, as /dev/null does; a plain file
// where the kernel or the rights do not allow that.
absl::Status MakeDevice(const std::string& path) {
  unlink(path.c_str());
  if (mknod(path.c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0) {
    chmod(path.c_str(), 0666);  // past the umask
    return absl::OkStatus();
  }
  return WriteFileAtomically(path, "", 0666);
}

absl::Status StageDevices(const NodeState& state, const std::string& dev) {
  RONDO_RETURN_IF_ERROR(MakeDirectories(dev));
  for (const char* name :
       {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"})
    RONDO_RETURN_IF_ERROR(MakeDevice(absl::StrCat(dev, "/", name)));
  bool mig = false;
  for (uint32_t i = 0; i < state.gpu_count; ++i) {
    mig |= (state.gpus[i].flags & kMigEnabled) != 0;
    RONDO_RETURN_IF_ERROR(
        MakeDevice(absl::StrCat(dev, "/nvidia", state.gpus[i].minor)));
  }
  if (!mig) return absl::OkStatus();
  const std::string caps = absl::StrCat(dev, "/nvidia-caps");
  RONDO_RETURN_IF_ERROR(MakeDirectories(caps));
  for (int minor : {1, 2})
    RONDO_RETURN_IF_ERROR(MakeDevice(absl::StrCat(caps, "/nvidia-cap", minor)));
  for (uint32_t i = 0; i < state.gpu_count; ++i) {
    const GpuState& g = state.gpus[i];
    for (uint32_t m = 0; m < g.mig_count; ++m)
      for (int compute : {-1, static_cast<int>(g.migs[m].compute_instance)})
        RONDO_RETURN_IF_ERROR(MakeDevice(
            absl::StrCat(caps, "/nvidia-cap",
                         CapMinor(g.minor, g.migs[m].gpu_instance, compute))));
  }
  return absl::OkStatus();
}

// The driver lists every instance that there could be, made or not.
std::string MigMinors(const NodeState& state) {
  std::string text = "config 1\nmonitor 2\n";
  for (uint32_t i = 0; i < state.gpu_count; ++i) {
    const int gpu = state.gpus[i].minor;
    for (int gi = 0; gi < kGpuInstances; ++gi) {
      absl::StrAppendFormat(&text, "gpu%d/gi%d/access %d\n", gpu, gi,
                            CapMinor(gpu, gi, -1));
      for (int ci = 0; ci < kComputeInstances; ++ci)
        absl::StrAppendFormat(&text, "gpu%d/gi%d/ci%d/access %d\n", gpu, gi, ci,
                              CapMinor(gpu, gi, ci));
    }
  }
  return text;
}

absl::Status StageSysfs(const GpuState& g, const std::string& devices) {
  // sysfs writes the domain with four digits and all in lower case.
  const std::string bus_id = absl::AsciiStrToLower(BusId(g).substr(4));
  const std::string dir = absl::StrCat(devices, "/", bus_id);
  RONDO_RETURN_IF_ERROR(MakeDirectories(dir));
  const struct {
    const char* name;
    std::string text;
  } kFiles[] = {
      {"numa_node", absl::StrCat(g.numa, "\n")},
      {"vendor", "0x10de\n"},
      {"device", absl::StrFormat("0x%04x\n", g.device_id >> 16)},
      {"class", "0x030200\n"},
  };
  for (const auto& file : kFiles)
    RONDO_RETURN_IF_ERROR(
        WriteFileAtomically(absl::StrCat(dir, "/", file.name), file.text));
  return absl::OkStatus();
}

}  // namespace

absl::string_view NvmlLibrary() {
  return {rondo_sim_nvml_begin,
          static_cast<size_t>(rondo_sim_nvml_end - rondo_sim_nvml_begin)};
}

int CapMinor(int gpu_minor, int gpu_instance, int compute_instance) {
  return kFirstCap +
         (gpu_minor * kGpuInstances + gpu_instance) * (kComputeInstances + 1) +
         compute_instance + 1;
}

absl::Status StageNode(const NodeState& state, const std::string& dir) {
  const std::string lib = absl::StrCat(dir, kLibraryFolder);
  RONDO_RETURN_IF_ERROR(MakeDirectories(lib));
  RONDO_RETURN_IF_ERROR(WriteFileAtomically(
      absl::StrCat(lib, "/", kLibraryName), NvmlLibrary(), 0755));
  RONDO_RETURN_IF_ERROR(driver::StageLibraries(lib));
  RONDO_RETURN_IF_ERROR(StageDevices(state, absl::StrCat(dir, "/dev")));
  const std::string caps = absl::StrCat(dir, "/proc/driver/nvidia-caps");
  RONDO_RETURN_IF_ERROR(MakeDirectories(caps));
  RONDO_RETURN_IF_ERROR(
      WriteFileAtomically(absl::StrCat(caps, "/mig-minors"), MigMinors(state)));
  for (uint32_t i = 0; i < state.gpu_count; ++i)
    RONDO_RETURN_IF_ERROR(
        StageSysfs(state.gpus[i], absl::StrCat(dir, "/sys/bus/pci/devices")));
  // Last: who sees the state file sees a whole node.
  return WriteFileAtomically(
      absl::StrCat(lib, "/", kStateFileName),
      absl::string_view(reinterpret_cast<const char*>(&state), sizeof(state)),
      0644);
}

}  // namespace rondo::sim
