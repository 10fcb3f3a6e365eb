// SPDX-License-Identifier: Apache-2.0
#include "metrics/share_json.h"

#include <utility>

#include "metrics/or_null.h"
#include "nlohmann/json.hpp"

namespace rondo::metrics {

using Json = nlohmann::ordered_json;

Json SlotJson(const share::SlotStats& slot) {
  Json processes = Json::array();
  for (const share::ProcessStats& p : slot.processes)
    processes.push_back({{"pid", p.pid == 0 ? Json(nullptr) : Json(p.pid)},
                         {"memoryBytes", p.device_bytes},
                         {"driverBytes", OrNull(p.driver_bytes)},
                         {"driverVersion", TextOrNull(p.driver_version)},
                         {"governed", p.governed}});
  return {{"slot", slot.slot},
          {"gpu", slot.gpu_uuid},
          {"memoryLimitBytes", OrNull(slot.limit_bytes)},
          {"memoryEnforced", slot.enforced},
          {"memoryUsedBytes", slot.device_bytes},
          {"managedBytes", slot.managed_bytes},
          {"reservations", slot.reservations},
          {"denials", slot.denials},
          {"auditDifferenceBytes", OrNull(slot.audit_difference_bytes)},
          {"auditAlarms", slot.audit_alarms},
          {"class", slot.cls},
          {"weight", slot.weight},
          {"timeLimit", slot.limit},
          {"sliceMicroseconds", OrNull(slot.slice_us)},
          {"usedShare", OrNull(slot.used_share)},
          {"gpuTimeMicroseconds", OrNull(slot.gpu_time_us)},
          {"turn", slot.turn},
          {"suspended", slot.suspended},
          {"suspensions", slot.suspensions},
          {"suspensionEscapes", slot.escapes},
          {"overShare", slot.over_share},
          {"throttled", slot.throttled},
          {"governed", slot.governed},
          {"reason", TextOrNull(slot.reason)},
          {"degraded", slot.degraded},
          {"refusedMessages", slot.refused_messages},
          {"processes", std::move(processes)}};
}

Json SharedGpuJson(const share::GpuStats& gpu) {
  return {{"uuid", gpu.uuid},
          {"canSuspend", gpu.suspender_ready},
          {"suspendProblem", TextOrNull(gpu.suspender_problem)},
          {"activitySource", TextOrNull(gpu.activity_source)}};
}

}  // namespace rondo::metrics
