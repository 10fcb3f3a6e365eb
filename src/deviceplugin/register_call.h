// SPDX-License-Identifier: Apache-2.0
//
// One Register call to kubelet. Start and destruction on any one thread; done
// runs on a gRPC thread, or inside Start when kubelet's socket cannot be
// connected.

#ifndef RONDO_DEVICEPLUGIN_REGISTER_CALL_H_
#define RONDO_DEVICEPLUGIN_REGISTER_CALL_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace rondo::deviceplugin {

class RegisterCall {
 public:
  // endpoint: base name of our socket. kubelet connects to it before it
  // answers, for which it takes up to 10 s. done is called exactly once, with
  // kubelet's own words on refusal.
  RegisterCall(const std::string& kubelet_socket, const std::string& endpoint,
               const std::string& resource, std::chrono::milliseconds timeout,
               std::function<void(absl::Status)> done);
  // Cancels a call under way; done has returned when this does.
  ~RegisterCall();
  RegisterCall(const RegisterCall&) = delete;
  RegisterCall& operator=(const RegisterCall&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_REGISTER_CALL_H_
