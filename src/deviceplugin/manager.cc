// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/manager.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "deviceplugin/allocate.h"
#include "deviceplugin/cdi_spec.h"
#include "deviceplugin/checkpoint.h"
#include "deviceplugin/directory_watch.h"
#include "deviceplugin/endpoint.h"
#include "deviceplugin/health_watcher.h"
#include "deviceplugin/inventory.h"
#include "deviceplugin/link_finder.h"
#include "deviceplugin/retired.h"
#include "deviceplugin/slot_cdi_spec.h"

namespace rondo::deviceplugin {
namespace {

constexpr absl::string_view kCheckpointName = "kubelet_internal_checkpoint";
constexpr std::chrono::seconds kSlowestPrune(5);

std::string Base(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string Folder(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

bool UsesCdi(const config::Flags& flags) {
  return std::any_of(
      flags.device_list_strategies.begin(), flags.device_list_strategies.end(),
      [](config::DeviceListStrategy strategy) {
        return strategy == config::DeviceListStrategy::kCdiAnnotations ||
               strategy == config::DeviceListStrategy::kCdiCri;
      });
}

}  // namespace

class Manager::Impl {
 public:
  Impl(EventLoop& loop, nvml::Backend& backend, ManagerOptions options,
       const Clock& clock)
      : loop_(loop),
        options_(std::move(options)),
        clock_(clock),
        links_(loop, backend, [this] { PublishAll(); }),
        health_(backend, clock,
                XidFilter(options_.disable_health_checks,
                          options_.enable_health_checks),
                {options_.recovery_quiet, options_.probe_interval},
                [this, alive = std::weak_ptr<bool>(alive_)] {
                  loop_.Post([this, alive] {
                    if (!alive.expired()) PublishAll();
                  });
                }) {
    if (!options_.held_devices)
      options_.held_devices = [dir = options_.socket_dir] {
        return ReadCheckpoint(dir);
      };
  }

  ~Impl() { loop_.CancelTimer(prune_timer_); }

  absl::Status Apply(const config::Plan& plan, const GpuList& gpus) {
    // Everything that can fail comes first and changes nothing.
    RONDO_ASSIGN_OR_RETURN(Inventory inventory,
                           BuildInventory(gpus, plan, options_.root));
    RONDO_RETURN_IF_ERROR(CheckListSizes(inventory));
    RONDO_ASSIGN_OR_RETURN(AllocateSettings settings,
                           MakeAllocateSettings(plan, options_.root));
    settings.slot_dir = options_.slot_dir;
    const std::vector<Device> all = inventory.AllDevices();
    if (UsesCdi(plan.flags)) {
      RONDO_ASSIGN_OR_RETURN(settings.cdi_classes,
                             WriteCdiSpecs(plan.flags, all, settings,
                                           options_.root, options_.cdi_dir));
    }
    RONDO_RETURN_IF_ERROR(
        KeepSlotCdiSpec(options_, settings.injection, inventory, Slots()));
    RONDO_RETURN_IF_ERROR(MakeDirectories(options_.socket_dir, 0750));

    for (const std::string& warning : inventory.warnings) LogWarning(warning);
    settings_ = std::make_shared<const AllocateSettings>(std::move(settings));
    policy_ = plan.flags.allocation_policy;
    WatchKubelet(plan.flags.kubelet_socket);
    health_.SetDevices(all);
    Adopt(std::move(inventory), KnownDevices(gpus, all));
    WantLinks(gpus);
    Prune();
    PublishAll();
    return absl::OkStatus();
  }

  void SetOnChange(std::function<void()> on_change) {
    on_change_ = std::move(on_change);
  }

  Stats Snapshot() const {
    Stats stats;
    const HealthWatcher::Counters health = health_.counters();
    stats.xid_events = health.xid_events;
    stats.recoveries = health.recoveries;
    stats.nvml_wait_errors = health.wait_errors;
    std::lock_guard<std::mutex> lock(mutex_);
    stats.kubelet_restarts = kubelet_restarts_;
    for (const auto& [name, state] : states_)
      stats.resources.push_back(ResourceSnapshot(state));
    return stats;
  }

  std::vector<SlotGroup> Slots() const {
    std::map<std::string, SlotGroup> groups;
    for (const auto& [name, state] : states_) {
      if (state.view == nullptr) continue;
      for (const Run& run : state.view->runs()) {
        if (!run.is_replica) continue;
        const Device& device = state.view->devices()[run.device];
        SlotGroup& group = groups[device.uuid];
        group.uuid = device.uuid;
        group.usable_bytes = device.usable_bytes;
        if (!run.retired)
          group.replicas = std::max(group.replicas, device.replicas);
        for (uint32_t n = run.begin; n < run.end; ++n) group.numbers.insert(n);
      }
    }
    std::vector<SlotGroup> list;
    for (auto& [uuid, group] : groups) list.push_back(std::move(group));
    return list;
  }

  bool Ready() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return kubelet_socket_.empty() ||
           std::all_of(states_.begin(), states_.end(), [](const auto& entry) {
             if (entry.second.endpoint == nullptr) return false;
             const Endpoint::Status status = entry.second.endpoint->status();
             return status.registered && status.watched;
           });
  }

 private:
  struct State {
    Resource resource;  // no devices: only retired ids are left
    Retired retired;
    std::unique_ptr<Endpoint> endpoint;
    std::shared_ptr<const View> view;  // as last published
  };

  // Takes the new resources into states_; those that are gone keep their
  // retired ids.
  void Adopt(Inventory inventory, const std::map<std::string, Device>& known) {
    const MonotonicTime now = clock_.Now();
    const absl::StatusOr<HeldDevices> held = options_.held_devices();
    if (!held.ok())
      LogWarning("who holds which device is unknown: ",
                 held.status().message());
    std::map<std::string, Resource> wanted;
    for (Resource& resource : inventory.resources)
      wanted[resource.name] = std::move(resource);
    for (const auto& [name, state] : states_) wanted[name].name = name;
    if (held.ok()) {
      for (const auto& [name, ids] : *held) wanted[name].name = name;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto& [name, resource] : wanted) {
      State& state = states_[name];
      state.retired.OnChange(state.resource, resource, now);
      if (held.ok() && held->count(name) > 0)
        state.retired.AddHeld(held->at(name), resource, known, now);
      state.resource = std::move(resource);
      // Another plugin's resource that the checkpoint named.
      if (state.resource.devices.empty() && state.retired.empty())
        states_.erase(name);
    }
  }

  void WatchKubelet(const std::string& kubelet_socket) {
    if (socket_watch_ != nullptr && kubelet_socket == kubelet_socket_) return;
    // Another socket: all registrations start anew.
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (auto& [name, state] : states_)
        gone_.push_back(std::move(state.endpoint));
      kubelet_socket_ = kubelet_socket;
    }
    gone_.clear();
    kubelet_seen_ = FileIdentity::Of(kubelet_socket_);
    const auto on_change = [this](absl::string_view name) {
      OnDirectoryChange(name);
    };
    socket_watch_ =
        std::make_unique<DirectoryWatch>(loop_, options_.socket_dir, on_change);
    kubelet_watch_.reset();
    if (!kubelet_socket_.empty() &&
        Folder(kubelet_socket_) != options_.socket_dir)
      kubelet_watch_ = std::make_unique<DirectoryWatch>(
          loop_, Folder(kubelet_socket_), on_change);
  }

  void OnDirectoryChange(absl::string_view name) {
    // Own sockets first: kubelet connects back while we register.
    for (auto& [resource, state] : states_) {
      if (name.empty() || name == state.endpoint->socket_name())
        state.endpoint->OnOwnSocketChanged();
    }
    if (name.empty() || name == Base(kubelet_socket_)) OnKubeletSocket();
    if (name.empty() || name == kCheckpointName) PruneAndPublish();
  }

  void OnKubeletSocket() {
    const FileIdentity kubelet = FileIdentity::Of(kubelet_socket_);
    if (!kubelet.exists() || kubelet == kubelet_seen_) return;
    if (kubelet_seen_.exists()) {
      std::lock_guard<std::mutex> lock(mutex_);
      ++kubelet_restarts_;
    }
    kubelet_seen_ = kubelet;
    for (auto& [resource, state] : states_)
      state.endpoint->OnKubeletSocketChanged();
  }

  // Only between whole GPUs that are not shared is there a choice.
  void WantLinks(const GpuList& gpus) {
    std::vector<nvml::Gpu> whole;
    for (const absl::StatusOr<nvml::Gpu>& gpu : gpus) {
      if (!gpu.ok()) continue;
      for (const auto& [name, state] : states_) {
        for (const Device& device : state.resource.devices) {
          if (device.replicas == 0 && device.uuid == gpu->uuid)
            whole.push_back(*gpu);
        }
      }
    }
    links_.Want(std::move(whole));
  }

  // Drops retired ids that nobody holds; keeps asking while there are any.
  // Returns whether something changed.
  bool Prune() {
    loop_.CancelTimer(prune_timer_);
    prune_timer_ = 0;
    if (std::all_of(states_.begin(), states_.end(), [](const auto& entry) {
          return entry.second.retired.empty();
        }))
      return false;
    bool pruned = false;
    const absl::StatusOr<HeldDevices> held = options_.held_devices();
    // While it is unknown who holds what, nothing goes.
    if (held.ok()) {
      std::lock_guard<std::mutex> lock(mutex_);
      for (auto at = states_.begin(); at != states_.end();) {
        State& state = at->second;
        const auto ids = held->find(at->first);
        pruned |= state.retired.Prune(
            ids == held->end() ? std::set<std::string>() : ids->second,
            clock_.Now(), options_.retire_min);
        if (state.resource.devices.empty() && state.retired.empty()) {
          LogInfo(at->first, ": no longer advertised");
          gone_.push_back(std::move(state.endpoint));
          at = states_.erase(at);
        } else {
          ++at;
        }
      }
    }
    gone_.clear();
    prune_timer_ = loop_.RunAfter(
        std::clamp<MonotonicTime>(options_.retire_min / 2,
                                  std::chrono::milliseconds(10), kSlowestPrune),
        [this] { PruneAndPublish(); });
    return pruned;
  }

  void PruneAndPublish() {
    if (Prune()) PublishAll();
  }

  // Sends each resource's list if it differs from the last one, and starts
  // servers that are missing.
  void PublishAll() {
    for (auto& [name, state] : states_) {
      std::vector<bool> healthy;
      for (const Device& device : state.resource.devices)
        healthy.push_back(health_.UnhealthyReason(device.uuid).empty());
      const std::shared_ptr<const View> view(
          new View(MakeView(state.resource, healthy, state.retired.devices())));
      deviceplugin::Snapshot snapshot{view, settings_, links_.scores(), policy_,
                                      options_.on_allocate};
      {
        std::lock_guard<std::mutex> lock(mutex_);
        state.view = view;
      }
      if (state.endpoint != nullptr) {
        state.endpoint->Publish(std::move(snapshot));
        continue;
      }
      auto endpoint = std::make_unique<Endpoint>(
          loop_, options_.socket_dir, kubelet_socket_, name,
          std::move(snapshot), [this] { Changed(); });
      std::lock_guard<std::mutex> lock(mutex_);
      state.endpoint = std::move(endpoint);
    }
    Changed();
  }

  void Changed() {
    if (on_change_) on_change_();
  }

  ResourceStats ResourceSnapshot(const State& state) const;

  EventLoop& loop_;
  ManagerOptions options_;
  const Clock& clock_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::function<void()> on_change_;
  std::shared_ptr<const AllocateSettings> settings_;
  config::AllocationPolicy policy_ = config::AllocationPolicy::kDistributed;
  FileIdentity kubelet_seen_;
  EventLoop::TimerId prune_timer_ = 0;

  // Written on the loop's thread, under the mutex for Snapshot's sake.
  mutable std::mutex mutex_;
  std::string kubelet_socket_;
  std::map<std::string, State> states_;
  uint64_t kubelet_restarts_ = 0;

  std::vector<std::unique_ptr<Endpoint>> gone_;
  std::unique_ptr<DirectoryWatch> socket_watch_;
  std::unique_ptr<DirectoryWatch> kubelet_watch_;
  LinkFinder links_;
  // Last: its thread calls back.
  HealthWatcher health_;
};

Manager::Manager(EventLoop& loop, nvml::Backend& backend,
                 ManagerOptions options, const Clock& clock)
    : impl_(std::make_unique<Impl>(loop, backend, std::move(options), clock)) {}
Manager::~Manager() = default;

absl::Status Manager::Apply(const config::Plan& plan, const GpuList& gpus) {
  return impl_->Apply(plan, gpus);
}
void Manager::SetOnChange(std::function<void()> on_change) {
  impl_->SetOnChange(std::move(on_change));
}
Stats Manager::Snapshot() const { return impl_->Snapshot(); }
std::vector<SlotGroup> Manager::Slots() const { return impl_->Slots(); }
bool Manager::Ready() const { return impl_->Ready(); }

ResourceStats Manager::Impl::ResourceSnapshot(const State& state) const {
  ResourceStats stats;
  stats.name = state.resource.name;
  stats.original_name = state.resource.original_name;
  if (state.view != nullptr) {
    for (const Run& run : state.view->runs()) {
      (run.healthy ? stats.healthy : stats.unhealthy) += run.size();
      if (run.retired) stats.retired += run.size();
    }
  }
  for (const Device& device : state.resource.devices) {
    DeviceStats& out = stats.devices.emplace_back();
    out.uuid = device.uuid;
    out.gpu_uuid = device.gpu_uuid;
    out.index = device.index;
    out.name = device.name;
    out.replicas = device.replicas;
    out.unhealthy_reason = health_.UnhealthyReason(device.uuid);
    out.healthy = out.unhealthy_reason.empty();
  }
  if (state.endpoint == nullptr) return stats;
  const Endpoint::Status status = state.endpoint->status();
  stats.socket = status.socket_path;
  stats.registered = status.registered;
  stats.watched = status.watched;
  stats.registrations = status.registrations;
  stats.registration_failures = status.failures;
  const PluginServer::Counters counters = state.endpoint->counters();
  stats.lists_sent = counters.lists_sent;
  stats.devices_allocated = counters.devices_allocated;
  stats.allocate = counters.allocate;
  stats.preferred_allocation = counters.preferred_allocation;
  return stats;
}

}  // namespace rondo::deviceplugin
