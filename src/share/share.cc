// SPDX-License-Identifier: Apache-2.0
#include "share/share.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "share/gpu_share.h"
#include "share/memory/audit.h"
#include "share/slot_server.h"
#include "share/slot_stats.h"
#include "share/time/suspender.h"

namespace rondo::share {
namespace {

wire::Memory WireMemory(config::MemoryMode mode) {
  switch (mode) {
    case config::MemoryMode::kOff:
      return wire::Memory::kOff;
    case config::MemoryMode::kObserve:
      return wire::Memory::kObserve;
    case config::MemoryMode::kEnforce:
      return wire::Memory::kEnforce;
  }
  return wire::Memory::kObserve;
}

wire::Class WireClass(TenantClass cls) {
  switch (cls) {
    case TenantClass::kLatency:
      return wire::Class::kLatency;
    case TenantClass::kBatch:
      return wire::Class::kBatch;
    case TenantClass::kStandard:
      break;
  }
  return wire::Class::kStandard;
}

SlotPolicy PolicyOf(const SlotSpec& spec) {
  return {.memory = WireMemory(spec.memory),
          .on_agent_loss = spec.on_agent_loss == config::OnAgentLoss::kOpen
                               ? wire::OnAgentLoss::kOpen
                               : wire::OnAgentLoss::kClosed,
          .managed = spec.count_managed ? wire::Managed::kCount
                                        : wire::Managed::kIgnore,
          .cls = WireClass(spec.tenant.cls),
          .limit_bytes = spec.limit_bytes.value_or(0)};
}

class ShareImpl : public Share, public SlotServer::Observer {
 public:
  ShareImpl(EventLoop& loop, const Clock& clock, rm::System& system,
            const ShareOptions& options)
      : loop_(loop),
        clock_(clock),
        options_(options),
        system_(system),
        server_(loop, options.run_dir, this, options.replay_window) {
    ScheduleAudit();
  }
  ~ShareImpl() override { loop_.CancelTimer(audit_timer_); }

  absl::Status Configure(const ShareConfig& config) override;
  bool Complete() const override;
  absl::Status SetTenant(absl::string_view slot_id, const TenantSpec& tenant,
                         std::optional<uint64_t> limit_bytes) override;
  void OnActivity(absl::string_view gpu_uuid,
                  const activity::Usage& usage) override;
  void OnSampleRate(RateCallback callback) override;
  ShareStats Snapshot() override;

  void OnAttached(ProcessId process) override;
  void OnChannels(ProcessId process) override;
  void OnApplied(ProcessId process, const wire::Applied& applied) override;
  void OnDetached(ProcessId process) override;

 private:
  struct Slot {
    SlotSpec spec;
    TenantId tenant = 0;
  };
  struct Gpu {
    absl::Status ready = absl::UnavailableError("the driver is being opened");
    std::unique_ptr<Suspender> suspender;
    std::unique_ptr<GpuShare> share;  // goes before what it uses
    Audit audit;
  };

  Gpu& GpuOf(const std::string& uuid);
  GpuShare* ShareOf(ProcessId process);
  void Put(const SlotSpec& spec, Slot* slot);
  void OnReady(const std::string& uuid, const absl::Status& status);
  void ScheduleAudit();
  void AuditGpu(const std::string& uuid);
  std::vector<Audit::Process> LedgerOf(const std::string& uuid) const;

  EventLoop& loop_;
  const Clock& clock_;
  const ShareOptions options_;
  Rules rules_;
  RateCallback on_rate_;
  EventLoop::TimerId audit_timer_ = 0;
  TenantId last_tenant_ = 0;
  std::set<std::string> wanted_;  // by the config; slots_ are those there are
  std::map<std::string, Slot> slots_;
  rm::System& system_;
  SlotServer server_;
  std::map<std::string, Gpu> gpus_;  // first to go: they use the server
};

void ShareImpl::OnReady(const std::string& uuid, const absl::Status& status) {
  gpus_.at(uuid).ready = status;
  if (status.ok())
    LogInfo(uuid, " opened: tenants can be suspended and are audited");
  else
    LogWarning(uuid,
               ": no suspension of tenants and no audit: ", status.message());
}

ShareImpl::Gpu& ShareImpl::GpuOf(const std::string& uuid) {
  Gpu& gpu = gpus_[uuid];
  if (gpu.share != nullptr) return gpu;
  gpu.suspender = std::make_unique<Suspender>(
      loop_, clock_, system_, options_.dev_dir, uuid,
      [this, uuid](const absl::Status& status) { OnReady(uuid, status); });
  gpu.share = std::make_unique<GpuShare>(
      loop_, clock_, uuid, rules_, &server_, gpu.suspender.get(),
      [this, uuid](int64_t us) {
        if (on_rate_) on_rate_(uuid, std::chrono::microseconds(us));
      });
  return gpu;
}

void ShareImpl::Put(const SlotSpec& spec, Slot* slot) {
  slot->spec = spec;
  server_.SetPolicy(spec.id(), PolicyOf(spec));
  GpuOf(spec.gpu_uuid).share->SetTenant(slot->tenant, spec.tenant);
}

absl::Status ShareImpl::Configure(const ShareConfig& config) {
  rules_.earned.longest_us = config.period.count() / 2;
  rules_.turns.batch_us = config.turn.count();
  for (auto& [uuid, gpu] : gpus_) gpu.share->SetRules(rules_);

  std::set<std::string> wanted;
  for (const SlotSpec& spec : config.slots) wanted.insert(spec.id());
  wanted_ = wanted;
  for (auto slot = slots_.begin(); slot != slots_.end();) {
    if (wanted.contains(slot->first)) {
      ++slot;
      continue;
    }
    server_.RemoveSlot(slot->first);
    gpus_.at(slot->second.spec.gpu_uuid)
        .share->RemoveTenant(slot->second.tenant);
    slot = slots_.erase(slot);
  }
  absl::Status result;
  for (const SlotSpec& spec : config.slots) {
    const auto known = slots_.find(spec.id());
    if (known != slots_.end()) {
      Put(spec, &known->second);
      result.Update(Annotate(server_.MendSlot(spec.id()),
                             absl::StrCat("slot ", spec.id())));
      continue;
    }
    const absl::Status added =
        server_.AddSlot(spec.id(), spec.folder(), PolicyOf(spec));
    if (!added.ok()) {
      result.Update(Annotate(added, absl::StrCat("slot ", spec.id())));
      continue;
    }
    Slot slot;
    slot.tenant = ++last_tenant_;
    Put(spec, &slot);
    slots_[spec.id()] = slot;
  }
  return result;
}

bool ShareImpl::Complete() const {
  return std::all_of(wanted_.begin(), wanted_.end(), [this](const auto& slot) {
    return server_.HasSocket(slot);
  });
}

absl::Status ShareImpl::SetTenant(absl::string_view slot_id,
                                  const TenantSpec& tenant,
                                  std::optional<uint64_t> limit_bytes) {
  const auto slot = slots_.find(std::string(slot_id));
  if (slot == slots_.end())
    return absl::NotFoundError(absl::StrCat("no slot ", slot_id));
  SlotSpec spec = slot->second.spec;
  spec.tenant = tenant;
  spec.limit_bytes = limit_bytes;
  Put(spec, &slot->second);
  return absl::OkStatus();
}

void ShareImpl::OnActivity(absl::string_view gpu_uuid,
                           const activity::Usage& usage) {
  const auto gpu = gpus_.find(std::string(gpu_uuid));
  if (gpu == gpus_.end()) return;
  // A pid may hold several connections (a forked child keeps its parent's);
  // the newest one with channels is the one that runs.
  std::map<int32_t, ProcessId> by_pid;
  for (const auto& [id, slot] : slots_) {
    if (slot.spec.gpu_uuid != gpu->first) continue;
    for (ProcessId process : server_.processes(id)) {
      const SlotProcess& info = *server_.process(process);
      if (info.pid != 0 && !info.channels.empty()) by_pid[info.pid] = process;
    }
  }
  Activity activity;
  activity.source = usage.source;
  activity.age_us = (clock_.Now() - usage.ended).count() / 1000;
  activity.interval_us = usage.interval.count();
  for (const activity::PidActivity& run : usage.runs) {
    const auto process = by_pid.find(run.pid);
    if (process == by_pid.end())
      activity.other_busy_us += run.busy_us;
    else
      activity.runs.push_back({process->second, run.busy_us, run.idle_us,
                               run.stays, run.longest_us, run.ended,
                               run.ended_us});
  }
  gpu->second.share->OnActivity(activity);
}

void ShareImpl::OnSampleRate(RateCallback callback) {
  on_rate_ = std::move(callback);
  if (!on_rate_) return;
  for (const auto& [uuid, gpu] : gpus_)
    on_rate_(uuid, std::chrono::microseconds(gpu.share->sample_us()));
}

GpuShare* ShareImpl::ShareOf(ProcessId process) {
  const SlotProcess* info = server_.process(process);
  if (info == nullptr) return nullptr;
  const auto slot = slots_.find(info->slot);
  if (slot == slots_.end()) return nullptr;
  return gpus_.at(slot->second.spec.gpu_uuid).share.get();
}

void ShareImpl::OnAttached(ProcessId process) {
  if (GpuShare* share = ShareOf(process))
    share->OnAttached(process,
                      slots_.at(server_.process(process)->slot).tenant);
}
void ShareImpl::OnChannels(ProcessId process) {
  if (GpuShare* share = ShareOf(process)) share->OnChannels(process);
}
void ShareImpl::OnApplied(ProcessId process, const wire::Applied& applied) {
  if (GpuShare* share = ShareOf(process)) share->OnApplied(process, applied);
}
void ShareImpl::OnDetached(ProcessId process) {
  if (GpuShare* share = ShareOf(process)) share->OnDetached(process);
}

void ShareImpl::ScheduleAudit() {
  audit_timer_ = loop_.RunAfter(options_.audit_interval, [this] {
    ScheduleAudit();
    for (const auto& [uuid, gpu] : gpus_) AuditGpu(uuid);
  });
}

std::vector<Audit::Process> ShareImpl::LedgerOf(const std::string& uuid) const {
  std::vector<Audit::Process> list;
  for (const auto& [id, slot] : slots_) {
    if (slot.spec.gpu_uuid != uuid) continue;
    for (ProcessId process : server_.processes(id)) {
      const int32_t pid = server_.process(process)->pid;
      const uint64_t bytes = server_.ledger(id)->device_bytes(process);
      if (pid > 0) list.push_back({id, static_cast<uint32_t>(pid), bytes, 0});
    }
  }
  return list;
}

void ShareImpl::AuditGpu(const std::string& uuid) {
  std::vector<Audit::Process> before = LedgerOf(uuid);
  std::set<uint32_t> pids;
  for (const Audit::Process& process : before) pids.insert(process.pid);
  if (pids.empty()) return;
  gpus_.at(uuid).suspender->ReadBytes(
      {pids.begin(), pids.end()},
      [this, uuid, before = std::move(before)](
          const absl::StatusOr<std::map<uint32_t, uint64_t>>& bytes) {
        LogDebug(uuid, ": audit");
        const auto gpu = gpus_.find(uuid);
        if (!bytes.ok() || gpu == gpus_.end()) return;
        // Those who went in the meantime hold nothing; they stay in the list
        // with 0 after, so that their end is no difference.
        std::vector<Audit::Process> both = before;
        for (const Audit::Process& after : LedgerOf(uuid))
          both.push_back({after.slot, after.pid, 0, after.before_bytes});
        for (const Audit::Alarm& alarm :
             gpu->second.audit.Compare(both, *bytes))
          LogWarning("slot ", alarm.slot, ": the driver charges process ",
                     alarm.pid, " with ", std::abs(alarm.difference), " bytes ",
                     alarm.difference > 0 ? "more" : "less",
                     " than the ledger knows");
      });
}

ShareStats ShareImpl::Snapshot() {
  ShareStats stats;
  for (auto& [uuid, gpu] : gpus_) {
    GpuStats& out = stats.gpus.emplace_back();
    out.uuid = uuid;
    out.suspender_ready = gpu.ready.ok();
    out.suspender_problem = std::string(gpu.ready.message());
    if (gpu.share->Fresh(Activity::Source::kSwitchLog))
      out.activity_source = "switch-log";
    else if (gpu.share->Fresh(Activity::Source::kSampling))
      out.activity_source = "sampling";
  }
  for (auto& [id, slot] : slots_) {
    Gpu& gpu = gpus_.at(slot.spec.gpu_uuid);
    stats.slots.push_back(MakeSlotStats(slot.spec, server_, gpu.audit,
                                        gpu.share->View(slot.tenant),
                                        gpu.ready));
  }
  return stats;
}

}  // namespace

std::optional<SlotSpec> SlotSpec::Parse(absl::string_view id) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(id, absl::MaxSplits("::", 1));
  SlotSpec spec{.gpu_uuid = std::string(parts.first)};
  if (spec.gpu_uuid.empty() || !absl::SimpleAtoi(parts.second, &spec.replica) ||
      spec.replica < 0 || spec.id() != id)
    return std::nullopt;
  return spec;
}
std::string SlotSpec::id() const {
  return absl::StrCat(gpu_uuid, "::", replica);
}
std::string SlotSpec::folder() const {
  return absl::StrCat(gpu_uuid, "-", replica);
}

absl::StatusOr<std::unique_ptr<Share>> Share::Create(EventLoop& loop,
                                                     const Clock& clock,
                                                     rm::System& system,
                                                     ShareOptions options) {
  RONDO_RETURN_IF_ERROR(MakeDirectories(options.run_dir));
  return std::make_unique<ShareImpl>(loop, clock, system, options);
}

}  // namespace rondo::share
