// SPDX-License-Identifier: Apache-2.0
#include "activity/foreign_processes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/log.h"

namespace rondo::activity {
namespace {

constexpr MonotonicTime kMinute = std::chrono::minutes(1);

}  // namespace

void ForeignProcesses::Update(const std::string& uuid,
                              const std::vector<nvml::Process>& processes,
                              const std::optional<std::set<uint32_t>>& attached,
                              const GpuAccount* account, MonotonicTime now) {
  Gpu& gpu = gpus_[uuid];
  gpu.known = attached.has_value();
  if (!gpu.known) {
    gpu.processes.clear();
    return;
  }
  std::map<uint32_t, Process> before = std::exchange(gpu.processes, {});
  for (const nvml::Process& listed : processes) {
    // nvidia-smi and its like hold nothing.
    if (listed.pid == own_pid_ || listed.used_bytes == 0) continue;
    if (attached->contains(listed.pid)) continue;
    const auto known = before.find(listed.pid);
    Process process = known == before.end() ? Process{.since = now}
                                            : std::move(known->second);
    process.bytes = listed.used_bytes;
    if (!process.counts && now - process.since >= kPatience) {
      process.counts = true;
      process.name = name_of_(listed.pid);
      Tell(uuid, listed.pid, process, now);
    }
    gpu.processes[listed.pid] = std::move(process);
  }
  if (account == nullptr || !account->ready) {
    gpu.busy_ns.reset();
    return;
  }
  if (!gpu.busy_ns) gpu.busy_ns = 0;
  for (auto& [pid, process] : gpu.processes) {
    const auto time = account->processes.find(pid);
    if (!process.counts || time == account->processes.end()) continue;
    const uint64_t busy_ns = time->second.busy_ns;
    // Less than before: the log was opened anew.
    *gpu.busy_ns += busy_ns >= process.busy_ns ? busy_ns - process.busy_ns : 0;
    process.busy_ns = busy_ns;
  }
}

void ForeignProcesses::Tell(const std::string& uuid, uint32_t pid,
                            const Process& process, MonotonicTime now) {
  if (lines_ == 0 || now - minute_ >= kMinute) {
    minute_ = now;
    lines_ = 0;
  }
  if (++lines_ > kLinesPerMinute) return;
  LogWarning(
      uuid, ": process ", pid,
      process.name.empty() ? "" : absl::StrCat(" (", process.name, ")"),
      " uses it and is attached to none of its slots: no limit holds for it",
      lines_ == kLinesPerMinute ? "; more of them are not told this minute"
                                : "");
}

std::vector<ForeignView> ForeignProcesses::View() const {
  std::vector<ForeignView> views;
  for (const auto& [uuid, gpu] : gpus_) {
    if (!gpu.known) continue;
    ForeignView& view = views.emplace_back();
    view.gpu_uuid = uuid;
    if (gpu.busy_ns) view.gpu_seconds = static_cast<double>(*gpu.busy_ns) / 1e9;
    for (const auto& [pid, process] : gpu.processes)
      if (process.counts)
        view.processes.push_back(
            {.pid = pid, .name = process.name, .memory_bytes = process.bytes});
  }
  return views;
}

std::string ProcessName(uint32_t pid) {
  const auto name = ReadFile(absl::StrCat("/proc/", pid, "/comm"));
  if (!name.ok()) return "";
  // The process chooses it: it must not write lines of the log.
  std::string text(absl::StripAsciiWhitespace(*name));
  for (char& c : text)
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  return text;
}

}  // namespace rondo::activity
