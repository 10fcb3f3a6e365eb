// SPDX-License-Identifier: Apache-2.0
#include "sim/layout.h"

#include <time.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "sim/identity.h"
#include "sim/mig_layout.h"

namespace rondo::sim {
namespace {

uint64_t NowUs() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000 + now.tv_nsec / 1000;
}

// The bus numbers of an 8-GPU board: pairs lie close together.
constexpr uint32_t kBus[kMaxGpus] = {0x17, 0x1B, 0x3D, 0x43, 0x85, 0x89,
                                     0xC5, 0xCB, 0x18, 0x1C, 0x3E, 0x44,
                                     0x86, 0x8A, 0xC6, 0xCC};

void FillPlace(const GpuSpec& spec, int index, int count, GpuState* g) {
  const Model& m = *spec.model;
  g->minor = spec.minor.value_or(index);
  g->pci_bus = kBus[index];
  g->numa = m.numa_nodes == 0 ? -1
            : count == 1      ? 0
                              : index * m.numa_nodes / count;
  if (spec.numa) g->numa = *spec.numa;
  const int socket = std::max(g->numa, 0);
  if (m.on_switch) {
    g->pci_switch = index / 2 + 1;
    // A pair whose halves were put on two sockets does not share a switch.
    g->host_bridge = 100 + socket * 100 + index / 2;
    g->pci_switch += socket * 100;
  } else {
    g->host_bridge = 100 + socket;
  }
}

void FillNumbers(const Model& m, GpuState* g) {
  g->device_id = m.device_id;
  g->subsystem_id = (m.device_id & 0xFFFF0000) >> 4 | 0x10DE;
  g->brand = m.brand, g->architecture = m.architecture;
  g->compute_major = m.compute_major, g->compute_minor = m.compute_minor;
  g->cores = m.cores, g->multiprocessors = m.multiprocessors;
  g->bus_width = m.bus_width;
  g->pcie_generation = m.pcie_generation, g->pcie_width = 16;
  g->memory_mib = m.memory_mib, g->reserved_mib = m.reserved_mib;
  g->bar1_mib = m.bar1_mib;
  g->power_idle_mw = m.power_idle * 1000;
  g->power_default_mw = m.power_limit * 1000;
  g->power_min_mw = m.power_min * 1000, g->power_max_mw = m.power_max * 1000;
  g->clock_idle = m.clock_idle, g->clock_base = m.clock_base;
  g->clock_max = m.clock_max;
  g->memory_clock_idle = m.memory_clock_idle;
  g->memory_clock = m.memory_clock;
  g->video_clock_max = m.clock_max * 9 / 10;
  g->temperature_idle = 32;
  g->temperature_slowdown = 89, g->temperature_shutdown = 92;
  g->flags = m.flags;
  g->nvlink_version = m.nvlink_version, g->nvlink_mbps = m.nvlink_mbps;
}

absl::Status AddLinks(NodeState* state, int a, int b, int count) {
  for (int n = 0; n < count; ++n) {
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      LinkState* const links = state->gpus[from].links;
      LinkState* const free = std::find_if(
          links, links + kMaxLinks,
          [](const LinkState& l) { return l.peer == LinkPeer::kNone; });
      if (free == links + kMaxLinks)
        return absl::InvalidArgumentError(
            absl::StrCat("GPU ", from, " has ", kMaxLinks, " NVLinks only"));
      *free = {LinkPeer::kGpu, static_cast<uint8_t>(to)};
    }
  }
  return absl::OkStatus();
}

// The hybrid cube mesh of an 8-GPU Volta board; smaller nodes use its corner.
constexpr uint8_t kMesh[8][8] = {
    {0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0},
    {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
    {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
    {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};

absl::Status FillLinks(const Profile& profile, NodeState* state) {
  const int count = profile.gpus.size();
  if (profile.nvlink == NvLinkLayout::kNone) return absl::OkStatus();
  for (const LinkSpec& link : profile.links)
    RONDO_RETURN_IF_ERROR(AddLinks(state, link.a, link.b, link.count));
  if (!profile.links.empty()) return absl::OkStatus();
  for (int a = 0; a < count; ++a) {
    const Model& m = *profile.gpus[a].model;
    if (m.nvswitches != 0 && count > 1)
      for (uint32_t l = 0; l < m.nvlinks; ++l)
        state->gpus[a].links[l] = {LinkPeer::kSwitch,
                                   static_cast<uint8_t>(l % m.nvswitches)};
    for (int b = a + 1; m.nvswitches == 0 && m.nvlinks != 0 && b < count; ++b)
      if (profile.gpus[b].model == &m && a < 8 && b < 8)
        RONDO_RETURN_IF_ERROR(AddLinks(state, a, b, kMesh[a][b]));
  }
  return absl::OkStatus();
}

absl::Status FillGpu(const Profile& profile, int index, GpuState* g) {
  const GpuSpec& spec = profile.gpus[index];
  const Model& m = *spec.model;
  const std::string key = absl::StrCat(profile.seed, "/", m.id, "/", index);
  FillNumbers(m, g);
  FillPlace(spec, index, profile.gpus.size(), g);
  CopyText(spec.name.empty() ? m.name : spec.name, g->name);
  CopyText(spec.uuid.empty() ? MakeUuid("GPU", key) : spec.uuid, g->uuid);
  CopyText(absl::StrFormat("15%011d", Hash(key) % 100000000000), g->serial);
  CopyText(absl::StrFormat("%02X.00.%02X.00.01", m.architecture * 0x10 + 0x22,
                           m.device_id >> 16 & 0xFF),
           g->vbios);
  CopyText(absl::StrFormat("900-2G%03X-0000-000", m.device_id >> 20),
           g->part_number);
  if (spec.memory_mib) g->memory_mib = *spec.memory_mib;
  if (spec.ecc) g->flags = *spec.ecc ? g->flags | kHasEcc : g->flags & ~kHasEcc;
  if (spec.xid_events)
    g->flags =
        *spec.xid_events ? g->flags | kHasXidEvents : g->flags & ~kHasXidEvents;
  if (g->memory_mib <= g->reserved_mib)
    return absl::InvalidArgumentError("memory is less than the driver's part");
  RONDO_RETURN_IF_ERROR(FillMig(spec, key, g));
  for (const SimProcess& process : spec.processes)
    RONDO_RETURN_IF_ERROR(StoreProcess(process, g));
  return absl::OkStatus();
}

}  // namespace

std::string BusId(const GpuState& g) {
  return absl::StrFormat("%08X:%02X:%02X.0", g.pci_domain, g.pci_bus,
                         g.pci_device);
}

absl::Status StoreProcess(const SimProcess& process, GpuState* g) {
  if (process.mig_slot >= static_cast<int>(g->mig_count))
    return absl::InvalidArgumentError(
        absl::StrCat("no MIG device in slot ", process.mig_slot));
  const uint32_t slot = process.mig_slot < 0 ? kNoMig : process.mig_slot;
  ProcessState* place = nullptr;
  for (ProcessState& p : g->processes) {
    if (p.pid == process.pid && p.mig_slot == slot) {
      place = &p;
      break;
    }
    if (place == nullptr && p.pid == 0) place = &p;
  }
  if (place == nullptr)
    return absl::ResourceExhaustedError(
        absl::StrCat("a simulated GPU holds ", kMaxProcesses, " processes"));
  place->mig_slot = slot;
  place->type = static_cast<uint32_t>(process.graphics ? ProcessType::kGraphics
                                                       : ProcessType::kCompute);
  place->used_bytes = process.used_bytes;
  place->sm_percent = process.sm_percent;
  place->memory_percent = process.memory_percent;
  if (place->pid == 0) place->started_us = NowUs();
  place->pid = process.pid;
  return absl::OkStatus();
}

absl::Status FillState(const Profile& profile, NodeState* state) {
  state->magic = kStateMagic;
  state->version = kStateVersion;
  state->size = sizeof(NodeState);
  state->gpu_count = profile.gpus.size();
  state->cuda_version = profile.cuda_version;
  CopyText(profile.driver_version, state->driver_version);
  state->started_us = NowUs();
  for (size_t i = 0; i < profile.gpus.size(); ++i)
    RONDO_RETURN_IF_ERROR(Annotate(FillGpu(profile, i, &state->gpus[i]),
                                   absl::StrCat("GPU ", i)));
  return FillLinks(profile, state);
}

}  // namespace rondo::sim
