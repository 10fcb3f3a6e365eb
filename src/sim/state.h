// SPDX-License-Identifier: Apache-2.0
//
// The state of a simulated node: one file that `rondo sim` writes and every
// simulated driver library maps shared. Fixed-width, versioned, no pointers; a
// reader refuses another magic, version or size.
//
// Plain members are written once, before the file gets its name. Atomic members
// change while programs run: `rondo sim fault|process` writes them under a lock
// on the file (flock), readers take no lock. Whoever publishes an event adds a
// record to the ring, raises event_count and wakes event_futex (shared, so that
// waiters in any process and container wake).
//
// Units: MiB, bytes, mW, MHz and percent as named. Freestanding.

#ifndef RONDO_SIM_STATE_H_
#define RONDO_SIM_STATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rondo::sim {

inline constexpr uint64_t kStateMagic = 0x4D49534F444E4F52;  // "RONDOSIM"
inline constexpr uint32_t kStateVersion = 2;
inline constexpr char kStateFileName[] = "rondo-sim.state";
inline constexpr char kStateVariable[] = "RONDO_SIM_STATE";

inline constexpr uint32_t kMaxGpus = 16;
inline constexpr uint32_t kMaxMigs = 8;  // of one GPU
inline constexpr uint32_t kMaxMigProfiles = 12;
inline constexpr uint32_t kMaxProcesses = 64;  // of one GPU
inline constexpr uint32_t kMaxLinks = 18;
inline constexpr uint32_t kEventRing = 256;

struct EventRecord {
  std::atomic<uint64_t> type, data;
  std::atomic<uint32_t> gpu, gpu_instance, compute_instance, pad;
};
static_assert(sizeof(EventRecord) == 32);

enum class ProcessType : uint32_t { kCompute, kGraphics, kMps };

// pid 0 = a free place. pid is stored last and cleared first.
struct ProcessState {
  std::atomic<uint32_t> pid, type, mig_slot;  // mig_slot: kNoMig = whole GPU
  std::atomic<uint32_t> sm_percent, memory_percent, encoder_percent,
      decoder_percent, pad;
  std::atomic<uint64_t> used_bytes, started_us;
};
static_assert(sizeof(ProcessState) == 48);
inline constexpr uint32_t kNoMig = ~0u;

// One kind of GPU instance that the GPU can make.
struct MigProfileState {
  uint32_t profile;  // NVML_GPU_INSTANCE_PROFILE_*
  uint32_t id;       // the driver's number for it
  uint32_t slices, memory_slices, max_instances, multiprocessors;
  uint32_t copy_engines, decoders, encoders, jpegs, ofas, pad;
  uint64_t memory_mib;
  char name[24];  // "1g.10gb+me"
};
static_assert(sizeof(MigProfileState) == 80);

struct MigState {
  char uuid[48];
  uint32_t gpu_instance, compute_instance;
  uint32_t profile;  // index in GpuState::mig_profiles
  uint32_t compute_slices, compute_instances;  // its own; in its GPU instance
  uint32_t start, size;                        // placement of the GPU instance
  uint32_t multiprocessors;
};
static_assert(sizeof(MigState) == 80);

enum class LinkPeer : uint8_t { kNone, kGpu, kSwitch };

struct LinkState {
  LinkPeer peer;
  uint8_t index;  // of the GPU or switch
};

// Bits of GpuState::flags: what this model has.
inline constexpr uint32_t kHasEcc = 1u << 0;
inline constexpr uint32_t kHasRowRemap = 1u << 1;  // else page retirement
inline constexpr uint32_t kHasMig = 1u << 2;
inline constexpr uint32_t kMigEnabled = 1u << 3;
inline constexpr uint32_t kHasFan = 1u << 4;
inline constexpr uint32_t kHasXidEvents = 1u << 5;
inline constexpr uint32_t kHasFabric = 1u << 6;
inline constexpr uint32_t kHasHbm = 1u << 7;

struct GpuState {
  char name[96];
  char uuid[48];
  char serial[32], vbios[32], part_number[32];
  uint32_t minor, pci_domain, pci_bus, pci_device, device_id, subsystem_id;
  int32_t numa;  // -1 = none
  // GPUs with the same number share that part of the PCI tree; 0 = no switch.
  uint32_t host_bridge, pci_switch;
  uint32_t flags, brand, architecture, compute_major, compute_minor;
  uint32_t cores, multiprocessors, bus_width, pcie_generation, pcie_width;
  uint32_t memory_mib, reserved_mib, bar1_mib;
  uint32_t power_idle_mw, power_default_mw, power_min_mw, power_max_mw;
  uint32_t clock_idle, clock_base, clock_max, memory_clock_idle, memory_clock,
      video_clock_max;
  uint32_t temperature_idle, temperature_slowdown, temperature_shutdown;
  uint32_t max_migs, mig_profile_count, mig_count;
  uint32_t nvlink_version, nvlink_mbps, pad;
  LinkState links[kMaxLinks];
  char pad2[4];
  MigProfileState mig_profiles[kMaxMigProfiles];
  MigState migs[kMaxMigs];

  std::atomic<uint32_t> lost;             // 1 = off the bus
  std::atomic<uint32_t> recovery_action;  // NVML_GPU_RECOVERY_ACTION_*
  std::atomic<uint32_t> last_xid, rows_pending, rows_failed, rows_remapped;
  std::atomic<uint64_t> ecc_corrected, ecc_uncorrected;  // since the reset
  std::atomic<uint64_t> ecc_corrected_ever, ecc_uncorrected_ever;
  // When the processes' shares were measured, us since the epoch; 0: they are
  // as somebody said, and hold at any time.
  std::atomic<uint64_t> measured_us;
  ProcessState processes[kMaxProcesses];
};
static_assert(sizeof(GpuState) == 5184);

struct NodeState {
  uint64_t magic;
  uint32_t version, size;
  uint32_t gpu_count, cuda_version;  // 13000 = 13.0
  char driver_version[32];
  uint64_t started_us;  // CLOCK_REALTIME
  std::atomic<uint32_t> event_futex, pad;
  std::atomic<uint64_t> event_count;  // records ever published
  EventRecord events[kEventRing];
  GpuState gpus[kMaxGpus];
};
static_assert(sizeof(NodeState) == 91216);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace rondo::sim

#endif  // RONDO_SIM_STATE_H_
