// SPDX-License-Identifier: Apache-2.0
#include "demo/stand_in_kubelet.h"

#include <dirent.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "proto/deviceplugin/v1beta1.grpc.pb.h"

namespace rondo::demo {
namespace {

constexpr char kCheckpoint[] = "kubelet_internal_checkpoint";

}  // namespace

class StandInKubelet::Impl : public v1beta1::Registration::Service {
 public:
  explicit Impl(std::string dir) : dir_(std::move(dir)) {}
  ~Impl() override { Stop(); }

  absl::Status Start() {
    RONDO_RETURN_IF_ERROR(MakeDirectories(dir_, 0750));
    RemoveSockets();
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_path(),
                             grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
    std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    if (server == nullptr)
      return absl::UnavailableError("cannot serve " + socket_path());
    std::lock_guard<std::mutex> lock(mutex_);
    server_ = std::move(server);
    return absl::OkStatus();
  }

  void Stop() {
    DropPlugins();
    std::unique_ptr<grpc::Server> server;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      server = std::move(server_);
      stale_.clear();
    }
    if (server != nullptr) server->Shutdown(std::chrono::system_clock::now());
    server.reset();
    DropPlugins();
  }

  void DropPlugins() {
    std::vector<std::shared_ptr<PluginClient>> plugins;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (auto& [name, state] : resources_) {
        if (state.plugin != nullptr)
          plugins.push_back(std::exchange(state.plugin, nullptr));
        // As markResourceUnhealthy: the capacity stays, nothing is healthy.
        for (auto& [id, healthy] : state.devices) healthy = false;
      }
      changed_.notify_all();
    }
    plugins.clear();  // cancels and joins
    CollectEnded();
  }

  std::string socket_path() const { return dir_ + "/kubelet.sock"; }

  ResourceCounts Counts(const std::string& resource) const {
    std::lock_guard<std::mutex> lock(mutex_);
    return CountsLocked(resource);
  }

  std::vector<std::string> Ids(const std::string& resource,
                               bool healthy) const {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::string> ids;
    const auto state = resources_.find(resource);
    if (state == resources_.end()) return ids;
    for (const auto& [id, is_healthy] : state->second.devices) {
      if (is_healthy == healthy) ids.push_back(id);
    }
    return ids;
  }

  bool WaitFor(const std::string& resource,
               const std::function<bool(const ResourceCounts&)>& done,
               std::chrono::milliseconds deadline) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, deadline,
                             [&] { return done(CountsLocked(resource)); });
  }

  Admission Admit(const std::string& pod,
                  const std::vector<Container>& containers, bool schedule) {
    CollectEnded();
    // One admission at a time, as in kubelet.
    std::lock_guard<std::mutex> admission(admission_mutex_);
    Admission result;
    if (schedule && !Fits(containers, result)) return result;
    for (const Container& container : containers) {
      for (const auto& [resource, count] : container) {
        absl::StatusOr<Grant> grant = AllocateOne(pod, resource, count);
        if (grant.ok()) {
          result.grants.push_back(*std::move(grant));
          continue;
        }
        Remove(pod);
        result.phase = Admission::Phase::kFailed;
        result.reason = "UnexpectedAdmissionError";
        result.message =
            absl::StrCat("Allocate failed due to ", grant.status().message(),
                         ", which is unexpected");
        result.grants.clear();
        return result;
      }
    }
    std::lock_guard<std::mutex> lock(mutex_);
    WriteCheckpointLocked();
    return result;
  }

  void Remove(const std::string& pod) {
    std::lock_guard<std::mutex> lock(mutex_);
    held_.erase(pod);
    WriteCheckpointLocked();
    changed_.notify_all();
  }

 private:
  struct ResourceState {
    std::shared_ptr<PluginClient> plugin;
    std::map<std::string, bool> devices;  // id -> healthy
    int lists = 0;
    int registrations = 0;
  };

  void RemoveSockets() {
    DIR* dir = opendir(dir_.c_str());
    if (dir == nullptr) return;
    while (const dirent* entry = readdir(dir)) {
      const std::string path = absl::StrCat(dir_, "/", entry->d_name);
      struct stat status;
      if (lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode))
        unlink(path.c_str());
    }
    closedir(dir);
  }

  grpc::Status Register(grpc::ServerContext*,
                        const v1beta1::RegisterRequest* request,
                        v1beta1::Empty*) override {
    const absl::Status status = Connect(*request);
    return status.ok() ? grpc::Status::OK
                       : grpc::Status(grpc::StatusCode::UNKNOWN,
                                      std::string(status.message()));
  }

  absl::Status Connect(const v1beta1::RegisterRequest& request) {
    const std::string resource = request.resource_name();
    if (request.version() != "v1beta1")
      return absl::UnknownError(
          absl::StrCat("requested API version \"", request.version(),
                       "\" is not supported by kubelet. Supported version is "
                       "[\"v1beta1\"]"));
    if (resource.find('/') == std::string::npos)
      return absl::UnknownError(
          absl::StrCat("the ResourceName \"", resource, "\" is invalid"));
    const std::string socket = absl::StrCat(dir_, "/", request.endpoint());
    auto plugin = std::make_shared<PluginClient>(resource, socket);
    if (const absl::Status status = plugin->Connect(); !status.ok())
      return absl::UnknownError(
          absl::StrCat("failed to dial device plugin: ", status.message()));
    std::lock_guard<std::mutex> lock(mutex_);
    ResourceState& state = resources_[resource];
    if (stale_.count(socket) > 0 ||
        (state.plugin != nullptr && state.plugin->socket() == socket)) {
      stale_.insert(socket);
      return absl::UnknownError(
          absl::StrCat("device plugin already connected: ", socket));
    }
    if (state.plugin != nullptr) ended_.push_back(std::move(state.plugin));
    state.plugin = plugin;
    ++state.registrations;
    state.lists = 0;
    plugin->Watch([this, raw = plugin.get()](
                      std::vector<ListedDevice> list) { OnList(raw, list); },
                  [this, raw = plugin.get()] { OnEnd(raw); });
    changed_.notify_all();
    return absl::OkStatus();
  }

  void OnList(const PluginClient* plugin,
              const std::vector<ListedDevice>& list) {
    std::lock_guard<std::mutex> lock(mutex_);
    ResourceState& state = resources_[plugin->resource()];
    if (state.plugin.get() != plugin) return;
    state.devices.clear();
    for (const ListedDevice& device : list)
      state.devices[device.id] = device.healthy;
    ++state.lists;
    WriteCheckpointLocked();
    changed_.notify_all();
  }

  void OnEnd(const PluginClient* plugin) {
    std::lock_guard<std::mutex> lock(mutex_);
    ResourceState& state = resources_[plugin->resource()];
    if (state.plugin.get() != plugin) return;
    for (auto& [id, healthy] : state.devices) healthy = false;
    // Its own thread runs here: somebody else must join it.
    ended_.push_back(std::move(state.plugin));
    changed_.notify_all();
  }

  void CollectEnded() {
    std::vector<std::shared_ptr<PluginClient>> ended;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ended.swap(ended_);
    }
  }

  ResourceCounts CountsLocked(const std::string& resource) const {
    ResourceCounts counts;
    const auto state = resources_.find(resource);
    if (state == resources_.end()) return counts;
    counts.capacity = static_cast<int>(state->second.devices.size());
    for (const auto& [id, healthy] : state->second.devices)
      counts.allocatable += healthy;
    counts.lists = state->second.lists;
    counts.registrations = state->second.registrations;
    counts.connected = state->second.plugin != nullptr;
    return counts;
  }

  std::set<std::string> InUseLocked(const std::string& resource) const {
    std::set<std::string> ids;
    for (const auto& [pod, devices] : held_) {
      const auto of = devices.find(resource);
      if (of != devices.end()) ids.insert(of->second.begin(), of->second.end());
    }
    return ids;
  }

  // kube-scheduler's view: numbers, not devices.
  bool Fits(const std::vector<Container>& containers, Admission& result) const {
    std::map<std::string, int> wanted;
    for (const Container& container : containers) {
      for (const auto& [resource, count] : container) wanted[resource] += count;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [resource, count] : wanted) {
      const int used = static_cast<int>(InUseLocked(resource).size());
      if (used + count <= CountsLocked(resource).allocatable) continue;
      result.phase = Admission::Phase::kPending;
      result.reason = "Unschedulable";
      result.message = absl::StrCat("0/1 nodes are available: 1 Insufficient ",
                                    resource, ".");
      return false;
    }
    return true;
  }

  absl::StatusOr<Grant> AllocateOne(const std::string& pod,
                                    const std::string& resource, int count) {
    std::shared_ptr<PluginClient> plugin;
    std::set<std::string> available;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto state = resources_.find(resource);
      if (state == resources_.end())
        return absl::UnknownError("cannot allocate unregistered device " +
                                  resource);
      plugin = state->second.plugin;
      const std::set<std::string> in_use = InUseLocked(resource);
      for (const auto& [id, healthy] : state->second.devices) {
        if (healthy && in_use.count(id) == 0) available.insert(id);
      }
      if (CountsLocked(resource).allocatable == 0)
        return absl::UnknownError(
            "no healthy devices present; cannot allocate unhealthy devices " +
            resource);
    }
    if (plugin == nullptr)
      return absl::UnknownError(
          absl::StrCat("endpoint of ", resource, " has been stopped"));
    if (static_cast<int>(available.size()) < count)
      return absl::UnknownError(absl::StrCat(
          "requested number of devices unavailable for ", resource,
          ". Requested: ", count, ", Available: ", available.size()));
    RONDO_ASSIGN_OR_RETURN(const std::vector<std::string> ids,
                           Choose(*plugin, available, count));
    RONDO_ASSIGN_OR_RETURN(Grant grant, plugin->Allocate(ids));
    std::lock_guard<std::mutex> lock(mutex_);
    held_[pod][resource].insert(ids.begin(), ids.end());
    return grant;
  }

  // The plugin's preference, then whatever is free.
  static absl::StatusOr<std::vector<std::string>> Choose(
      PluginClient& plugin, const std::set<std::string>& available, int count) {
    absl::StatusOr<std::vector<std::string>> preferred =
        std::vector<std::string>();
    if (plugin.prefers())
      preferred = plugin.GetPreferredAllocation(
          {available.begin(), available.end()}, {}, count);
    if (!preferred.ok())
      return absl::UnknownError(absl::StrCat(
          "device plugin GetPreferredAllocation rpc failed with err: ",
          preferred.status().message()));
    std::vector<std::string> chosen;
    for (const std::string& id : *preferred) {
      if (available.count(id) > 0) chosen.push_back(id);
    }
    for (const std::string& id : available) {
      if (static_cast<int>(chosen.size()) >= count) break;
      if (std::find(chosen.begin(), chosen.end(), id) == chosen.end())
        chosen.push_back(id);
    }
    chosen.resize(count);
    return chosen;
  }

  void WriteCheckpointLocked() const {
    nlohmann::json entries = nlohmann::json::array();
    for (const auto& [pod, resources] : held_) {
      for (const auto& [resource, ids] : resources)
        entries.push_back({{"PodUID", pod},
                           {"ContainerName", "c"},
                           {"ResourceName", resource},
                           {"DeviceIDs", {{"-1", ids}}},
                           {"AllocResp", ""}});
    }
    nlohmann::json registered = nlohmann::json::object();
    for (const auto& [name, state] : resources_)
      registered[name] = nlohmann::json::array();
    const nlohmann::json checkpoint = {
        {"Data",
         {{"PodDeviceEntries", entries}, {"RegisteredDevices", registered}}},
        {"Checksum", 0}};
    // A folder that is gone is no reason to stop.
    (void)WriteFileAtomically(absl::StrCat(dir_, "/", kCheckpoint),
                              checkpoint.dump());
  }

  const std::string dir_;
  std::mutex admission_mutex_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, ResourceState> resources_;
  std::set<std::string> stale_;  // sockets that can never register again
  // pod -> resource -> ids
  std::map<std::string, std::map<std::string, std::set<std::string>>> held_;
  std::vector<std::shared_ptr<PluginClient>> ended_;
  std::unique_ptr<grpc::Server> server_;
};

StandInKubelet::StandInKubelet(std::string dir)
    : impl_(std::make_unique<Impl>(std::move(dir))) {}
StandInKubelet::~StandInKubelet() = default;
absl::Status StandInKubelet::Start() { return impl_->Start(); }
void StandInKubelet::Stop() { impl_->Stop(); }
void StandInKubelet::DropPlugins() { impl_->DropPlugins(); }
ResourceCounts StandInKubelet::Counts(const std::string& resource) const {
  return impl_->Counts(resource);
}
std::vector<std::string> StandInKubelet::Ids(const std::string& resource,
                                             bool healthy) const {
  return impl_->Ids(resource, healthy);
}
std::string StandInKubelet::socket_path() const { return impl_->socket_path(); }
bool StandInKubelet::WaitFor(
    const std::string& resource,
    const std::function<bool(const ResourceCounts&)>& done,
    std::chrono::milliseconds deadline) {
  return impl_->WaitFor(resource, done, deadline);
}
Admission StandInKubelet::Admit(const std::string& pod,
                                const std::vector<Container>& containers) {
  return impl_->Admit(pod, containers, /*schedule=*/true);
}
Admission StandInKubelet::AdmitUnscheduled(
    const std::string& pod, const std::vector<Container>& containers) {
  return impl_->Admit(pod, containers, /*schedule=*/false);
}
void StandInKubelet::Remove(const std::string& pod) { impl_->Remove(pod); }

}  // namespace rondo::demo
