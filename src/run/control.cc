// SPDX-License-Identifier: Apache-2.0
#include "run/control.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace rondo::run {
namespace {

using nlohmann::json;
using share::TenantClass;

absl::StatusOr<json> Parse(absl::string_view packet) {
  json value = json::parse(packet.begin(), packet.end(), nullptr,
                           /*allow_exceptions=*/false);
  if (!value.is_object())
    return absl::InvalidArgumentError("not a message of rondo run");
  return value;
}

template <typename T>
bool Read(const json& object, const char* key, T& value) {
  const auto it = object.find(key);
  if (it == object.end()) return false;
  if constexpr (std::is_same_v<T, std::string>) {
    if (!it->is_string()) return false;
  } else if (!it->is_number()) {
    return false;
  }
  value = it->template get<T>();
  return true;
}

}  // namespace

absl::StatusOr<TenantClass> ParseClass(absl::string_view text) {
  if (text == "latency") return TenantClass::kLatency;
  if (text == "standard") return TenantClass::kStandard;
  if (text == "batch") return TenantClass::kBatch;
  return absl::InvalidArgumentError(
      absl::StrCat("class '", text, "' is none of latency, standard, batch"));
}

std::string EncodeRequest(const Request& request) {
  json message = {{"gpu", request.gpu},
                  {"visible", request.visible},
                  {"busOrder", request.bus_order ? 1 : 0},
                  {"class", share::ClassName(request.tenant.cls)},
                  {"weight", request.tenant.weight},
                  {"limit", request.tenant.limit},
                  {"slot", request.slot}};
  if (request.memory_bytes) message["memory"] = *request.memory_bytes;
  return message.dump();
}

absl::StatusOr<Request> DecodeRequest(absl::string_view packet) {
  RONDO_ASSIGN_OR_RETURN(const json message, Parse(packet));
  Request request;
  std::string cls;
  int bus_order = 0;
  if (!Read(message, "gpu", request.gpu) ||
      !Read(message, "visible", request.visible) ||
      !Read(message, "busOrder", bus_order) || !Read(message, "class", cls) ||
      !Read(message, "weight", request.tenant.weight) ||
      !Read(message, "limit", request.tenant.limit) ||
      !Read(message, "slot", request.slot))
    return absl::InvalidArgumentError("a request lacks a field");
  if (!(request.tenant.weight > 0) || !(request.tenant.limit > 0) ||
      request.tenant.limit > 1)
    return absl::InvalidArgumentError("weight or limit out of range");
  request.bus_order = bus_order != 0;
  RONDO_ASSIGN_OR_RETURN(request.tenant.cls, ParseClass(cls));
  uint64_t bytes = 0;
  if (Read(message, "memory", bytes)) request.memory_bytes = bytes;
  return request;
}

std::string EncodeAnswer(const absl::StatusOr<std::string>& slot) {
  if (slot.ok()) return json{{"slot", *slot}}.dump();
  return json{{"error", std::string(slot.status().message())},
              {"usage", absl::IsInvalidArgument(slot.status()) ? 1 : 0}}
      .dump();
}

absl::StatusOr<std::string> DecodeAnswer(absl::string_view packet) {
  RONDO_ASSIGN_OR_RETURN(const json message, Parse(packet));
  std::string text;
  if (Read(message, "slot", text)) return text;
  int usage = 0;
  if (!Read(message, "error", text))
    return absl::InternalError("an answer without slot or error");
  Read(message, "usage", usage);
  if (usage != 0) return absl::InvalidArgumentError(text);
  return absl::InternalError(text);
}

std::string EncodeNotice(absl::string_view reason) {
  // What a program sent may stand in it.
  return json{{"ungoverned", std::string(reason)}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

absl::StatusOr<std::string> DecodeNotice(absl::string_view packet) {
  RONDO_ASSIGN_OR_RETURN(const json message, Parse(packet));
  std::string reason;
  if (!Read(message, "ungoverned", reason))
    return absl::InternalError("neither an answer nor a notice");
  return reason;
}

std::string ControlSocket(const std::string& run_dir) {
  return run_dir + "/arbiter.sock";
}

}  // namespace rondo::run
