// SPDX-License-Identifier: Apache-2.0
#include "share/slot_stats.h"

#include <iterator>
#include <string>

#include "wire/state.h"

namespace rondo::share {
namespace {

constexpr const char* kReasons[] = {
#define RONDO_X(name, text) text,
    RONDO_WIRE_REASONS(RONDO_X)
#undef RONDO_X
};

// Why a process is not governed; empty: it is.
std::string ReasonOf(const SlotProcess& process) {
  for (size_t i = 0; i < std::size(kReasons); ++i)
    if ((process.reasons >> i & 1) != 0) return kReasons[i];
  if (process.reasons != 0) return "a reason that this agent does not know";
  if (process.foreign_client)
    return "it reported driver handles that another tenant has";
  if (process.slot_full) return "its slot has more channels than are kept";
  return "";
}

void AddProcesses(const SlotServer& server, const Audit& audit,
                  SlotStats* out) {
  for (ProcessId id : server.processes(out->slot)) {
    const SlotProcess& process = *server.process(id);
    ProcessStats& stats = out->processes.emplace_back();
    stats.pid = process.pid;
    stats.device_bytes = server.ledger(out->slot)->device_bytes(id);
    if (process.pid > 0)
      stats.driver_bytes =
          audit.driver_bytes(static_cast<uint32_t>(process.pid));
    stats.driver_version = process.driver_version;
    const std::string reason = ReasonOf(process);
    stats.governed = reason.empty();
    if (out->reason.empty()) out->reason = reason;
  }
}

}  // namespace

SlotStats MakeSlotStats(const SlotSpec& spec, const SlotServer& server,
                        const Audit& audit, const TenantView& view,
                        const absl::Status& suspender) {
  SlotStats out;
  out.slot = spec.id();
  out.gpu_uuid = spec.gpu_uuid;
  out.limit_bytes = spec.limit_bytes;
  out.enforced = spec.memory == config::MemoryMode::kEnforce;
  if (const Ledger* ledger = server.ledger(out.slot)) {
    out.device_bytes = ledger->usage().device_bytes;
    out.managed_bytes = ledger->usage().managed_bytes;
    out.reservations = ledger->usage().requests;
    out.denials = ledger->usage().denials;
  }
  out.audit_difference_bytes = audit.difference(out.slot);
  out.audit_alarms = audit.alarms(out.slot);
  out.cls = ClassName(spec.tenant.cls);
  out.weight = spec.tenant.weight;
  out.limit = spec.tenant.limit;
  if (view.present) out.slice_us = view.slice_us;
  if (view.used_share >= 0) out.used_share = view.used_share;
  if (view.gpu_time_us >= 0) out.gpu_time_us = view.gpu_time_us;
  out.turn = view.turn;
  out.suspended = view.suspended;
  out.over_share = view.over_share;
  out.throttled = view.throttled;
  out.suspensions = view.suspensions;
  out.escapes = view.escapes;
  AddProcesses(server, audit, &out);
  if (out.reason.empty() && view.slice_refused)
    out.reason = "the driver or the shim does not take time slices";
  if (out.reason.empty() && view.suspend_refused)
    out.reason = suspender.ok() ? "the driver does not suspend its channels"
                                : "the agent cannot suspend: " +
                                      std::string(suspender.message());
  out.governed = out.reason.empty();
  out.degraded = server.degraded(out.slot);
  out.refused_messages = server.refused_messages(out.slot);
  return out;
}

std::optional<std::set<uint32_t>> AttachedPids(const ShareStats& stats,
                                               const std::string& gpu_uuid) {
  std::set<uint32_t> pids;
  for (const SlotStats& slot : stats.slots) {
    if (slot.gpu_uuid != gpu_uuid) continue;
    for (const ProcessStats& process : slot.processes) {
      if (process.pid <= 0) return std::nullopt;
      pids.insert(static_cast<uint32_t>(process.pid));
    }
  }
  return pids;
}

}  // namespace rondo::share
