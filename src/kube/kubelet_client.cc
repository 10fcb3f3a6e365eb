// SPDX-License-Identifier: Apache-2.0
#include "kube/kubelet_client.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <mutex>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "base/unix_socket.h"
#include "proto/podresources/v1.grpc.pb.h"
#include "proto/pods/v1alpha1.grpc.pb.h"

namespace rondo::kube {
namespace {

absl::Status FromGrpc(const std::string& socket, const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return Annotate(
      absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                   status.error_message()),
      socket);
}

// Connected by hand, as for Register: an answer at once, and none of gRPC's
// growing pauses between attempts, which would hide a kubelet that is back.
absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect(
    const std::string& socket, int most_bytes) {
  RONDO_ASSIGN_OR_RETURN(UniqueFd fd, ConnectUnix(socket));
  if (fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK) != 0)
    return ErrnoStatus("fcntl");
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(most_bytes);
  return grpc::CreateCustomInsecureChannelFromFd("kubelet", fd.Release(),
                                                 arguments);
}

Pod FromProto(const v1alpha1::Pod& proto, absl::string_view prefix) {
  const v1alpha1::ObjectMeta& meta = proto.metadata();
  Pod pod{.name_space = meta.namespace_(),
          .name = meta.name(),
          .uid = meta.uid(),
          .created_unix_seconds = meta.creation_timestamp().seconds(),
          .ended = IsEnded(proto.status().phase()),
          .annotations = {}};
  for (const auto& [key, value] : meta.annotations())
    KeepAnnotation(key, value, prefix, pod);
  return pod;
}

}  // namespace

class KubeletClient::Impl {
 public:
  explicit Impl(Options options) : options_(std::move(options)) {}

  absl::StatusOr<std::vector<DeviceHolder>> ListHolders() {
    const v1::ListPodResourcesRequest request;
    v1::ListPodResourcesResponse response;
    RONDO_RETURN_IF_ERROR(Call<v1::PodResourcesLister>(
        options_.pod_resources_socket, holders_channel_,
        [&](v1::PodResourcesLister::Stub& stub, grpc::ClientContext* context) {
          return stub.List(context, request, &response);
        }));
    std::vector<DeviceHolder> holders;
    for (const v1::PodResources& pod : response.pod_resources())
      for (const v1::ContainerResources& container : pod.containers())
        for (const v1::ContainerDevices& devices : container.devices())
          holders.push_back({.name_space = pod.namespace_(),
                             .pod = pod.name(),
                             .uid = "",
                             .container = container.name(),
                             .resource = devices.resource_name(),
                             .device_ids = {devices.device_ids().begin(),
                                            devices.device_ids().end()}});
    return holders;
  }

  absl::StatusOr<std::vector<Pod>> ListPods(absl::string_view prefix) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= one_by_one_until_) {
      auto pods = ListAtOnce(prefix);
      if (!absl::IsResourceExhausted(pods.status())) return pods;
      one_by_one_until_ = now + options_.one_by_one;
    }
    return ListOneByOne(prefix);
  }

  void Cancel() {
    std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }

 private:
  using Channel = std::shared_ptr<grpc::Channel>;

  absl::StatusOr<std::vector<Pod>> ListAtOnce(absl::string_view prefix) {
    const v1alpha1::ListPodsRequest request;
    v1alpha1::ListPodsResponse response;
    RONDO_RETURN_IF_ERROR(Call<v1alpha1::Pods>(
        options_.pods_api_socket, pods_channel_,
        [&](v1alpha1::Pods::Stub& stub, grpc::ClientContext* context) {
          return stub.ListPods(context, request, &response);
        }));
    std::vector<Pod> pods;
    for (const v1alpha1::Pod& pod : response.pods())
      pods.push_back(FromProto(pod, prefix));
    return pods;
  }

  absl::StatusOr<std::vector<Pod>> ListOneByOne(absl::string_view prefix) {
    const v1alpha1::WatchPodsRequest request;
    std::vector<Pod> pods;
    RONDO_RETURN_IF_ERROR(Call<v1alpha1::Pods>(
        options_.pods_api_socket, pods_channel_,
        [&](v1alpha1::Pods::Stub& stub, grpc::ClientContext* context) {
          pods.clear();
          const auto events = stub.WatchPods(context, request);
          v1alpha1::WatchPodsEvent event;
          while (pods.size() < kMostPods && events->Read(&event)) {
            if (event.type() == v1alpha1::INITIAL_SYNC_COMPLETE) {
              context->TryCancel();
              events->Finish();
              return grpc::Status::OK;
            }
            pods.push_back(FromProto(event.pod(), prefix));
          }
          context->TryCancel();
          const grpc::Status status = events->Finish();
          return status.ok() ? grpc::Status(grpc::StatusCode::UNAVAILABLE,
                                            "the watch ended early")
                             : status;
        }));
    return pods;
  }

  template <typename Service, typename Function>
  absl::Status Call(const std::string& socket, Channel& channel,
                    const Function& call) {
    const bool connected = channel != nullptr;
    absl::Status status = TryCall<Service>(socket, channel, call);
    // An old connection's end is seen on its next use: kubelet restarted.
    if (connected && absl::IsUnavailable(status))
      status = TryCall<Service>(socket, channel, call);
    return status;
  }

  template <typename Service, typename Function>
  absl::Status TryCall(const std::string& socket, Channel& channel,
                       const Function& call) {
    if (channel == nullptr) {
      RONDO_ASSIGN_OR_RETURN(channel, Connect(socket, options_.most_bytes));
    }
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + options_.timeout);
    // gRPC would send the socket's name, which Go's servers may refuse.
    context.set_authority("localhost");
    {
      std::lock_guard lock(mutex_);
      if (cancelled_) return absl::CancelledError("cancelled");
      context_ = &context;
    }
    const auto stub = Service::NewStub(channel);
    const grpc::Status status = call(*stub, &context);
    {
      std::lock_guard lock(mutex_);
      context_ = nullptr;
    }
    if (!status.ok()) channel.reset();
    return FromGrpc(socket, status);
  }

  const Options options_;
  Channel holders_channel_, pods_channel_;
  std::chrono::steady_clock::time_point one_by_one_until_{};
  std::mutex mutex_;
  bool cancelled_ = false;                  // guarded by mutex_
  grpc::ClientContext* context_ = nullptr;  // guarded by mutex_
};

KubeletClient::KubeletClient(Options options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
KubeletClient::~KubeletClient() = default;

absl::StatusOr<std::vector<DeviceHolder>> KubeletClient::ListHolders() {
  return impl_->ListHolders();
}
absl::StatusOr<std::vector<Pod>> KubeletClient::ListPods(
    absl::string_view prefix) {
  return impl_->ListPods(prefix);
}
void KubeletClient::Cancel() { impl_->Cancel(); }

}  // namespace rondo::kube
