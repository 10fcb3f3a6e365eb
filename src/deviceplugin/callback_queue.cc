// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/callback_queue.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

namespace rondo::deviceplugin {

void KeepCallbackQueue() {
  // A server that listens nowhere holds the queue. Never destroyed.
  static grpc::Server* const kept = [] {
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(new grpc::CallbackGenericService);
    return builder.BuildAndStart().release();
  }();
  (void)kept;
}

}  // namespace rondo::deviceplugin
