// SPDX-License-Identifier: Apache-2.0
#include "agent/sharing.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "deviceplugin/allocate.h"
#include "share/shim_library.h"
#include "share/slot_stats.h"

namespace rondo::agent {
namespace {

constexpr char kAnnotationReason[] = "RondoAnnotationInvalid";
constexpr size_t kDescriptors = 65536;
constexpr std::chrono::milliseconds kListInterval{1000};
constexpr MonotonicTime kLookInterval = std::chrono::seconds(2);

// How many slots can be kept: each is a descriptor, and so is each process that
// talks to it; the device plugin must never run out of them.
size_t MostSlots() {
  return std::min(AllowDescriptors(kDescriptors), kDescriptors) / 4;
}

std::map<std::string, uint64_t> GpuBytes(
    const std::vector<deviceplugin::SlotGroup>& groups) {
  std::map<std::string, uint64_t> bytes;
  for (const deviceplugin::SlotGroup& group : groups)
    if (group.usable_bytes) bytes[group.uuid] = *group.usable_bytes;
  return bytes;
}

bool SameRequest(const share::SlotSpec& a, const share::SlotSpec& b) {
  return a.limit_bytes == b.limit_bytes && a.tenant == b.tenant;
}

}  // namespace

Sharing::Sharing(EventLoop& loop, rm::System& system,
                 std::function<std::shared_ptr<nvml::Backend>()> nvml,
                 SharingOptions options)
    : loop_(loop),
      system_(system),
      nvml_(std::move(nvml)),
      options_(std::move(options)),
      foreign_(static_cast<uint32_t>(getpid()), activity::ProcessName) {
  Look();
}

Sharing::~Sharing() { loop_.CancelTimer(look_timer_); }

void Sharing::Look() {
  look_timer_ = loop_.RunAfter(kLookInterval, [this] { Look(); });
  if (options_.folder.empty()) return;
  bool missing =
      share_ != nullptr ? !share_->Complete() : wanted_ && !groups_.empty();
  if (wanted_ && (!installed_.ok() || !HasLibrary())) {
    absl::Status again = Install();
    // The first problem stays: messages name temporary files.
    if (again.ok() || installed_.ok()) installed_ = std::move(again);
    missing = true;
  }
  if (missing) Configure();
}

std::string Sharing::LibraryFolder() const {
  return absl::StrCat(options_.folder, "/", deviceplugin::kLibraryFolder);
}
bool Sharing::HasLibrary() const {
  return access((LibraryFolder() + "/" + share::kShimName).c_str(), F_OK) == 0;
}

absl::Status Sharing::Install() const {
  const std::string library = LibraryFolder();
  RONDO_RETURN_IF_ERROR(share::InstallShim(library));
  // Pods may have the present file mounted: it is written only where there is
  // none.
  const std::string preload =
      absl::StrCat(library, "/", deviceplugin::kPreloadFile);
  const std::string text = absl::StrCat(deviceplugin::kShimInContainer, "\n");
  if (const auto there = ReadFile(preload); there.ok() && *there == text)
    return absl::OkStatus();
  return WriteFileAtomically(preload, text);
}

void Sharing::Prepare(const config::RondoOptions& options) {
  const bool injects = options.injection != config::Injection::kNone;
  installed_ = absl::OkStatus();
  if (options_.folder.empty()) {
    wanted_ = injects;
    if (injects)
      installed_ = absl::FailedPreconditionError(
          absl::StrCat("nothing is put into pods: ", options_.no_folder));
    return;
  }
  wanted_ = injects || HasLibrary();
  if (wanted_) installed_ = Install();
}

absl::Status Sharing::Start() {
  if (share_ != nullptr) return absl::OkStatus();
  RONDO_ASSIGN_OR_RETURN(
      share_, share::Share::Create(
                  loop_, RealClock(), system_,
                  {.run_dir = options_.folder, .dev_dir = options_.dev_dir}));
  const std::shared_ptr<nvml::Backend> nvml = nvml_();
  feed_ = std::make_unique<share::ActivityBridge>(
      loop_, system_, *share_,
      [nvml]() -> absl::StatusOr<std::shared_ptr<nvml::Backend>> {
        if (nvml == nullptr) return absl::UnavailableError("NVML is not open");
        return nvml;
      },
      activity::Feed::Options{.dev_dir = options_.dev_dir,
                              .other_users = true});
  StartPods();
  StartForeign(nvml);
  return absl::OkStatus();
}

void Sharing::StartForeign(std::shared_ptr<nvml::Backend> nvml) {
  if (nvml == nullptr) return;
  foreign_watch_ = std::make_unique<Ticker>(
      kListInterval, [this, nvml = std::move(nvml)] { ListProcesses(*nvml); });
}

void Sharing::ListProcesses(nvml::Backend& nvml) {
  std::set<std::string> gpus;
  {
    const std::lock_guard lock(shared_gpus_mutex_);
    gpus = shared_gpus_;
  }
  for (const std::string& uuid : gpus)
    loop_.Post([this, alive = std::weak_ptr<bool>(alive_), uuid,
                processes = nvml.ComputeProcesses(uuid)] {
      if (alive.expired()) return;
      if (!processes.ok()) return foreign_.Forget(uuid);
      const activity::AccountStats accounts = feed_->Snapshot();
      const auto account = accounts.gpus.find(uuid);
      foreign_.Update(
          uuid, *processes, share::AttachedPids(share_->Snapshot(), uuid),
          account == accounts.gpus.end() ? nullptr : &account->second,
          RealClock().Now());
    });
}

void Sharing::StartPods() {
  const PodFeed::Options& pods = options_.pods;
  if (pods.api_server.ok()) {
    auto client = kube::ApiClient::Create(*pods.api_server);
    if (client.ok())
      events_ = std::make_unique<kube::EventWriter>(
          *std::move(client),
          kube::EventWriter::Options{.node_name = pods.node_name},
          [](const absl::Status& status) {
            LogWarning("pods: an event cannot be written: ", status.message());
          });
  }
  pod_feed_ = std::make_unique<PodFeed>(
      pods, [this, alive = std::weak_ptr<bool>(alive_)](const PodReport& news) {
        loop_.Post([this, alive, news] {
          if (!alive.expired()) OnPods(news);
        });
      });
}

void Sharing::OnPods(const PodReport& report) {
  // What is not known any more stays in force: a slot changes hands only by an
  // Allocate, and that is seen here.
  if (report.holders)
    book_.SetHolders(*report.holders, report.recorded, report.number);
  if (report.source != metrics::PodSource::kNone) book_.SetPods(report.pods);
  report_ = report;
  FollowPods();
}

void Sharing::OnAllocated(const std::vector<std::string>& slots) {
  if (pod_feed_ == nullptr) return;
  book_.OnAllocated(slots, pod_feed_->Poke());
  FollowPods();
}

void Sharing::FollowPods() {
  SlotPlan plan = Plan();
  for (size_t i = 0; i < plan.config.slots.size(); ++i) {
    const share::SlotSpec& spec = plan.config.slots[i];
    if (i < plan_.config.slots.size() &&
        SameRequest(spec, plan_.config.slots[i]))
      continue;
    // A slot that has no socket is not kept, and its problem is told.
    share_->SetTenant(spec.id(), spec.tenant, spec.limit_bytes).IgnoreError();
  }
  plan_ = std::move(plan);
  Tell(plan_.problems);
}

void Sharing::Tell(const std::vector<PodProblem>& problems) {
  told_.KeepOnly(book_.uids());
  for (const PodProblem& problem : problems) {
    const AnnotationProblem& annotation = problem.annotation;
    if (!told_.Add(problem)) continue;
    LogWarning("pod ", problem.name_space, "/", problem.pod, ": ",
               annotation.message);
    if (events_ != nullptr)
      events_->Add({.name_space = problem.name_space,
                    .pod = problem.pod,
                    .uid = problem.uid,
                    .reason = kAnnotationReason,
                    .message = annotation.message});
  }
}

SlotPlan Sharing::Plan() const {
  share::ShareConfig defaults = MakeShareConfig(rondo_, groups_);
  if (const size_t most = MostSlots(); defaults.slots.size() > most)
    defaults.slots.resize(most);
  return PlanSlots(std::move(defaults), GpuBytes(groups_), book_);
}

void Sharing::Apply(const config::RondoOptions& options,
                    const std::string& origin,
                    const std::vector<deviceplugin::SlotGroup>& groups) {
  rondo_ = options;
  origin_ = origin;
  groups_ = groups;
  Configure();
}

void Sharing::SetOrigin(const std::string& origin) {
  if (origin == origin_) return;
  origin_ = origin;
  Configure();
}

void Sharing::SetGroups(const std::vector<deviceplugin::SlotGroup>& groups) {
  if (groups == groups_) return;
  groups_ = groups;
  Configure();
}

void Sharing::Configure() {
  if (!wanted_ && share_ == nullptr) {
    problem_.clear();
    return;
  }
  absl::Status status = installed_;
  // Where there are slots there is a driver: it is opened once, at the start.
  if (!options_.folder.empty() && (share_ != nullptr || !groups_.empty())) {
    const absl::Status started = Start();
    status.Update(started);
    plan_ = Plan();
    size_t slots = 0;
    for (const deviceplugin::SlotGroup& group : groups_)
      slots += group.numbers.size();
    if (slots > plan_.config.slots.size())
      status.Update(absl::ResourceExhaustedError(absl::StrCat(
          slots, " slots: only the first ", plan_.config.slots.size(),
          " are kept, the others have no limit")));
    if (started.ok()) {
      status.Update(share_->Configure(plan_.config));
      NoteGpus();
      Tell(plan_.problems);
    }
    // Last: of several troubles this is the smallest.
    status.Update(
        Annotate(CheckSlotMemory(rondo_, groups_),
                 origin_.empty() ? "config" : absl::string_view(origin_)));
  }
  Report(status);
}

void Sharing::Report(const absl::Status& status) {
  const std::string problem(status.message());
  if (problem == problem_) return;
  problem_ = problem;
  if (status.ok())
    LogInfo("sharing: well again");
  else
    LogError("sharing: ", problem);
}

void Sharing::NoteGpus() {
  std::set<std::string> gpus;
  for (const share::SlotSpec& slot : plan_.config.slots)
    // Of a MIG device's processes NVML tells no more than of the GPU's.
    if (absl::StartsWith(slot.gpu_uuid, "GPU-")) gpus.insert(slot.gpu_uuid);
  const std::lock_guard lock(shared_gpus_mutex_);
  for (const std::string& uuid : shared_gpus_)
    if (!gpus.contains(uuid)) foreign_.Forget(uuid);
  shared_gpus_ = std::move(gpus);
}

void Sharing::Describe(metrics::NodeView& view) const {
  view.sharing.on = wanted_;
  view.sharing.problem = problem_;
  if (share_ == nullptr) return;
  view.sharing.stats = share_->Snapshot();
  view.sharing.foreign = foreign_.View();
  metrics::PodsView& pods = view.sharing.pods;
  pods.holders_known = report_.holders.has_value();
  pods.holders_problem = report_.holders_problem;
  pods.source = report_.source;
  pods.source_problem = report_.pods_problem;
  pods.slots = plan_.owners;
  for (const PodProblem& problem : plan_.problems)
    pods.invalid.push_back({.name_space = problem.name_space,
                            .pod = problem.pod,
                            .key = problem.annotation.key,
                            .value = problem.annotation.value,
                            .message = problem.annotation.message});
}

}  // namespace rondo::agent
