// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/endpoint.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/log.h"

namespace rondo::deviceplugin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kFirstRetry(20);
constexpr seconds kLastRetry(5);
// kubelet forgets a plugin a moment after its stream ends; a registration
// before that would meet the old one (see OnRegisterDone).
constexpr milliseconds kAfterStreamEnd(200);
// kubelet opens the stream right after it has answered Register.
constexpr seconds kStreamExpected(10);
// kubelet gives itself 10 s to connect back.
constexpr seconds kRegisterTimeout(15);

}  // namespace

Endpoint::Endpoint(EventLoop& loop, std::string socket_dir,
                   std::string kubelet_socket, std::string resource,
                   Snapshot snapshot, std::function<void()> on_change)
    : loop_(loop),
      socket_dir_(std::move(socket_dir)),
      kubelet_socket_(std::move(kubelet_socket)),
      resource_(std::move(resource)),
      on_change_(std::move(on_change)),
      socket_name_(SocketName(resource_)) {
  server_ = std::make_unique<PluginServer>(
      std::move(snapshot),
      [this, &loop, alive = std::weak_ptr<bool>(alive_)](int open) {
        loop.Post([this, alive, open] {
          if (!alive.expired()) OnStreams(open);
        });
      });
  Listen();
  status_.socket_path = listener_->path();
  Register();
}

Endpoint::~Endpoint() {
  loop_.CancelTimer(timer_);
  call_.reset();
}

void Endpoint::Listen() {
  listener_ = std::make_unique<Listener>(
      loop_, PathUnder(socket_dir_, socket_name_),
      [this](UniqueFd connection) { server_->Adopt(std::move(connection)); });
  const absl::Status status = listener_->Open();
  if (!status.ok()) LogError(resource_, ": ", status.message());
}

void Endpoint::Register() {
  if (call_ != nullptr || registered()) return;
  loop_.CancelTimer(timer_);
  timer_ = 0;
  if (!listener_->Present()) {
    const absl::Status status = listener_->Open();
    if (!status.ok()) {
      ++failures_;
      LogError(resource_, ": ", status.message());
      return Retry();
    }
  }
  if (kubelet_socket_.empty()) return;
  const FileIdentity kubelet = FileIdentity::Of(kubelet_socket_);
  // Its creation wakes us; the timer is for events that were lost.
  if (!kubelet.exists()) return RetryAfter(kLastRetry);
  call_ = std::make_unique<RegisterCall>(
      kubelet_socket_, socket_name_, resource_, kRegisterTimeout,
      [this, kubelet, &loop = loop_,
       alive = std::weak_ptr<bool>(alive_)](absl::Status status) {
        loop.Post([this, kubelet, alive, status] {
          if (!alive.expired()) OnRegisterDone(kubelet, status);
        });
      });
}

void Endpoint::OnRegisterDone(const FileIdentity& kubelet,
                              const absl::Status& status) {
  call_.reset();
  if (status.ok()) {
    ++registrations_;
    backoff_ = MonotonicTime(0);
    last_failure_.clear();
    LogInfo(resource_, ": registered with kubelet as ", socket_name_);
    if (!std::exchange(again_, false)) {
      registered_with_ = kubelet;
      timer_ = loop_.RunAfter(kStreamExpected, [this] {
        timer_ = 0;
        if (streams_ > 0 || !registered()) return;
        LogWarning(resource_, ": kubelet does not watch the list");
        registered_with_ = FileIdentity();
        Register();
      });
      return Changed();
    }
    return Register();
  }
  ++failures_;
  again_ = false;
  // Once for each reason: kubelet may be away for hours.
  const std::string before =
      std::exchange(last_failure_, std::string(status.message()));
  if (before != last_failure_)
    LogWarning(resource_, ": cannot register: ", status.message());
  if (absl::StrContains(status.message(), "already connected")) {
    // kubelet 1.37 still knows our last connection, or an earlier process's,
    // and never forgets one that a second registration has met. Only another
    // socket name gets past it.
    socket_name_ = absl::StrCat(
        SocketName(resource_).substr(0, SocketName(resource_).size() - 5), "-",
        ++alternate_, ".sock");
    Listen();
    backoff_ = MonotonicTime(0);
  }
  Retry();
  Changed();
}

void Endpoint::RetryAfter(MonotonicTime delay) {
  loop_.CancelTimer(timer_);
  timer_ = loop_.RunAfter(delay, [this] {
    timer_ = 0;
    Register();
  });
}

void Endpoint::Retry() {
  backoff_ = std::clamp<MonotonicTime>(backoff_ * 2, kFirstRetry, kLastRetry);
  RetryAfter(backoff_);
}

void Endpoint::OnKubeletSocketChanged() {
  if (kubelet_socket_.empty()) return;
  const FileIdentity kubelet = FileIdentity::Of(kubelet_socket_);
  if (!kubelet.exists()) return;
  // The registration may have been quicker than this news.
  if (registered() && registered_with_ == kubelet) return;
  registered_with_ = FileIdentity();
  backoff_ = MonotonicTime(0);
  Changed();
  if (call_ != nullptr)
    again_ = true;
  else
    Register();
}

void Endpoint::OnOwnSocketChanged() {
  // Somebody else's socket stands there: a second agent, during a roll-out.
  // To take it back at once would start a fight; Register takes it when kubelet
  // has left us.
  if (FileIdentity::Of(listener_->path()).exists()) return;
  const absl::Status status = listener_->Open();
  if (!status.ok()) LogError(resource_, ": ", status.message());
}

void Endpoint::OnStreams(int open) {
  const bool ended = streams_ > 0 && open == 0;
  streams_ = open;
  if (ended && registered()) {
    LogWarning(resource_, ": kubelet closed its stream");
    registered_with_ = FileIdentity();
    RetryAfter(kAfterStreamEnd);
  }
  Changed();
}

void Endpoint::Changed() {
  {
    std::lock_guard<std::mutex> lock(status_mutex_);
    status_ = {listener_->path(), registered(), streams_ > 0, registrations_,
               failures_};
  }
  on_change_();
}

Endpoint::Status Endpoint::status() const {
  std::lock_guard<std::mutex> lock(status_mutex_);
  return status_;
}

}  // namespace rondo::deviceplugin
