// SPDX-License-Identifier: Apache-2.0
#include "run/status.h"

#include <poll.h>
#include <sys/socket.h>

#include <utility>

#include "base/status.h"
#include "base/unix_socket.h"
#include "metrics/share_json.h"
#include "nlohmann/json.hpp"
#include "run/control.h"

namespace rondo::run {
namespace {

using Json = nlohmann::ordered_json;  // people read it too

constexpr int kAnswerMs = 5'000;

}  // namespace

std::string StatusRequest() { return R"({"status":true})"; }

bool IsStatusRequest(absl::string_view packet) {
  return packet == StatusRequest();
}

std::string RenderStatus(const share::ShareStats& stats, int arbiter_pid) {
  Json gpus = Json::array(), slots = Json::array();
  for (const share::GpuStats& gpu : stats.gpus)
    gpus.push_back(metrics::SharedGpuJson(gpu));
  for (const share::SlotStats& slot : stats.slots)
    slots.push_back(metrics::SlotJson(slot));
  // What programs sent is replaced where it is not UTF-8, never thrown.
  return Json{{"arbiterPid", arbiter_pid},
              {"gpus", std::move(gpus)},
              {"slots", std::move(slots)}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
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
