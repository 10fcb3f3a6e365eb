// SPDX-License-Identifier: Apache-2.0
#include "configmanager/manager.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/config_source.h"
#include "agent/dir_watcher.h"
#include "agent/options.h"
#include "base/event_loop.h"
#include "base/file.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "configmanager/process.h"
#include "kube/node_watcher.h"

namespace rondo::configmanager {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr char kNoConfig[] = "/dev/null";
// A program that does not handle the signal yet would be ended by it. It is
// given this long to get there, and looked at this often.
constexpr milliseconds kStartPatience{5000};
constexpr milliseconds kLook{100};

// True where the link was not there, or led elsewhere.
absl::StatusOr<bool> UpdateLink(const std::string& target,
                                const std::string& link) {
  std::error_code error;
  const fs::path now = fs::canonical(link, error);
  if (!error && now == fs::canonical(target, error) && !error) return false;
  RONDO_RETURN_IF_ERROR(LinkAtomically(target, link));
  return true;
}

agent::Options Source(const Options& options) {
  agent::Options source;
  // A link is read from where it lies, not from where we stand.
  source.config_dir = fs::absolute(options.source_dir);
  source.default_config = options.default_config;
  source.fallback_strategies = options.fallback_strategies;
  source.node_label = options.node_label;
  return source;
}

}  // namespace

class Manager::Impl {
 public:
  Impl(Options options, kube::ApiClient::Options api_server)
      : options_(std::move(options)),
        api_server_(std::move(api_server)),
        source_(Source(options_)) {}

  absl::Status Run();

 private:
  absl::Status WatchSignals();
  absl::Status WatchLabel();
  void WatchFolder();
  void OnSignal();
  void OnLabels(const kube::Labels& labels);
  void OnFolder();
  absl::StatusOr<agent::ConfigText> Choose() const;
  absl::Status Update(const agent::ConfigText& chosen);
  void KeepLinkAlive();
  void Tell();
  void Told();
  void End(absl::Status result) {
    result_ = std::move(result);
    loop_.Stop();
  }

  const Options options_;
  const kube::ApiClient::Options api_server_;
  const agent::Options source_;

  EventLoop loop_;
  UniqueFd signals_;
  std::unique_ptr<agent::DirWatcher> folder_;
  std::optional<std::string> label_;  // empty: not known yet
  std::optional<std::string> text_;   // of the config that is linked
  MonotonicTime tell_until_{0};
  EventLoop::TimerId tell_timer_ = 0;
  bool waited_ = false;  // and said so
  absl::Status result_;

  // Last: its thread posts to the loop.
  std::unique_ptr<kube::NodeWatcher> node_;
};

absl::Status Manager::Impl::Run() {
  RONDO_RETURN_IF_ERROR(WatchSignals());
  RONDO_RETURN_IF_ERROR(WatchLabel());
  if (!options_.oneshot) WatchFolder();
  LogInfo("waiting for label ", options_.node_label, " of node ",
          options_.node_name);
  loop_.Run();
  return result_;
}

absl::Status Manager::Impl::WatchSignals() {
  RONDO_ASSIGN_OR_RETURN(signals_, WatchedSignals({SIGINT, SIGTERM, SIGQUIT}));
  return loop_.Watch(signals_.get(), [this] { OnSignal(); });
}

void Manager::Impl::OnSignal() {
  signalfd_siginfo info;
  if (read(signals_.get(), &info, sizeof(info)) != sizeof(info)) return;
  LogInfo("signal ", info.ssi_signo, ": stopping");
  // An init container that ends with 0 has done its work.
  End(options_.oneshot
          ? absl::CancelledError("stopped before the config was linked")
          : absl::OkStatus());
}

absl::Status Manager::Impl::WatchLabel() {
  RONDO_ASSIGN_OR_RETURN(auto client, kube::ApiClient::Create(api_server_));
  node_ = std::make_unique<kube::NodeWatcher>(
      std::move(client),
      kube::NodeWatcher::Options{.node_name = options_.node_name},
      [this](const kube::Labels& labels) {
        loop_.Post([this, labels] { OnLabels(labels); });
      },
      [this](const absl::Status& status) {
        LogWarning("labels of node ", options_.node_name, ": ",
                   status.message(), "; trying again");
      });
  return absl::OkStatus();
}

void Manager::Impl::WatchFolder() {
  auto watcher = agent::DirWatcher::Create(loop_, source_.config_dir,
                                           [this] { OnFolder(); });
  if (watcher.ok())
    folder_ = *std::move(watcher);
  else
    LogError("edits of configs will not be seen: ", watcher.status().message());
}

void Manager::Impl::OnLabels(const kube::Labels& labels) {
  const auto it = labels.find(options_.node_label);
  const std::string label = it == labels.end() ? "" : it->second;
  if (label_ == label) return;
  label_ = label;
  LogInfo("label ", options_.node_label, " is '", label, "'");
  const auto chosen = Choose();
  absl::Status status = chosen.ok() ? Update(*chosen) : chosen.status();
  if (status.ok()) return;
  KeepLinkAlive();
  End(std::move(status));
}

void Manager::Impl::OnFolder() {
  if (!label_) return;
  const auto chosen = Choose();
  const absl::Status status = chosen.ok() ? Update(*chosen) : chosen.status();
  if (status.ok()) return;
  // Whoever edits the ConfigMap can put it right, and is seen doing so.
  LogError(status.message(), "; the config in force stays");
  KeepLinkAlive();
}

absl::StatusOr<agent::ConfigText> Manager::Impl::Choose() const {
  RONDO_ASSIGN_OR_RETURN(const auto keys,
                         agent::ConfigKeys(source_.config_dir));
  if (keys.empty())
    return absl::NotFoundError(absl::StrCat(
        "no configuration files available in ", source_.config_dir));
  // NVIDIA's knows no choice by the model of the GPU.
  return agent::ReadConfig(source_, {.label = *label_, .gpu_models = {}});
}

absl::Status Manager::Impl::Update(const agent::ConfigText& chosen) {
  const std::string target = chosen.origin.empty() ? kNoConfig : chosen.origin;
  RONDO_ASSIGN_OR_RETURN(const bool moved,
                         UpdateLink(target, options_.destination));
  const bool edited = text_ && *text_ != chosen.text;
  text_ = chosen.text;
  if (moved)
    LogInfo(options_.destination, " -> ", target, ": ", chosen.why);
  else if (edited)
    LogInfo(target, " was edited");
  if (!moved && !edited) LogInfo("already configured: ", target);
  if (!options_.send_signal || (!moved && !edited)) {
    Told();
    return absl::OkStatus();
  }
  loop_.CancelTimer(tell_timer_);
  tell_until_ = RealClock().Now() + kStartPatience;
  waited_ = false;
  Tell();
  return absl::OkStatus();
}

// The chosen file is gone: a program that reads the link now would find
// nothing, or take that for "nothing is shared".
void Manager::Impl::KeepLinkAlive() {
  std::error_code error;
  if (!text_ || fs::exists(options_.destination, error)) return;
  const std::string kept =
      absl::StrCat(fs::absolute(options_.destination).string(), ".kept");
  absl::Status status = WriteFileAtomically(kept, *text_);
  if (status.ok()) status = LinkAtomically(kept, options_.destination);
  if (status.ok())
    LogWarning(options_.destination, " -> ", kept,
               ", a copy of the config that is gone");
  else
    LogError(options_.destination, " points at nothing: ", status.message());
}

void Manager::Impl::Tell() {
  tell_timer_ = 0;
  const std::optional<pid_t> pid = FindProcess(options_.process);
  if (!pid) {
    // It will read the link when it starts. NVIDIA's ends with an error here,
    // and finds all in order when it is started again.
    LogWarning("no process ", options_.process, " to signal");
    return Told();
  }
  if (options_.signal != SIGKILL && options_.signal != SIGSTOP &&
      !HandlesSignal(*pid, options_.signal) &&
      RealClock().Now() < tell_until_) {
    if (!waited_)
      LogInfo("process ", *pid, " does not yet handle signal ", options_.signal,
              ": waiting for it");
    waited_ = true;
    tell_timer_ = loop_.RunAfter(kLook, [this] { Tell(); });
    return;
  }
  if (kill(*pid, options_.signal) == 0)
    LogInfo("sent signal ", options_.signal, " to ", options_.process,
            ", process ", *pid);
  else if (errno == ESRCH)
    LogWarning("process ", *pid, " of ", options_.process, " has ended");
  else
    return End(ErrnoStatus(absl::StrCat("signal ", options_.signal, " to ",
                                        options_.process, ", process ", *pid)));
  Told();
}

void Manager::Impl::Told() {
  if (options_.oneshot) End(absl::OkStatus());
}

Manager::Manager(Options options, kube::ApiClient::Options api_server)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(api_server))) {
}
Manager::~Manager() = default;

absl::Status Manager::Run() { return impl_->Run(); }

}  // namespace rondo::configmanager
