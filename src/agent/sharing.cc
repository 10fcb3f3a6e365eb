// SPDX-License-Identifier: Apache-2.0
#include "agent/sharing.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "deviceplugin/allocate.h"
#include "share/shim_library.h"

namespace rondo::agent {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr rlim_t kDescriptors = 65536;

// How many slots can be kept: each is a descriptor, and so is each process that
// talks to it; the device plugin must never run out of them. Raises the soft
// limit, which containers may be given as 1024.
size_t MostSlots() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 256;
  if (limit.rlim_cur < kDescriptors) {
    limit.rlim_cur = std::min(limit.rlim_max, kDescriptors);
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  return std::min(limit.rlim_cur, kDescriptors) / 4;
}

std::optional<uint64_t> LimitOf(const config::RondoOptions& options,
                                const deviceplugin::SlotGroup& group) {
  if (options.slot_memory_bytes) return options.slot_memory_bytes;
  if (!group.usable_bytes) return std::nullopt;
  // Of a device that is no longer shared, pods may still hold slots.
  const uint64_t shares = group.replicas > 0
                              ? static_cast<uint64_t>(group.replicas)
                              : std::max<uint64_t>(group.numbers.size(), 1);
  return *group.usable_bytes / shares / kMiB * kMiB;
}

}  // namespace

share::ShareConfig MakeShareConfig(
    const config::RondoOptions& options,
    const std::vector<deviceplugin::SlotGroup>& groups) {
  share::ShareConfig config;
  config.period = options.period;
  config.turn = options.turn;
  for (const deviceplugin::SlotGroup& group : groups) {
    share::SlotSpec spec;
    spec.gpu_uuid = group.uuid;
    spec.limit_bytes = LimitOf(options, group);
    spec.memory = options.memory;
    spec.on_agent_loss = options.on_agent_loss;
    for (const uint32_t number : group.numbers) {
      spec.replica = static_cast<int>(number);
      config.slots.push_back(spec);
    }
  }
  return config;
}

Sharing::Sharing(EventLoop& loop, rm::System& system, std::string folder,
                 std::string dev_dir)
    : loop_(loop),
      system_(system),
      folder_(std::move(folder)),
      dev_dir_(std::move(dev_dir)) {}

Sharing::~Sharing() = default;

absl::Status Sharing::Install() const {
  const std::string library =
      absl::StrCat(folder_, "/", deviceplugin::kLibraryFolder);
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
  if (folder_.empty()) {
    wanted_ = injects;
    if (injects)
      installed_ = absl::FailedPreconditionError(
          "no state folder (--state-dir): nothing is put into pods");
    return;
  }
  const std::string library = absl::StrCat(
      folder_, "/", deviceplugin::kLibraryFolder, "/", share::kShimName);
  wanted_ = injects || access(library.c_str(), F_OK) == 0;
  if (wanted_) installed_ = Install();
}

absl::Status Sharing::Start() {
  if (share_ != nullptr) return absl::OkStatus();
  RONDO_ASSIGN_OR_RETURN(
      share_, share::Share::Create(loop_, RealClock(), system_,
                                   {.run_dir = folder_, .dev_dir = dev_dir_}));
  feed_ = std::make_unique<ActivityFeed>(loop_, system_, dev_dir_, *share_);
  return absl::OkStatus();
}

void Sharing::Apply(const config::RondoOptions& options,
                    const std::vector<deviceplugin::SlotGroup>& groups) {
  options_ = options;
  groups_ = groups;
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
  if (!folder_.empty() && (share_ != nullptr || !groups_.empty())) {
    const absl::Status started = Start();
    status.Update(started);
    share::ShareConfig config = MakeShareConfig(options_, groups_);
    if (const size_t most = MostSlots(); config.slots.size() > most) {
      status.Update(absl::ResourceExhaustedError(
          absl::StrCat(config.slots.size(), " slots: only the first ", most,
                       " are kept, the others have no limit")));
      config.slots.resize(most);
    }
    if (started.ok()) status.Update(share_->Configure(config));
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

void Sharing::Describe(metrics::NodeView& view) const {
  view.sharing.on = wanted_;
  view.sharing.problem = problem_;
  if (share_ != nullptr) view.sharing.stats = share_->Snapshot();
}

}  // namespace rondo::agent
