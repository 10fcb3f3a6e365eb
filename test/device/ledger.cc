// SPDX-License-Identifier: Apache-2.0
#include "ledger.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace rondo::device {
namespace {

// What NVML says of the process on that GPU; null where it does not list it.
json NvmlBytes(const json& node, const json& gpu, const json& pid) {
  for (const json& found : node["gpus"])
    if (found["uuid"] == gpu && found["processes"].is_array())
      for (const json& process : found["processes"])
        if (process["pid"] == pid) return process["memoryBytes"];
  return nullptr;
}

bool Agreed(const json& node, const std::vector<std::string>& slots,
            size_t programs) {
  size_t found = 0;
  for (const std::string& id : slots) {
    const json slot = Pods::Slot(node, id);
    if (slot.is_null() || slot["auditDifferenceBytes"] != 0) return false;
    double sum = 0;
    for (const json& process : slot["processes"]) {
      if (process["memoryBytes"] == 0) continue;
      const json nvml = NvmlBytes(node, slot["gpu"], process["pid"]);
      if (process["driverBytes"] != process["memoryBytes"] ||
          (!nvml.is_null() && nvml != process["memoryBytes"]))
        return false;
      sum += process["memoryBytes"].get<double>();
      ++found;
    }
    if (sum != slot["memoryUsedBytes"]) return false;
  }
  return found >= programs;  // one may hold something on two GPUs
}

std::string LedgerText(const json& node,
                       const std::vector<std::string>& slots) {
  std::vector<std::string> texts;
  for (const std::string& id : slots) {
    const json slot = Pods::Slot(node, id);
    for (const json& process : slot["processes"])
      texts.push_back(absl::StrCat(
          "pid ", process["pid"].dump(), " ", process["memoryBytes"].dump(),
          " ", process["driverBytes"].dump(), " ",
          NvmlBytes(node, slot["gpu"], process["pid"]).dump()));
  }
  return absl::StrJoin(texts, ", ");
}

}  // namespace

absl::Status SayLedger(Pods& pods, const std::string& claim,
                       const std::vector<std::string>& slots, size_t programs) {
  const auto took = pods.Until(
      "the ledger agrees with the driver",
      [&](const json& node) { return Agreed(node, slots, programs); },
      std::chrono::seconds(5));
  RONDO_ASSIGN_OR_RETURN(const json node, pods.Node());
  pods.Say(
      took.ok(), claim,
      absl::StrCat(LedgerText(node, slots), " (bytes: ledger, driver, NVML)"));
  return absl::OkStatus();
}

}  // namespace rondo::device
