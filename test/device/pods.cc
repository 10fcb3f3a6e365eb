// SPDX-License-Identifier: Apache-2.0
#include "pods.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "demo/container.h"

namespace rondo::device {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr char kGpu[] = "nvidia.com/gpu";
// An agent that a machine holds up for longer is not in time for its turns.
constexpr milliseconds kLongestStall{40};

bool OnSimulatedNode() { return getenv("RONDO_SIM_STATE") != nullptr; }

std::vector<std::string> Machine() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry)
    environment.emplace_back(*entry);
  return environment;
}

// What an agent on a simulated node needs beside its own variables: below
// `rondo sim` they are set, on a real one there are none.
std::vector<std::string> SimulatedNode() {
  std::vector<std::string> environment;
  if (!OnSimulatedNode()) return environment;
  for (const std::string& entry : Machine())
    if (absl::StartsWith(entry, "RONDO_") ||
        absl::StartsWith(entry, "LD_PRELOAD="))
      environment.push_back(entry);
  return environment;
}

absl::StatusOr<std::string> HttpGet(int port, const std::string& path) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{.tv_sec = 5, .tv_usec = 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string request = absl::StrCat(
      "GET ", path, " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address),
              sizeof(address)) != 0 ||
      write(fd.get(), request.data(), request.size()) !=
          static_cast<ssize_t>(request.size()))
    return ErrnoStatus("ask the agent");
  std::string answer;
  char buffer[16384];
  ssize_t n;
  while ((n = read(fd.get(), buffer, sizeof(buffer))) > 0)
    answer.append(buffer, static_cast<size_t>(n));
  const size_t body = answer.find("\r\n\r\n");
  if (n < 0 || body == std::string::npos)
    return absl::UnavailableError("the agent does not answer");
  return answer.substr(body + 4);
}

}  // namespace

int Pod::Ordinal(const std::string& gpu) const {
  return static_cast<int>(std::find(gpus.begin(), gpus.end(), gpu) -
                          gpus.begin());
}

std::string Pod::SlotOn(const std::string& gpu) const {
  for (const std::string& id : grant.device_ids)
    if (absl::StartsWith(id, gpu + "::")) return id;
  return "";
}

Pods::Pods(std::string rondo, std::string scratch)
    : rondo_(std::move(rondo)),
      scratch_(std::move(scratch)),
      config_(scratch_ + "/config"),
      kubelet_(demo::AgentProcess::DevicePluginDir(scratch_)),
      pod_apis_(scratch_ + "/pod-resources.sock", scratch_ + "/pods-api.sock") {
}

absl::Status Pods::WriteConfig(const std::string& memory) {
  return WriteFileAtomically(
      config_, absl::StrCat("version: v1\nsharing:\n  timeSlicing:\n"
                            "    resources:\n    - name: nvidia.com/gpu\n"
                            "      replicas: ",
                            kReplicas, "\nrondo: {memory: ", memory, "}\n"));
}

absl::Status Pods::Start() {
  RONDO_ASSIGN_OR_RETURN(const Tenant alone, Run(nullptr, "--seconds 0"));
  RONDO_RETURN_IF_ERROR(RunAll({&alone}));
  turns_ = absl::StrCat(alone->Number("turns_per_us"));
  RONDO_RETURN_IF_ERROR(WriteConfig("enforce"));
  pod_apis_.ServeHolders(true);
  pod_apis_.ServePods(true);
  RONDO_RETURN_IF_ERROR(kubelet_.Start());
  RONDO_RETURN_IF_ERROR(StartAgent());
  RONDO_ASSIGN_OR_RETURN(const json node, Node());
  for (const json& gpu : node["gpus"])
    gpus_.push_back(gpu["uuid"].get<std::string>());
  card_bytes_ = node["gpus"][0]["memoryBytes"].get<double>();
  return absl::OkStatus();
}

absl::Status Pods::StartAgent() {
  agent_.reset();
  const int before = kubelet_.Counts(kGpu).registrations;
  RONDO_ASSIGN_OR_RETURN(
      agent_,
      demo::AgentProcess::Start({.executable = rondo_,
                                 .scratch = scratch_,
                                 .environment = SimulatedNode(),
                                 .arguments = {"--config-file=" + config_}}));
  RONDO_ASSIGN_OR_RETURN(const std::string line,
                         agent_->NextLineWith("listening on 127.0.0.1:"));
  port_ = line.substr(line.rfind(':') + 1);
  const auto registered = [&](const demo::ResourceCounts& counts) {
    return counts.registrations > before && counts.allocatable > 0;
  };
  return kubelet_.WaitFor(kGpu, registered, milliseconds(20'000))
             ? absl::OkStatus()
             : absl::DeadlineExceededError("the agent does not register");
}

absl::StatusOr<Pod> Pods::Place(const Annotations& annotations,
                                const std::set<std::string>& gpus) {
  Pod pod;
  std::vector<std::string> elsewhere;
  // The plugin chooses the GPU. Pods that got others are ended afterwards.
  while (true) {
    pod.name = absl::StrCat("pod-", ++last_pod_);
    const demo::Admission admission =
        kubelet_.Admit(pod.name, {{{kGpu, static_cast<int>(gpus.size())}}});
    if (admission.phase != demo::Admission::Phase::kRunning)
      return absl::InternalError(
          absl::StrCat(pod.name, ": ", admission.message));
    pod.grant = admission.grants.at(0);
    pod.gpus = absl::StrSplit(pod.grant.envs.at("NVIDIA_VISIBLE_DEVICES"), ',');
    if (std::set<std::string>(pod.gpus.begin(), pod.gpus.end()) == gpus) break;
    elsewhere.push_back(pod.name);
  }
  for (const std::string& name : elsewhere) kubelet_.Remove(name);
  pod_apis_.SetPod(pod.name, annotations);
  pod_apis_.Hold(pod.name, pod.grant.device_ids);
  pods_.push_back(pod.name);
  return pod;
}

void Pods::Annotate(const Pod& pod, const Annotations& annotations) {
  pod_apis_.SetPod(pod.name, annotations);
}

absl::StatusOr<Tenant> Pods::Run(const Pod* pod, const std::string& options) {
  std::vector<std::string> environment = Machine();
  if (pod != nullptr) {
    RONDO_ASSIGN_OR_RETURN(environment,
                           demo::ContainerEnvironment(pod->grant, environment));
  }
  std::vector<std::string> words = {rondo_, "sim-tenant", "--wait", "--turns",
                                    turns_};
  for (absl::string_view word : absl::StrSplit(options, ' ', absl::SkipEmpty()))
    words.emplace_back(word);
  RONDO_ASSIGN_OR_RETURN(Tenant tenant,
                         sim::driver::TenantProcess::Start(words, environment));
  RONDO_RETURN_IF_ERROR(tenant->AwaitReady());
  return tenant;
}

void Pods::EndPods() {
  for (const std::string& name : pods_) {
    kubelet_.Remove(name);
    pod_apis_.Remove(name);
  }
  pods_.clear();
}

absl::StatusOr<json> Pods::Node() {
  int port = 0;
  if (!absl::SimpleAtoi(port_, &port))
    return absl::InternalError("no port of the agent");
  RONDO_ASSIGN_OR_RETURN(const std::string body, HttpGet(port, "/api/v1/node"));
  const json node = json::parse(body, nullptr, false);
  if (!node.is_object() || !node.contains("sharing"))
    return absl::InternalError(absl::StrCat("/api/v1/node: ", body));
  return node;
}

json Pods::Slot(const json& node, const std::string& slot) {
  for (const json& found : node["sharing"]["slots"])
    if (found["slot"] == slot) return found;
  return nullptr;
}

absl::StatusOr<json> Pods::Slot(const Pod& pod) {
  RONDO_ASSIGN_OR_RETURN(const json node, Node());
  const json slot = Slot(node, pod.grant.device_ids.at(0));
  if (slot.is_null())
    return absl::NotFoundError(absl::StrCat("no slot of ", pod.name));
  return slot;
}

absl::StatusOr<double> Pods::Until(
    const std::string& what, const std::function<bool(const json&)>& holds,
    milliseconds deadline) {
  const auto begin = steady_clock::now();
  while (true) {
    RONDO_ASSIGN_OR_RETURN(const json node, Node());
    const auto now = steady_clock::now();
    if (holds(node)) return std::chrono::duration<double>(now - begin).count();
    if (now - begin > deadline)
      return absl::DeadlineExceededError(
          absl::StrCat("after ", deadline.count(), " ms not yet: ", what, ": ",
                       node["sharing"]["slots"].dump()));
    poll(nullptr, 0, 5);  // nothing tells of it: the agent is asked again
  }
}

void Pods::Say(bool ok, const std::string& claim, const std::string& numbers) {
  ++(ok ? ok_ : failed_);
  std::cout << (ok ? "ok      " : "FAILED  ") << claim << ": " << numbers
            << std::endl;
}

void Pods::SayInTime(bool ok, const std::string& claim,
                     const std::string& numbers) {
  held_up_ = std::max(held_up_, stalls_.TakeLongest());
  if (ok || !OnSimulatedNode() || held_up_ <= kLongestStall)
    return Say(ok, claim, numbers);
  unjudged_ = true;
  std::cout << "unjudged " << claim << ": " << numbers
            << absl::StrFormat("; the machine held us up for %d ms",
                               held_up_ / milliseconds(1))
            << std::endl;
}

void Pods::BeginCase() {
  stalls_.TakeLongest();
  held_up_ = {};
  unjudged_ = false;
}

absl::Status RunAll(const std::vector<const Tenant*>& tenants) {
  for (const Tenant* tenant : tenants)
    RONDO_RETURN_IF_ERROR((*tenant)->Begin());
  for (const Tenant* tenant : tenants)
    RONDO_RETURN_IF_ERROR((*tenant)->Finish());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> Shares(
    const std::vector<const Tenant*>& tenants, double seconds,
    double request_us) {
  std::vector<Progress> begin;
  for (const Tenant* tenant : tenants) {
    RONDO_ASSIGN_OR_RETURN(const Progress progress, (*tenant)->NextProgress());
    begin.push_back(progress);
  }
  RONDO_RETURN_IF_ERROR(Pass(*tenants[0], seconds));
  std::vector<double> shares;
  for (size_t i = 0; i < tenants.size(); ++i) {
    RONDO_ASSIGN_OR_RETURN(const Progress end, (*tenants[i])->NextProgress());
    shares.push_back((end.requests - begin[i].requests) * request_us / 1e6 /
                     (end.seconds - begin[i].seconds));
  }
  return shares;
}

absl::Status Pass(const Tenant& tenant, double seconds) {
  RONDO_ASSIGN_OR_RETURN(Progress now, tenant->NextProgress());
  const double end = now.seconds + seconds;
  while (now.seconds < end) {
    RONDO_ASSIGN_OR_RETURN(now, tenant->NextProgress());
  }
  return absl::OkStatus();
}

}  // namespace rondo::device
