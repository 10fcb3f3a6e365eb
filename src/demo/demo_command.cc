// SPDX-License-Identifier: Apache-2.0
#include "demo/demo_command.h"

#include <signal.h>

#include <chrono>
#include <iostream>
#include <map>
#include <optional>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/usage.h"
#include "demo/agent_process.h"
#include "demo/narrator.h"
#include "demo/sharing_tour.h"
#include "demo/stand_in_kubelet.h"
#include "demo/stand_in_pod_apis.h"
#include "demo/supervise.h"
#include "sim/driver/node_driver.h"
#include "sim/node.h"

namespace rondo::demo {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr char kGpu[] = "nvidia.com/gpu";
// It takes 11 s. Whoever waits this long sees a fault, not a slow machine.
constexpr std::chrono::minutes kPatience{10};

// `replicas` as text, so that a scene can write a typo.
std::string ConfigText(absl::string_view replicas) {
  return absl::StrCat(
      "version: v1\nsharing:\n  timeSlicing:\n    resources:\n"
      "    - name: nvidia.com/gpu\n      replicas: ",
      replicas, "\n");
}

class Demo {
 public:
  Demo(std::string profile, std::string scratch)
      : profile_(std::move(profile)),
        scratch_(std::move(scratch)),
        config_(scratch_ + "/config.yaml"),
        kubelet_(AgentProcess::DevicePluginDir(scratch_)),
        pod_apis_(scratch_ + "/pod-resources.sock",
                  scratch_ + "/pods-api.sock") {}

  absl::Status Run();

 private:
  absl::Status Start();
  absl::Status Share();
  absl::Status FillUp();
  absl::Status EditLive();
  absl::Status BreakAndMend();
  absl::Status LimitMemory();
  absl::Status ShareTime();

  void Scene(absl::string_view title) { narrator_.Scene(title); }
  void Show(absl::string_view what, absl::string_view result) {
    narrator_.Show(what, result);
  }
  // Waits for the number and shows the change with the time that it took.
  absl::Status ShowAllocatable(absl::string_view what, int count);

  const std::string profile_;
  const std::string scratch_;
  const std::string config_;
  StandInKubelet kubelet_;
  StandInPodApis pod_apis_;
  Narrator narrator_;
  std::optional<sim::Node> node_;
  std::unique_ptr<sim::driver::NodeDriver> driver_;
  std::unique_ptr<AgentProcess> agent_;
  std::optional<SharingTour> tour_;
  int allocatable_ = 0;
  std::vector<std::string> pods_;
};

absl::Status Demo::Run() {
  RONDO_RETURN_IF_ERROR(Start());
  RONDO_RETURN_IF_ERROR(Share());
  RONDO_RETURN_IF_ERROR(FillUp());
  RONDO_RETURN_IF_ERROR(EditLive());
  RONDO_RETURN_IF_ERROR(BreakAndMend());
  RONDO_RETURN_IF_ERROR(LimitMemory());
  RONDO_RETURN_IF_ERROR(ShareTime());
  std::cout << "\nAll of it was measured just now, on a simulated card; "
               "docs/sim-driver.md tells how like a real one it is.\n"
               "Next: `rondo check FILE` with your own config; "
               "deploy/rondo.yaml on a cluster.\n";
  return absl::OkStatus();
}

absl::Status Demo::ShowAllocatable(absl::string_view what, int count) {
  const auto start = steady_clock::now();
  if (!kubelet_.WaitForAllocatable(kGpu, count))
    return absl::DeadlineExceededError(
        absl::StrCat(what, ": allocatable is ",
                     kubelet_.Counts(kGpu).allocatable, ", expected ", count));
  const auto took =
      std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
  Show(what, absl::StrCat("allocatable ", kGpu, ": ", allocatable_, " → ",
                          count, "   (", took.count(), " ms)"));
  allocatable_ = count;
  return absl::OkStatus();
}

absl::Status Demo::Start() {
  RONDO_ASSIGN_OR_RETURN(node_,
                         sim::Node::Create(profile_, scratch_ + "/node"));
  RONDO_ASSIGN_OR_RETURN(driver_, sim::driver::NodeDriver::Start(node_->dir()));
  pod_apis_.ServeHolders(true);
  pod_apis_.ServePods(true);
  tour_.emplace(*node_, *driver_, kubelet_, pod_apis_, narrator_);
  RONDO_RETURN_IF_ERROR(WriteFileAtomically(config_, "version: v1\n"));
  RONDO_RETURN_IF_ERROR(kubelet_.Start());
  std::cout << "On this machine, for a few seconds: a simulated node with "
            << profile_
            << ",\na stand-in kubelet that speaks the real protocol, and "
               "the real `rondo agent`\n(on a cluster, a DaemonSet).\n";
  // The agent finds its libraries by itself; it lacks the driver.
  std::vector<std::string> environment;
  for (const auto& [name, value] : sim::driver::Environment(*node_, "", ""))
    if (name != "LD_LIBRARY_PATH")
      environment.push_back(absl::StrCat(name, "=", value));
  Scene("The agent starts. Nothing is shared yet.");
  RONDO_ASSIGN_OR_RETURN(
      agent_, AgentProcess::Start({.scratch = scratch_,
                                   .nvml_library = node_->library_path(),
                                   .node_root = node_->dir(),
                                   .environment = std::move(environment),
                                   .arguments = {"--config-file=" + config_,
                                                 "--recovery-quiet=300ms"}}));
  return ShowAllocatable("started, registered with kubelet",
                         node_->gpu_count());
}

absl::Status Demo::Share() {
  Scene("The config of any time-slicing tutorial: replicas: 4.");
  RONDO_RETURN_IF_ERROR(WriteFileAtomically(config_, ConfigText("4")));
  return ShowAllocatable("file edited; no restart", 4 * node_->gpu_count());
}

absl::Status Demo::FillUp() {
  Scene(absl::StrCat(allocatable_, " pods ask for one each. Then one more."));
  std::map<std::string, int> pods_on;
  for (int i = 0; i < allocatable_; ++i) {
    pods_.push_back(absl::StrCat("pod-", i));
    const Admission pod = kubelet_.Admit(pods_.back(), {{{kGpu, 1}}});
    if (pod.phase != Admission::Phase::kRunning)
      return absl::InternalError(
          absl::StrCat("pod-", i, ": ", pod.reason, ": ", pod.message));
    ++pods_on[pod.grants.at(0).envs.at("NVIDIA_VISIBLE_DEVICES")];
  }
  std::string spread;
  for (int gpu = 0; gpu < node_->gpu_count(); ++gpu) {
    RONDO_ASSIGN_OR_RETURN(const std::string uuid, node_->Uuid(gpu));
    absl::StrAppend(&spread, gpu > 0 ? " + " : "", pods_on[uuid]);
  }
  Show(absl::StrCat(allocatable_, " Running at the same time"),
       absl::StrCat("pods on each GPU: ", spread));
  const Admission extra = kubelet_.Admit("one-more", {{{kGpu, 1}}});
  if (extra.phase != Admission::Phase::kPending)
    return absl::InternalError("the pod that has no room was admitted");
  Show("one more: Pending", extra.message);
  return absl::OkStatus();
}

absl::Status Demo::EditLive() {
  Scene("The config is edited while they run.");
  RONDO_RETURN_IF_ERROR(WriteFileAtomically(config_, ConfigText("6")));
  RONDO_RETURN_IF_ERROR(ShowAllocatable("replicas: 6", 6 * node_->gpu_count()));
  pods_.emplace_back("one-more");
  const Admission extra = kubelet_.Admit(pods_.back(), {{{kGpu, 1}}});
  if (extra.phase != Admission::Phase::kRunning)
    return absl::InternalError(absl::StrCat("one-more: ", extra.message));
  Show("the pod that waited", "Running");

  RONDO_RETURN_IF_ERROR(WriteFileAtomically(config_, ConfigText("six")));
  RONDO_ASSIGN_OR_RETURN(const std::string line,
                         agent_->NextLineWith("config refused: "));
  // Without the path of a scratch folder.
  const std::string file = config_ + ": ";
  const std::string refused = line.substr(line.find(file) + file.size());
  Show("replicas: six",
       absl::StrCat("refused: ", refused.substr(0, refused.find(';'))));
  if (kubelet_.Counts(kGpu).allocatable != allocatable_)
    return absl::InternalError("a refused config changed the node");
  Show("", absl::StrCat("still ", allocatable_,
                        "; the last good config stays in force"));
  RONDO_RETURN_IF_ERROR(WriteFileAtomically(config_, ConfigText("6")));
  return absl::OkStatus();
}

absl::Status Demo::BreakAndMend() {
  Scene("GPU 0 falls off the bus (the driver reports Xid 79), and is reset.");
  const int per_gpu = allocatable_ / node_->gpu_count();
  RONDO_RETURN_IF_ERROR(node_->Xid(0, 79));
  RONDO_RETURN_IF_ERROR(ShowAllocatable(
      absl::StrCat("its ", per_gpu, " replicas go"), allocatable_ - per_gpu));
  RONDO_RETURN_IF_ERROR(node_->Clear(0));
  RONDO_RETURN_IF_ERROR(ShowAllocatable("after the reset they come back",
                                        allocatable_ + per_gpu));
  std::cout << "\nNo pod was restarted, and neither was the agent.\n";
  return absl::OkStatus();
}

absl::Status Demo::LimitMemory() {
  Scene(
      "Memory: four programs on GPU 0, one of which wants all of it. "
      "(\"Without "
      "Rondo\" is the driver's own time-slicing.)");
  RONDO_RETURN_IF_ERROR(tour_->MemoryWithoutRondo());
  for (const std::string& pod : pods_) kubelet_.Remove(pod);
  RONDO_RETURN_IF_ERROR(WriteFileAtomically(
      config_, ConfigText("4") + "rondo:\n  memory: enforce\n"));
  RONDO_RETURN_IF_ERROR(
      ShowAllocatable("replicas: 4; memory: enforce", 4 * node_->gpu_count()));
  // Pods on all slots but those of GPU 0: there the tour's will run.
  RONDO_ASSIGN_OR_RETURN(const std::string uuid, node_->Uuid(0));
  std::vector<std::string> there;
  for (int i = 0; i < allocatable_; ++i) {
    const std::string name = absl::StrCat("other-", i);
    const Admission pod = kubelet_.Admit(name, {{{kGpu, 1}}});
    if (pod.phase != Admission::Phase::kRunning)
      return absl::InternalError(absl::StrCat(name, ": ", pod.message));
    if (pod.grants.at(0).envs.at("NVIDIA_VISIBLE_DEVICES") == uuid)
      there.push_back(name);
  }
  for (const std::string& pod : there) kubelet_.Remove(pod);
  return tour_->MemoryWithRondo();
}

absl::Status Demo::ShareTime() {
  RONDO_RETURN_IF_ERROR(tour_->Weights());
  RONDO_RETURN_IF_ERROR(tour_->Latency());
  agent_->Signal(SIGTERM);
  const int code = agent_->Wait();
  return code == 0 ? absl::OkStatus()
                   : absl::InternalError(
                         absl::StrCat("the agent exited with ", code));
}

int RunDemo(const std::string& profile, const std::string& scratch) {
  std::cout << std::unitbuf;  // also into a pipe, each line as it happens
  const absl::Status status = Demo(profile, scratch).Run();
  if (!status.ok()) std::cerr << "\nrondo demo: " << status.message() << "\n";
  return ExitCode(status);
}

}  // namespace

int DemoCommand(int argc, char** argv) {
  std::string profile = "4xA100-SXM4-80GB";
  CLI::App app(
      "A tour on a simulated node: sharing, live edits, faults, memory limits, "
      "shares of time. Needs nothing.",
      "rondo demo");
  app.add_option("--profile", profile, "the node's GPUs, as for `rondo sim`")
      ->type_name("PROFILE")
      ->capture_default_str();
  app.footer(kExitHelp);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return ReportParse(app, error, std::cout, std::cerr);
  }
  absl::StatusOr<TempDir> scratch = TempDir::Create("rondo-demo");
  if (scratch.ok())
    return Supervise([&] { return RunDemo(profile, scratch->path()); },
                     kPatience);
  std::cerr << "rondo demo: " << scratch.status().message() << "\n";
  return ExitCode(scratch.status());
}

}  // namespace rondo::demo
