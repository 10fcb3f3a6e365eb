// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/register_call.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/file.h"
#include "base/unix_socket.h"
#include "deviceplugin/callback_queue.h"
#include "proto/deviceplugin/v1beta1.grpc.pb.h"

namespace rondo::deviceplugin {

struct RegisterCall::State {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1beta1::Registration::Stub> stub;
  grpc::ClientContext context;
  v1beta1::RegisterRequest request;
  v1beta1::Empty response;
  std::mutex mutex;
  std::condition_variable finished_changed;
  bool finished = false;
};

RegisterCall::RegisterCall(const std::string& kubelet_socket,
                           const std::string& endpoint,
                           const std::string& resource,
                           std::chrono::milliseconds timeout,
                           std::function<void(absl::Status)> done)
    : state_(std::make_shared<State>()) {
  // Connected by hand: an answer at once, and none of gRPC's resolving and
  // reconnecting, which would hide a kubelet that has just come back.
  absl::StatusOr<UniqueFd> connection = ConnectUnix(kubelet_socket);
  if (connection.ok() &&
      fcntl(connection->get(), F_SETFL,
            fcntl(connection->get(), F_GETFL) | O_NONBLOCK) != 0)
    connection = ErrnoStatus("fcntl");
  if (!connection.ok()) {
    state_->finished = true;
    done(connection.status());
    return;
  }
  KeepCallbackQueue();
  state_->channel =
      grpc::CreateInsecureChannelFromFd("kubelet", connection->Release());
  state_->stub = v1beta1::Registration::NewStub(state_->channel);
  state_->request.set_version("v1beta1");
  state_->request.set_endpoint(endpoint);
  state_->request.set_resource_name(resource);
  state_->request.mutable_options()->set_get_preferred_allocation_available(
      true);
  state_->context.set_deadline(std::chrono::system_clock::now() + timeout);
  state_->context.set_authority("localhost");
  state_->stub->async()->Register(
      &state_->context, &state_->request, &state_->response,
      [state = state_, done = std::move(done)](const grpc::Status& status) {
        done(status.ok() ? absl::OkStatus()
                         : absl::Status(static_cast<absl::StatusCode>(
                                            status.error_code()),
                                        status.error_message()));
        std::lock_guard<std::mutex> lock(state->mutex);
        state->finished = true;
        state->finished_changed.notify_all();
      });
}

RegisterCall::~RegisterCall() {
  std::unique_lock<std::mutex> lock(state_->mutex);
  if (state_->finished) return;
  state_->context.TryCancel();
  state_->finished_changed.wait(lock, [this] { return state_->finished; });
}

}  // namespace rondo::deviceplugin
