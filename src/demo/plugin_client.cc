// SPDX-License-Identifier: Apache-2.0
#include "demo/plugin_client.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/unix_socket.h"
#include "proto/deviceplugin/v1beta1.grpc.pb.h"

namespace rondo::demo {
namespace {

absl::Status RpcError(const grpc::Status& status) {
  static constexpr const char* kNames[] = {"OK",
                                           "Canceled",
                                           "Unknown",
                                           "InvalidArgument",
                                           "DeadlineExceeded",
                                           "NotFound",
                                           "AlreadyExists",
                                           "PermissionDenied",
                                           "ResourceExhausted",
                                           "FailedPrecondition",
                                           "Aborted",
                                           "OutOfRange",
                                           "Unimplemented",
                                           "Internal",
                                           "Unavailable",
                                           "DataLoss",
                                           "Unauthenticated"};
  return absl::UnknownError(
      absl::StrCat("rpc error: code = ", kNames[status.error_code()],
                   " desc = ", status.error_message()));
}

}  // namespace

struct PluginClient::Rpc {
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub;
  grpc::ClientContext stream_context;
  std::thread reader;
};

PluginClient::PluginClient(std::string resource, std::string socket)
    : resource_(std::move(resource)),
      socket_(std::move(socket)),
      rpc_(std::make_unique<Rpc>()) {}

PluginClient::~PluginClient() {
  Cancel();
  if (rpc_->reader.joinable()) rpc_->reader.join();
}

absl::Status PluginClient::Connect() {
  RONDO_ASSIGN_OR_RETURN(UniqueFd fd, ConnectUnix(socket_));
  if (fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK) != 0)
    return ErrnoStatus("fcntl");
  rpc_->stub = v1beta1::DevicePlugin::NewStub(
      grpc::CreateInsecureChannelFromFd("plugin", fd.Release()));
  grpc::ClientContext context;
  v1beta1::DevicePluginOptions options;
  const grpc::Status status =
      rpc_->stub->GetDevicePluginOptions(&context, v1beta1::Empty(), &options);
  if (!status.ok()) return RpcError(status);
  prefers_ = options.get_preferred_allocation_available();
  return absl::OkStatus();
}

void PluginClient::Watch(std::function<void(std::vector<ListedDevice>)> on_list,
                         std::function<void()> on_end) {
  rpc_->reader = std::thread([this, on_list, on_end] {
    auto stream =
        rpc_->stub->ListAndWatch(&rpc_->stream_context, v1beta1::Empty());
    v1beta1::ListAndWatchResponse list;
    while (stream->Read(&list)) {
      std::vector<ListedDevice> devices;
      for (const v1beta1::Device& device : list.devices()) {
        ListedDevice& out = devices.emplace_back();
        out.id = device.id();
        out.healthy = device.health() == "Healthy";
        for (const v1beta1::NUMANode& node : device.topology().nodes())
          out.numa_nodes.push_back(static_cast<int>(node.id()));
      }
      on_list(std::move(devices));
    }
    stream->Finish();
    on_end();
  });
}

void PluginClient::Cancel() { rpc_->stream_context.TryCancel(); }

absl::StatusOr<std::vector<std::string>> PluginClient::GetPreferredAllocation(
    const std::vector<std::string>& available,
    const std::vector<std::string>& required, int size) {
  grpc::ClientContext context;
  v1beta1::PreferredAllocationRequest request;
  v1beta1::ContainerPreferredAllocationRequest& container =
      *request.add_container_requests();
  for (const std::string& id : available) container.add_available_deviceids(id);
  for (const std::string& id : required)
    container.add_must_include_deviceids(id);
  container.set_allocation_size(size);
  v1beta1::PreferredAllocationResponse response;
  const grpc::Status status =
      rpc_->stub->GetPreferredAllocation(&context, request, &response);
  if (!status.ok()) return RpcError(status);
  std::vector<std::string> ids;
  for (const auto& answer : response.container_responses())
    ids.insert(ids.end(), answer.deviceids().begin(), answer.deviceids().end());
  return ids;
}

absl::StatusOr<Grant> PluginClient::Allocate(
    const std::vector<std::string>& ids) {
  grpc::ClientContext context;
  v1beta1::AllocateRequest request;
  v1beta1::ContainerAllocateRequest& container =
      *request.add_container_requests();
  for (const std::string& id : ids) container.add_devices_ids(id);
  v1beta1::AllocateResponse response;
  const grpc::Status status =
      rpc_->stub->Allocate(&context, request, &response);
  if (!status.ok()) return RpcError(status);
  if (response.container_responses().empty())
    return absl::UnknownError("no containers return in allocation response");
  const v1beta1::ContainerAllocateResponse& answer =
      response.container_responses(0);
  Grant grant;
  grant.resource = resource_;
  grant.device_ids = ids;
  grant.envs.insert(answer.envs().begin(), answer.envs().end());
  grant.annotations.insert(answer.annotations().begin(),
                           answer.annotations().end());
  for (const v1beta1::Mount& mount : answer.mounts())
    grant.mounts.emplace_back(mount.container_path(), mount.host_path());
  for (const v1beta1::DeviceSpec& device : answer.devices())
    grant.device_paths.push_back(device.host_path());
  for (const v1beta1::CDIDevice& device : answer.cdi_devices())
    grant.cdi_devices.push_back(device.name());
  return grant;
}

}  // namespace rondo::demo
