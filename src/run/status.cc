// SPDX-License-Identifier: Apache-2.0
#include "run/status.h"

#include <poll.h>
#include <sys/socket.h>

#include <optional>
#include <utility>

#include "base/status.h"
#include "base/unix_socket.h"
#include "nlohmann/json.hpp"
#include "run/control.h"

namespace rondo::run {
namespace {

using Json = nlohmann::ordered_json;  // people read it too

constexpr int kAnswerMs = 5'000;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json SlotJson(const share::SlotStats& slot) {
  Json processes = Json::array();
  for (const share::ProcessStats& p : slot.processes)
    processes.push_back({{"pid", p.pid},
                         {"memoryBytes", p.device_bytes},
                         {"driverBytes", OrNull(p.driver_bytes)},
                         {"governed", p.governed}});
  return {{"slot", slot.slot},
          {"class", slot.cls},
          {"weight", slot.weight},
          {"timeLimit", slot.limit},
          {"memoryLimitBytes", OrNull(slot.limit_bytes)},
          {"memoryUsedBytes", slot.device_bytes},
          {"managedBytes", slot.managed_bytes},
          {"denials", slot.denials},
          {"auditDifferenceBytes", OrNull(slot.audit_difference_bytes)},
          {"auditAlarms", slot.audit_alarms},
          {"sliceMicroseconds", OrNull(slot.slice_us)},
          {"usedShare", OrNull(slot.used_share)},
          {"gpuTimeMicroseconds", OrNull(slot.gpu_time_us)},
          {"turn", slot.turn},
          {"suspended", slot.suspended},
          {"suspensions", slot.suspensions},
          {"overShare", slot.over_share},
          {"throttled", slot.throttled},
          {"governed", slot.governed},
          {"reason", slot.reason},
          {"degraded", slot.degraded},
          {"processes", std::move(processes)}};
}

}  // namespace

std::string StatusRequest() { return R"({"status":true})"; }

bool IsStatusRequest(absl::string_view packet) {
  return packet == StatusRequest();
}

std::string RenderStatus(const share::ShareStats& stats, int arbiter_pid) {
  Json gpus = Json::array(), slots = Json::array();
  for (const share::GpuStats& gpu : stats.gpus)
    gpus.push_back({{"uuid", gpu.uuid},
                    {"canSuspend", gpu.suspender_ready},
                    {"suspendProblem", gpu.suspender_problem},
                    {"activitySource", gpu.activity_source}});
  for (const share::SlotStats& slot : stats.slots)
    slots.push_back(SlotJson(slot));
  return Json{{"arbiterPid", arbiter_pid},
              {"gpus", std::move(gpus)},
              {"slots", std::move(slots)}}
      .dump();
}

absl::StatusOr<std::string> AskStatus(const std::string& run_dir) {
  RONDO_ASSIGN_OR_RETURN(const UniqueFd fd,
                         ConnectUnix(ControlSocket(run_dir), SOCK_SEQPACKET));
  const std::string request = StatusRequest();
  if (send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0)
    return absl::UnavailableError("the arbiter went away");
  pollfd answer{.fd = fd.get(), .events = POLLIN, .revents = 0};
  if (poll(&answer, 1, kAnswerMs) != 1)
    return absl::DeadlineExceededError("the arbiter does not answer");
  std::string text(kMaxStatus, '\0');
  const ssize_t n = recv(fd.get(), text.data(), text.size(), 0);
  if (n <= 0) return absl::UnavailableError("the arbiter went away");
  text.resize(n);
  return text;
}

}  // namespace rondo::run
