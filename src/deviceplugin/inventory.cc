// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/inventory.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "deviceplugin/view.h"

namespace rondo::deviceplugin {
namespace {

constexpr absl::string_view kGpuResource = "nvidia.com/gpu";
constexpr size_t kMaxListBytes = size_t{4} << 20;

// Lines "gpu0/gi1/access 12" of the driver's list -> minor of the capability
// device.
using MigMinors = std::map<std::string, int>;

absl::StatusOr<MigMinors> ReadMigMinors(const std::string& root) {
  RONDO_ASSIGN_OR_RETURN(
      const std::string text,
      ReadFile(PathUnder(root, "/proc/driver/nvidia-caps/mig-minors")));
  MigMinors minors;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    int minor = 0;
    if (absl::SimpleAtoi(parts.second, &minor))
      minors[std::string(parts.first)] = minor;
  }
  return minors;
}

// NVML writes the PCI domain with 8 digits, the kernel with 4.
std::string SysfsBusId(absl::string_view bus_id) {
  std::string lower(bus_id);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return absl::StartsWith(lower, "0000") && lower.find(':') == 8
             ? lower.substr(4)
             : lower;
}

std::optional<int> NumaNode(const nvml::Gpu& gpu, const std::string& root,
                            std::vector<std::string>& warnings) {
  const std::string path =
      PathUnder(root, absl::StrCat("/sys/bus/pci/devices/",
                                   SysfsBusId(gpu.bus_id), "/numa_node"));
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return std::nullopt;
  int node = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &node)) {
    warnings.push_back(absl::StrCat("GPU ", gpu.index, ": ", path,
                                    " holds no number; advertised without a "
                                    "NUMA node"));
    return std::nullopt;
  }
  if (node < 0) return std::nullopt;
  return node;
}

Device WholeGpu(const nvml::Gpu& gpu, std::optional<int> numa) {
  Device device;
  device.uuid = device.gpu_uuid = gpu.uuid;
  device.index = absl::StrCat(gpu.index);
  device.name = gpu.name;
  device.gpu_index = gpu.index;
  device.paths = {absl::StrCat("/dev/nvidia", gpu.minor)};
  device.numa_node = numa;
  device.memory_bytes = gpu.memory_bytes;
  device.usable_bytes = gpu.usable_bytes ? gpu.usable_bytes : gpu.memory_bytes;
  device.compute_major = gpu.compute_major;
  device.compute_minor = gpu.compute_minor;
  return device;
}

absl::StatusOr<Device> MigPart(const nvml::Gpu& gpu, const nvml::MigDevice& mig,
                               std::optional<int> numa,
                               const MigMinors& minors) {
  Device device = WholeGpu(gpu, numa);
  device.uuid = mig.uuid;
  device.index = absl::StrCat(gpu.index, ":", mig.slot);
  device.mig = true;
  device.gpu_instance = mig.gpu_instance;
  device.compute_instance = mig.compute_instance;
  device.memory_bytes = device.usable_bytes = mig.memory_mib << 20;
  const std::string instance =
      absl::StrCat("gpu", gpu.minor, "/gi", mig.gpu_instance);
  for (const std::string& capability :
       {absl::StrCat(instance, "/access"),
        absl::StrCat(instance, "/ci", mig.compute_instance, "/access")}) {
    const auto minor = minors.find(capability);
    if (minor == minors.end())
      return absl::NotFoundError(
          absl::StrCat("MIG device ", device.index, ": no line '", capability,
                       "' in /proc/driver/nvidia-caps/mig-minors"));
    device.paths.push_back(
        absl::StrCat("/dev/nvidia-caps/nvidia-cap", minor->second));
  }
  return device;
}

// Peers of the single strategy must be alike in all of this.
auto MigShape(const nvml::MigDevice& mig) {
  return std::make_tuple(mig.gpu_slices, mig.compute_slices, mig.memory_mib,
                         mig.profile);
}

absl::Status CheckSingleStrategy(const std::vector<const nvml::Gpu*>& gpus) {
  const nvml::MigDevice* first = nullptr;
  for (const nvml::Gpu* gpu : gpus) {
    if (gpu->mig_enabled != gpus[0]->mig_enabled)
      return absl::InvalidArgumentError(
          "all devices on the node must be configured with the same "
          "migEnabled value");
  }
  for (const nvml::Gpu* gpu : gpus) {
    if (!gpu->mig_enabled) continue;
    if (gpu->migs.empty())
      return absl::InvalidArgumentError(absl::StrCat(
          "device ", gpu->index, " has no MIG devices configured"));
    for (const nvml::MigDevice& mig : gpu->migs) {
      if (first == nullptr) first = &mig;
      if (MigShape(mig) != MigShape(*first))
        return absl::InvalidArgumentError(
            "more than one MIG device type present on node");
    }
  }
  return absl::OkStatus();
}

// GPU index, then MIG slot; "0:9" before "0:10".
bool ByIndex(const Device& a, const Device& b) {
  return std::make_tuple(a.gpu_index, a.index.size(), a.index) <
         std::make_tuple(b.gpu_index, b.index.size(), b.index);
}

class Builder {
 public:
  Builder(const config::Plan& plan, const std::string& root)
      : plan_(plan), root_(root) {}

  absl::StatusOr<Inventory> Build(
      const std::vector<absl::StatusOr<nvml::Gpu>>& gpus) {
    std::vector<const nvml::Gpu*> usable;
    for (size_t i = 0; i < gpus.size(); ++i) {
      if (!gpus[i].ok()) {
        ++unreadable_;
        inventory_.warnings.push_back(absl::StrCat(
            "GPU ", i, " is left out: ", gpus[i].status().message()));
      } else if (gpus[i]->name != "NVIDIA DGX Display" &&
                 gpus[i]->name != "DGX Display") {
        usable.push_back(&*gpus[i]);
      }
    }
    RONDO_RETURN_IF_ERROR(AddDevices(usable));
    RONDO_RETURN_IF_ERROR(ApplySharing());
    for (auto& [name, resource] : resources_) {
      if (!resource.devices.empty())
        inventory_.resources.push_back(std::move(resource));
    }
    return std::move(inventory_);
  }

 private:
  absl::Status AddDevices(const std::vector<const nvml::Gpu*>& gpus) {
    const config::MigStrategy strategy = plan_.flags.mig_strategy;
    if (strategy == config::MigStrategy::kSingle)
      RONDO_RETURN_IF_ERROR(CheckSingleStrategy(gpus));
    for (const nvml::Gpu* gpu : gpus) {
      const std::optional<int> numa =
          NumaNode(*gpu, root_, inventory_.warnings);
      if (strategy == config::MigStrategy::kNone || !gpu->mig_enabled) {
        Add(kGpuResource, WholeGpu(*gpu, numa));
        continue;
      }
      if (gpu->migs.empty())
        inventory_.warnings.push_back(absl::StrCat(
            "GPU ", gpu->index, " has MIG enabled but no MIG devices"));
      for (const nvml::MigDevice& mig : gpu->migs) {
        if (!minors_.ok()) minors_ = ReadMigMinors(root_);
        RONDO_RETURN_IF_ERROR(minors_.status());
        RONDO_ASSIGN_OR_RETURN(Device device,
                               MigPart(*gpu, mig, numa, *minors_));
        Add(strategy == config::MigStrategy::kSingle
                ? std::string(kGpuResource)
                : absl::StrCat("nvidia.com/mig-",
                               absl::StrReplaceAll(mig.profile, {{"+", "."}})),
            std::move(device));
      }
    }
    return absl::OkStatus();
  }

  void Add(absl::string_view name, Device device) {
    Resource& resource = resources_[std::string(name)];
    resource.name = resource.original_name = std::string(name);
    resource.devices.push_back(std::move(device));
  }

  // Moves the devices that each entry selects to its advertised name, with
  // replicas. Devices nobody selects stay as they are.
  absl::Status ApplySharing() {
    const std::map<std::string, Resource> all = resources_;
    for (const config::SharedResource& entry : plan_.sharing.resources) {
      const auto found = all.find(entry.name);
      if (found == all.end()) {
        inventory_.warnings.push_back(
            absl::StrCat("line ", entry.line, ": no GPU on this node offers '",
                         entry.name, "'; the entry has no effect"));
        continue;
      }
      RONDO_ASSIGN_OR_RETURN(const std::set<std::string> chosen,
                             Select(entry, found->second.devices));
      const std::string& name =
          entry.rename.empty() ? entry.name : entry.rename;
      for (const Device& device : found->second.devices) {
        if (chosen.count(device.uuid) > 0) Share(entry, name, device);
      }
    }
    return absl::OkStatus();
  }

  void Share(const config::SharedResource& entry, const std::string& name,
             const Device& device) {
    // A second entry for the same device under the same name: the sets of
    // replicas are merged, as in NVIDIA's plugin.
    std::vector<Device>& target = resources_[name].devices;
    const auto same = [&](const Device& d) { return d.uuid == device.uuid; };
    const auto present = std::find_if(target.begin(), target.end(), same);
    if (present != target.end() && present->replicas > 0) {
      present->replicas = std::max(present->replicas, entry.replicas);
      return;
    }
    std::vector<Device>& source = resources_[entry.name].devices;
    const auto exclusive = std::find_if(
        source.begin(), source.end(),
        [&](const Device& d) { return same(d) && d.replicas == 0; });
    if (exclusive != source.end()) source.erase(exclusive);
    Resource& resource = resources_[name];
    resource.name = name;
    if (resource.original_name.empty()) resource.original_name = entry.name;
    resource.devices.push_back(device);
    resource.devices.back().replicas = entry.replicas;
    std::stable_sort(resource.devices.begin(), resource.devices.end(), ByIndex);
  }

  absl::StatusOr<std::set<std::string>> Select(
      const config::SharedResource& entry, const std::vector<Device>& devices) {
    std::set<std::string> chosen;
    const config::DeviceSelector& selector = entry.devices;
    switch (selector.kind) {
      case config::DeviceSelector::Kind::kAll:
        for (const Device& device : devices) chosen.insert(device.uuid);
        return chosen;
      case config::DeviceSelector::Kind::kCount:
        if (static_cast<size_t>(selector.count) > devices.size())
          RONDO_RETURN_IF_ERROR(Mismatch(absl::StrCat(
              "line ", entry.line, ": 'devices: ", selector.count, "' of '",
              entry.name, "', but this node has ", devices.size())));
        for (const Device& device : devices) {
          if (chosen.size() == static_cast<size_t>(selector.count)) break;
          chosen.insert(device.uuid);
        }
        return chosen;
      case config::DeviceSelector::Kind::kList:
        for (const config::DeviceRef& ref : selector.list) {
          const auto device = std::find_if(
              devices.begin(), devices.end(), [&](const Device& d) {
                return ref.kind == config::DeviceRef::Kind::kUuid
                           ? d.uuid == ref.text
                           : d.index == ref.text;
              });
          if (device == devices.end())
            RONDO_RETURN_IF_ERROR(Mismatch(
                absl::StrCat("line ", entry.line, ": no device '", ref.text,
                             "' of '", entry.name, "' on this node")));
          else
            chosen.insert(device->uuid);
        }
        return chosen;
    }
    return chosen;
  }

  // With a lost GPU the plan may be right and the node wrong: the rest of the
  // node goes on working.
  absl::Status Mismatch(const std::string& text) {
    if (unreadable_ == 0) return absl::InvalidArgumentError(text);
    inventory_.warnings.push_back(text);
    return absl::OkStatus();
  }

  const config::Plan& plan_;
  const std::string& root_;
  int unreadable_ = 0;
  absl::StatusOr<MigMinors> minors_ = absl::UnknownError("not read yet");
  std::map<std::string, Resource> resources_;
  Inventory inventory_;
};

}  // namespace

absl::StatusOr<Inventory> BuildInventory(
    const std::vector<absl::StatusOr<nvml::Gpu>>& gpus,
    const config::Plan& plan, const std::string& root) {
  return Builder(plan, root).Build(gpus);
}

std::vector<Device> Inventory::AllDevices() const {
  std::vector<Device> all;
  for (const Resource& resource : resources)
    all.insert(all.end(), resource.devices.begin(), resource.devices.end());
  return all;
}

absl::Status CheckListSizes(const Inventory& inventory) {
  for (const Resource& resource : inventory.resources) {
    const View view = MakeView(
        resource, std::vector<bool>(resource.devices.size(), false), {});
    const size_t size = view.EncodedSize();
    if (size <= kMaxListBytes) continue;
    uint64_t count = 0;
    for (const Run& run : view.runs()) count += run.size();
    return absl::InvalidArgumentError(absl::StrCat(
        "'", resource.name, "' has ", count, " devices, a list of ", size,
        " bytes; kubelet takes at most ", kMaxListBytes, ", which is about ",
        count * kMaxListBytes / size / resource.devices.size(),
        " replicas of each device here"));
  }
  return absl::OkStatus();
}

std::map<std::string, Device> KnownDevices(
    const std::vector<absl::StatusOr<nvml::Gpu>>& gpus,
    const std::vector<Device>& advertised) {
  std::map<std::string, Device> known;
  for (const Device& device : advertised) known[device.uuid] = device;
  const auto add = [&](const std::string& uuid, const nvml::Gpu& gpu) {
    Device device;
    device.uuid = uuid;
    device.gpu_uuid = gpu.uuid;
    device.gpu_index = gpu.index;
    device.index = absl::StrCat(gpu.index);
    device.name = gpu.name;
    device.paths = {absl::StrCat("/dev/nvidia", gpu.minor)};
    known.try_emplace(uuid, device);
  };
  for (const absl::StatusOr<nvml::Gpu>& gpu : gpus) {
    if (!gpu.ok()) continue;
    add(gpu->uuid, *gpu);
    for (const nvml::MigDevice& mig : gpu->migs) add(mig.uuid, *gpu);
  }
  return known;
}

}  // namespace rondo::deviceplugin
