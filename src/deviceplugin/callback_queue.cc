// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/callback_queue.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

namespace rondo::deviceplugin {

void KeepCallbackQueue() {
  // A server that listens nowhere holds the queue. Never destroyed; volatile,
  // or the compiler forgets the pointer that nobody reads, and it is a leak.
  static grpc::Server* volatile kept = [] {
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(new grpc::CallbackGenericService);
    return builder.BuildAndStart().release();
  }();
  (void)kept;
}

}  // namespace rondo::deviceplugin
