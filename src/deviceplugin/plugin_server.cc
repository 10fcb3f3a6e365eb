// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/plugin_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>

#include <chrono>
#include <mutex>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "deviceplugin/callback_queue.h"
#include "proto/deviceplugin/v1beta1.grpc.pb.h"

namespace rondo::deviceplugin {
namespace {

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()));
}

// A random UUID (version 4) for the key of a CDI annotation.
std::string RandomUuid() {
  std::random_device random;
  uint32_t words[4];
  for (uint32_t& word : words) word = random();
  return absl::StrFormat("%08x-%04x-4%03x-%04x-%04x%08x", words[0],
                         words[1] >> 16, words[1] & 0xfff,
                         (words[2] >> 16 & 0x3fff) | 0x8000, words[2] & 0xffff,
                         words[3]);
}

void Fill(const ContainerAnswer& answer,
          v1beta1::ContainerAllocateResponse& response) {
  for (const auto& [name, value] : answer.envs)
    (*response.mutable_envs())[name] = value;
  for (const auto& [key, value] : answer.annotations)
    (*response.mutable_annotations())[key] = value;
  for (const Mount& mount : answer.mounts) {
    v1beta1::Mount& out = *response.add_mounts();
    out.set_container_path(mount.container_path);
    out.set_host_path(mount.host_path);
    out.set_read_only(mount.read_only);
  }
  for (const DeviceSpec& device : answer.devices) {
    v1beta1::DeviceSpec& out = *response.add_devices();
    out.set_container_path(device.container_path);
    out.set_host_path(device.host_path);
    out.set_permissions(device.permissions);
  }
  for (const std::string& name : answer.cdi_devices)
    response.add_cdi_devices()->set_name(name);
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

using Callbacks = v1beta1::DevicePlugin::WithCallbackMethod_PreStartContainer<
    v1beta1::DevicePlugin::WithCallbackMethod_Allocate<
        v1beta1::DevicePlugin::WithCallbackMethod_GetPreferredAllocation<
            v1beta1::DevicePlugin::WithCallbackMethod_GetDevicePluginOptions<
                v1beta1::DevicePlugin::WithRawCallbackMethod_ListAndWatch<
                    v1beta1::DevicePlugin::Service>>>>>;

}  // namespace

class PluginServer::Service : public Callbacks {
 public:
  Service(Snapshot snapshot, std::function<void(int)> on_streams)
      : snapshot_(std::move(snapshot)), on_streams_(std::move(on_streams)) {
    KeepCallbackQueue();
    grpc::ServerBuilder builder;
    builder.RegisterService(this);
    // kubelet asks for a preference with all free ids in one message.
    builder.SetMaxReceiveMessageSize(64 << 20);
    server_ = builder.BuildAndStart();
  }

  ~Service() override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
      for (Stream* stream : streams_) stream->EndLocked();
    }
    // Streams and calls under way get a moment to end; then they are cut.
    server_->Shutdown(std::chrono::system_clock::now() +
                      std::chrono::milliseconds(500));
    server_.reset();
  }

  void Adopt(UniqueFd connection) {
    grpc::AddInsecureChannelFromFd(server_.get(), connection.Release());
  }

  void Publish(Snapshot snapshot) {
    std::lock_guard<std::mutex> lock(mutex_);
    const bool same = snapshot.view->SameList(*snapshot_.view);
    snapshot_ = std::move(snapshot);
    if (same) return;
    for (Stream* stream : streams_) stream->SendLocked();
  }

  Counters counters() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return counters_;
  }

 private:
  // One ListAndWatch call. Deletes itself when gRPC is done with it. All state
  // is guarded by the service's mutex.
  class Stream : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
   public:
    explicit Stream(Service& service) : service_(service) {
      service_.Enter(this);
    }

    void SendLocked() {
      if (ended_) return;
      if (writing_) {
        stale_ = true;
        return;
      }
      writing_ = true;
      stale_ = false;
      message_ = service_.ListLocked();
      ++service_.counters_.lists_sent;
      StartWrite(&message_);
    }

    void EndLocked(grpc::Status status = grpc::Status::OK) {
      if (std::exchange(ended_, true)) return;
      Finish(std::move(status));
    }

   private:
    void OnWriteDone(bool ok) override {
      std::lock_guard<std::mutex> lock(service_.mutex_);
      writing_ = false;
      message_.Clear();
      if (!ok)
        EndLocked(grpc::Status::CANCELLED);
      else if (stale_)
        SendLocked();
    }
    // kubelet closed the stream or died. NVIDIA's plugin does not look, and
    // sends its next health event to nobody.
    void OnCancel() override {
      std::lock_guard<std::mutex> lock(service_.mutex_);
      EndLocked(grpc::Status::CANCELLED);
    }
    void OnDone() override {
      service_.Leave(this);
      delete this;
    }

    Service& service_;
    grpc::ByteBuffer message_;
    bool writing_ = false;
    bool stale_ = false;
    bool ended_ = false;
  };

  void Enter(Stream* stream) {
    int open;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      streams_.insert(stream);
      open = static_cast<int>(streams_.size());
      if (ending_)
        stream->EndLocked();
      else
        stream->SendLocked();
    }
    on_streams_(open);
  }

  void Leave(Stream* stream) {
    int open;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      streams_.erase(stream);
      open = static_cast<int>(streams_.size());
    }
    on_streams_(open);
  }

  grpc::ByteBuffer ListLocked() {
    const grpc::Slice slice(snapshot_.view->EncodeList());
    return grpc::ByteBuffer(&slice, 1);
  }

  Snapshot Current() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return snapshot_;
  }

  grpc::ServerUnaryReactor* Reply(grpc::CallbackServerContext* context,
                                  const grpc::Status& status) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(status);
    return reactor;
  }

  grpc::ServerUnaryReactor* GetDevicePluginOptions(
      grpc::CallbackServerContext* context, const v1beta1::Empty*,
      v1beta1::DevicePluginOptions* response) override {
    response->set_get_preferred_allocation_available(true);
    return Reply(context, grpc::Status::OK);
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* ListAndWatch(
      grpc::CallbackServerContext*, const grpc::ByteBuffer*) override {
    return new Stream(*this);
  }

  grpc::ServerUnaryReactor* PreStartContainer(
      grpc::CallbackServerContext* context,
      const v1beta1::PreStartContainerRequest*,
      v1beta1::PreStartContainerResponse*) override {
    return Reply(context, grpc::Status::OK);
  }

  grpc::ServerUnaryReactor* Allocate(
      grpc::CallbackServerContext* context,
      const v1beta1::AllocateRequest* request,
      v1beta1::AllocateResponse* response) override {
    const auto start = std::chrono::steady_clock::now();
    const Snapshot snapshot = Current();
    absl::Status status = absl::OkStatus();
    uint64_t allocated = 0;
    for (const auto& container : request->container_requests()) {
      const std::vector<std::string> ids(container.devices_ids().begin(),
                                         container.devices_ids().end());
      const absl::StatusOr<ContainerAnswer> answer = deviceplugin::Allocate(
          *snapshot.view, *snapshot.settings, ids, RandomUuid());
      status = answer.status();
      if (!status.ok()) break;
      if (snapshot.on_allocate) snapshot.on_allocate(ids);
      Fill(*answer, *response->add_container_responses());
      allocated += ids.size();
    }
    if (!status.ok()) LogWarning("refused: ", status.message());
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (status.ok()) counters_.devices_allocated += allocated;
      Count(counters_.allocate, status, start);
    }
    return Reply(context, ToGrpc(status));
  }

  grpc::ServerUnaryReactor* GetPreferredAllocation(
      grpc::CallbackServerContext* context,
      const v1beta1::PreferredAllocationRequest* request,
      v1beta1::PreferredAllocationResponse* response) override {
    const auto start = std::chrono::steady_clock::now();
    const Snapshot snapshot = Current();
    absl::Status status = absl::OkStatus();
    for (const auto& container : request->container_requests()) {
      PreferRequest question;
      question.available.assign(container.available_deviceids().begin(),
                                container.available_deviceids().end());
      question.required.assign(container.must_include_deviceids().begin(),
                               container.must_include_deviceids().end());
      question.size = container.allocation_size();
      absl::StatusOr<std::vector<std::string>> answer =
          Prefer(*snapshot.view, snapshot.policy, *snapshot.links, question);
      status = answer.status();
      if (!status.ok()) break;
      auto& ids = *response->add_container_responses()->mutable_deviceids();
      for (std::string& id : *answer) *ids.Add() = std::move(id);
    }
    {
      std::lock_guard<std::mutex> lock(mutex_);
      Count(counters_.preferred_allocation, status, start);
    }
    return Reply(context, ToGrpc(status));
  }

  static void Count(RpcStats& stats, const absl::Status& status,
                    std::chrono::steady_clock::time_point start) {
    stats.durations.Observe(SecondsSince(start));
    if (!status.ok()) ++stats.errors;
  }

  mutable std::mutex mutex_;
  Snapshot snapshot_;
  std::set<Stream*> streams_;
  bool ending_ = false;
  Counters counters_;
  const std::function<void(int)> on_streams_;
  // Last: its threads use all of the above.
  std::unique_ptr<grpc::Server> server_;
};

PluginServer::PluginServer(Snapshot snapshot,
                           std::function<void(int)> on_streams)
    : service_(std::make_unique<Service>(std::move(snapshot),
                                         std::move(on_streams))) {}
PluginServer::~PluginServer() = default;

void PluginServer::Adopt(UniqueFd connection) {
  service_->Adopt(std::move(connection));
}

void PluginServer::Publish(Snapshot snapshot) {
  service_->Publish(std::move(snapshot));
}

PluginServer::Counters PluginServer::counters() const {
  return service_->counters();
}

}  // namespace rondo::deviceplugin
