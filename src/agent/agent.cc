// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <signal.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/config_keeper.h"
#include "agent/config_source.h"
#include "agent/dir_watcher.h"
#include "agent/node_api.h"
#include "agent/sharing.h"
#include "agent/slot_folder.h"
#include "base/ending.h"
#include "base/event_loop.h"
#include "base/file.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/status.h"
#include "base/version.h"
#include "kube/node_watcher.h"
#include "metrics/http_server.h"
#include "rm/noted_system.h"
#include "rm/system.h"

namespace rondo::agent {
namespace {

using std::chrono::seconds;

// A node whose label cannot be read (API server down) must still serve its
// GPUs.
constexpr seconds kLabelPatience{5};

std::string OrEmpty(std::optional<std::string> value) {
  return value ? *std::move(value) : "";
}

// Of the options, else of the cluster that the agent runs in.
absl::StatusOr<kube::ApiClient::Options> ApiServer(
    const Options& options, const config::Getenv& getenv) {
  if (!options.api_server.empty())
    return kube::ApiClient::Options{
        .base_url = options.api_server, .token_file = "", .ca_file = ""};
  std::map<std::string, std::string> values;  // InCluster wants char*
  return kube::ApiClient::InCluster([&](const char* name) {
    values[name] = OrEmpty(getenv(name));
    return values[name].c_str();
  });
}

PodFeed::Options PodOptions(const Options& options,
                            const config::Getenv& getenv) {
  return {.kubelet = {.pod_resources_socket = options.pod_resources_socket,
                      .pods_api_socket = options.pods_api_socket},
          .api_server = ApiServer(options, getenv),
          .node_name = options.node_name,
          .device_plugin_dir = options.device_plugin_dir};
}

// Why there can be no slots.
std::string NoSlots(const Options& options, const config::Getenv& getenv) {
  if (options.state_dir.empty()) return "no state folder (--state-dir)";
  const bool in_pod = !OrEmpty(getenv("KUBERNETES_SERVICE_HOST")).empty();
  std::error_code error;  // /var/run is /run by a link
  const std::string folder =
      std::filesystem::weakly_canonical(options.state_dir, error);
  return std::string(
      CheckSlotFolder(error ? options.state_dir : folder, in_pod,
                      ReadFile("/proc/self/mountinfo").value_or(""))
          .message());
}

deviceplugin::ManagerOptions ManagerOptions(
    const Options& options, const std::string& slot_dir,
    const config::Getenv& getenv,
    std::function<void(const std::vector<std::string>&)> on_allocate) {
  return {.socket_dir = options.device_plugin_dir,
          .cdi_dir = options.cdi_dir,
          .slot_dir = slot_dir,
          .root = options.root,
          .disable_health_checks = OrEmpty(getenv("DP_DISABLE_HEALTHCHECKS")),
          .enable_health_checks = OrEmpty(getenv("DP_ENABLE_HEALTHCHECKS")),
          .recovery_quiet = options.recovery_quiet,
          .on_allocate = std::move(on_allocate)};
}

// Who writes a file in place empties it first, and an empty config is a valid
// one: it is believed when it is still empty after this.
constexpr std::chrono::milliseconds kEmptyPatience{500};

}  // namespace

class Agent::Impl {
 public:
  Impl(Options options, config::Getenv getenv, Gpus::Open open_nvml,
       CallsInFlight& calls)
      : calls_(calls),
        options_(std::move(options)),
        getenv_(std::move(getenv)),
        no_slots_(NoSlots(options_, getenv_)),
        slot_dir_(no_slots_.empty() ? options_.state_dir : ""),
        sharing_(loop_, system_, [this] { return gpus_.nvml(); },
                 {.folder = slot_dir_,
                  .no_folder = no_slots_,
                  .dev_dir = PathUnder(options_.root, "/dev"),
                  .pods = PodOptions(options_, getenv_)}),
        gpus_(loop_,
              ManagerOptions(options_, slot_dir_, getenv_,
                             [this](const std::vector<std::string>& ids) {
                               loop_.Post(
                                   [this, ids] { sharing_.OnAllocated(ids); });
                             }),
              std::move(open_nvml),
              [this](const auto& slots) { sharing_.SetGroups(slots); }),
        keeper_(options_.overrides, getenv_, options_.state_dir,
                [this](const config::Plan& plan, const std::string& origin) {
                  return Apply(plan, origin);
                }) {}

  ~Impl() {
    // The threads that post to the loop or read from the manager go before
    // them.
    http_.reset();
    node_watcher_.reset();
  }

  absl::Status Run();

 private:
  absl::Status WatchSignals();
  void OnSignal(int signal);
  absl::Status StartHttp();
  // True where a label will come (or an error), so that the first load waits
  // for it.
  bool WatchLabel();
  void OnLabels(const kube::Labels& labels);
  void WatchConfigFolders();
  void FirstLoad();
  // always: also when the text did not change.
  absl::Status Load(bool always);
  // True for a file that is empty now and may not be in a moment: Load comes
  // again.
  bool AwaitText(const absl::StatusOr<ConfigText>& text);
  absl::Status Apply(const config::Plan& plan, const std::string& origin);
  metrics::NodeView View() const;
  void Fail(absl::Status status) {
    result_ = std::move(status);
    loop_.Stop();
  }

  CallsInFlight& calls_;
  const Options options_;
  const config::Getenv getenv_;
  const std::string no_slots_, slot_dir_;  // one of them is empty
  const int64_t start_unix_seconds_ = time(nullptr);

  EventLoop loop_;
  // Before all that may wait for the driver in its destructor.
  std::optional<Ending> ending_;
  rm::NotedSystem system_{rm::RealSystem(), calls_};
  Sharing sharing_;
  Gpus gpus_;
  ConfigKeeper keeper_;
  std::vector<std::unique_ptr<DirWatcher>> dir_watchers_;
  std::string label_;
  EventLoop::TimerId empty_timer_ = 0;
  bool empty_believed_ = false;
  bool loaded_ = false;  // the first load has been tried
  std::string waiting_for_ = "the first config";
  absl::Status result_;

  std::unique_ptr<kube::NodeWatcher> node_watcher_;
  std::unique_ptr<metrics::HttpServer> http_;
};

absl::Status Agent::Impl::Run() {
  LogInfo("rondo agent ", kVersion);
  RONDO_RETURN_IF_ERROR(WatchSignals());
  RONDO_RETURN_IF_ERROR(StartHttp());
  WatchConfigFolders();
  if (WatchLabel()) {
    waiting_for_ = absl::StrCat("the labels of node ", options_.node_name);
    loop_.RunAfter(kLabelPatience, [this] {
      if (loaded_) return;
      LogWarning("no labels of node ", options_.node_name, " after ",
                 kLabelPatience.count(), " s: choosing a config without them");
      FirstLoad();
    });
  } else {
    FirstLoad();
  }
  loop_.Run();
  ending_->Begin(ExitCode(result_));
  return result_;
}

absl::Status Agent::Impl::WatchSignals() {
  RONDO_ASSIGN_OR_RETURN(UniqueFd signals,
                         WatchedSignals({SIGHUP, SIGINT, SIGTERM, SIGQUIT}));
  ending_.emplace(calls_, std::move(signals),
                  [this](int signal) -> std::optional<int> {
                    loop_.Post([this, signal] { OnSignal(signal); });
                    if (signal == SIGHUP) return std::nullopt;
                    return kExitOk;
                  });
  return absl::OkStatus();
}

void Agent::Impl::OnSignal(int signal) {
  if (signal != SIGHUP) {
    LogInfo("signal ", signal, ": stopping");
    loop_.Stop();
  } else if (loaded_) {
    LogInfo("SIGHUP: reading config and GPUs anew");
    Load(/*always=*/true).IgnoreError();  // told and kept by the keeper
  }
}

absl::Status Agent::Impl::StartHttp() {
  if (options_.listen.empty()) return absl::OkStatus();
  RONDO_ASSIGN_OR_RETURN(const metrics::ListenAddress address,
                         metrics::ParseListenAddress(options_.listen));
  RONDO_ASSIGN_OR_RETURN(
      http_, metrics::HttpServer::Start(
                 address,
                 NodeRoutes(
                     loop_, [this] { return View(); },
                     [this](metrics::NodeView& v) { gpus_.AddReadings(v); })));
  LogInfo("listening on ", address.host, ":", http_->port());
  return absl::OkStatus();
}

bool Agent::Impl::WatchLabel() {
  if (options_.node_name.empty() || options_.config_dir.empty() ||
      !options_.config_file.empty())
    return false;
  const auto cluster = ApiServer(options_, getenv_);
  absl::StatusOr<std::unique_ptr<kube::ApiClient>> client =
      cluster.ok() ? kube::ApiClient::Create(*cluster) : cluster.status();
  if (!client.ok()) {
    LogWarning("labels of node ", options_.node_name,
               " cannot be read: ", client.status().message());
    return false;
  }
  node_watcher_ = std::make_unique<kube::NodeWatcher>(
      *std::move(client),
      kube::NodeWatcher::Options{.node_name = options_.node_name},
      [this](const kube::Labels& labels) {
        loop_.Post([this, labels] { OnLabels(labels); });
      },
      [this](const absl::Status& status) {
        LogWarning("labels of node ", options_.node_name, ": ",
                   status.message(), "; trying again");
      });
  return true;
}

void Agent::Impl::OnLabels(const kube::Labels& labels) {
  const auto it = labels.find(options_.node_label);
  const std::string label = it == labels.end() ? "" : it->second;
  const bool changed = label != label_;
  label_ = label;
  if (!loaded_) {
    FirstLoad();
  } else if (changed) {
    LogInfo("label ", options_.node_label, " is now '", label_, "'");
    Load(/*always=*/false).IgnoreError();  // told and kept by the keeper
  }
}

void Agent::Impl::WatchConfigFolders() {
  for (const std::string& folder : FoldersToWatch(options_)) {
    auto watcher = DirWatcher::Create(loop_, folder, [this] {
      if (loaded_) Load(/*always=*/false).IgnoreError();
    });
    if (watcher.ok())
      dir_watchers_.push_back(*std::move(watcher));
    else
      LogError("config changes will not be seen: ", watcher.status().message());
  }
}

void Agent::Impl::FirstLoad() {
  loaded_ = true;
  const absl::Status status = Load(/*always=*/true);
  if (status.ok()) return;
  if (keeper_.OfferRemembered().ok()) {
    LogWarning("running with the config that was in force before");
    return;
  }
  // A label or default that names no config can be put right from outside while
  // we wait; so can a missing driver. A bad file or flag ends the program:
  // whoever started it must see that.
  if (absl::IsNotFound(status) && !options_.config_dir.empty()) {
    waiting_for_ = absl::StrCat("a config: ", status.message());
    return;
  }
  const auto& refused = keeper_.view().refused;
  Fail(refused && !refused->origin.empty() ? Annotate(status, refused->origin)
                                           : status);
}

absl::Status Agent::Impl::Load(bool always) {
  NodeFacts facts{.label = label_, .gpu_models = {}};
  if (!options_.config_dir.empty() && options_.config_file.empty()) {
    // GPUs are asked before there is a plan: flags and environment alone tell
    // where the driver lies.
    const auto base = config::Compile("", options_.overrides, getenv_);
    if (base.ok())
      facts.gpu_models = gpus_.Models(base.plan->flags.container_driver_root);
  }
  const absl::StatusOr<ConfigText> text = ReadConfig(options_, facts);
  if (!always && AwaitText(text)) return absl::OkStatus();
  const absl::Status status = keeper_.Offer(text, always);
  sharing_.SetOrigin(keeper_.view().origin);
  return status;
}

bool Agent::Impl::AwaitText(const absl::StatusOr<ConfigText>& text) {
  const bool empty = text.ok() && text->text.empty() && !text->origin.empty();
  if (!empty || empty_believed_) {
    loop_.CancelTimer(empty_timer_);
    empty_timer_ = 0;
    return false;
  }
  if (empty_timer_ != 0) return true;
  LogInfo(text->origin, " is empty: looking again in ", kEmptyPatience.count(),
          " ms");
  empty_timer_ = loop_.RunAfter(kEmptyPatience, [this] {
    empty_timer_ = 0;
    empty_believed_ = true;
    Load(/*always=*/false).IgnoreError();  // told and kept by the keeper
    empty_believed_ = false;
  });
  return true;
}

absl::Status Agent::Impl::Apply(const config::Plan& plan,
                                const std::string& origin) {
  sharing_.Prepare(plan.rondo);
  RONDO_RETURN_IF_ERROR(gpus_.Apply(plan));
  sharing_.Apply(plan.rondo, origin, gpus_.Slots());
  return absl::OkStatus();
}

metrics::NodeView Agent::Impl::View() const {
  metrics::NodeView view;
  view.node_name = options_.node_name;
  view.start_unix_seconds = start_unix_seconds_;
  view.config = keeper_.view();
  std::string waiting_for = gpus_.Describe(view);
  sharing_.Describe(view);
  if (!keeper_.plan()) waiting_for = waiting_for_;
  if (!waiting_for.empty())
    view.not_ready_reason = absl::StrCat("waiting for ", waiting_for);
  view.ready = view.not_ready_reason.empty();
  return view;
}

Agent::Agent(Options options, config::Getenv getenv, Gpus::Open open_nvml,
             CallsInFlight& calls)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(getenv),
                                   std::move(open_nvml), calls)) {}
Agent::~Agent() = default;

absl::Status Agent::Run() { return impl_->Run(); }

}  // namespace rondo::agent
