// SPDX-License-Identifier: Apache-2.0
//
// The agent on a machine with real NVIDIA GPUs and the stand-in kubelet: the
// same life as in the tests, with the driver's own libnvidia-ml. Changes
// nothing on the card. Usage: agent_on_gpu PATH-OF-RONDO; run by
// test/device/run.

#include <signal.h>

#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"
#include "demo/agent_process.h"
#include "demo/stand_in_kubelet.h"

namespace rondo {
namespace {

constexpr char kGpu[] = "nvidia.com/gpu";

std::string Replicas(int replicas) {
  return absl::StrCat(
      "sharing: {timeSlicing: {resources: [{name: gpu, replicas: ", replicas,
      "}]}}\n");
}

absl::Status Expect(bool holds, absl::string_view what) {
  std::cout << (holds ? "ok      " : "FAILED  ") << what << "\n";
  return holds ? absl::OkStatus() : absl::InternalError(what);
}

absl::Status Run(const std::string& rondo) {
  RONDO_ASSIGN_OR_RETURN(TempDir scratch, TempDir::Create("rondo-device"));
  const std::string config = scratch.path() + "/config";
  RONDO_RETURN_IF_ERROR(WriteFileAtomically(config, Replicas(4)));
  demo::StandInKubelet kubelet(
      demo::AgentProcess::DevicePluginDir(scratch.path()));
  RONDO_RETURN_IF_ERROR(kubelet.Start());
  const auto start = std::chrono::steady_clock::now();
  RONDO_ASSIGN_OR_RETURN(
      auto agent,
      demo::AgentProcess::Start({.executable = rondo,
                                 .scratch = scratch.path(),
                                 .arguments = {"--config-file=" + config}}));
  const bool listed = kubelet.WaitFor(
      kGpu, [](const demo::ResourceCounts& c) { return c.allocatable > 0; },
      std::chrono::minutes(1));
  std::cout << "start to registered: "
            << std::chrono::duration_cast<std::chrono::milliseconds>(
                   std::chrono::steady_clock::now() - start)
                   .count()
            << " ms, NVML's own start included\n";
  RONDO_RETURN_IF_ERROR(Expect(listed, "registered, devices listed"));
  const std::vector<std::string> ids = kubelet.Ids(kGpu, true);
  std::cout << "ids: " << absl::StrJoin(ids, " ") << "\n";
  const int gpus = static_cast<int>(ids.size()) / 4;
  RONDO_RETURN_IF_ERROR(
      Expect(gpus > 0 && ids.size() % 4 == 0, "each GPU is four"));
  for (int i = 0; i < 4 * gpus; ++i) {
    const auto pod = kubelet.Admit(absl::StrCat("pod-", i), {{{kGpu, 1}}});
    if (pod.phase != demo::Admission::Phase::kRunning)
      return Expect(false, absl::StrCat("pod-", i, ": ", pod.message));
    if (i == 0)
      std::cout << "NVIDIA_VISIBLE_DEVICES="
                << pod.grants.at(0).envs.at("NVIDIA_VISIBLE_DEVICES") << "\n";
  }
  RONDO_RETURN_IF_ERROR(Expect(kubelet.Admit("one-more", {{{kGpu, 1}}}).phase ==
                                   demo::Admission::Phase::kPending,
                               "4 pods a GPU admitted, one more is Pending"));
  RONDO_RETURN_IF_ERROR(WriteFileAtomically(config, Replicas(6)));
  RONDO_RETURN_IF_ERROR(Expect(kubelet.WaitForAllocatable(kGpu, 6 * gpus),
                               "live edit: each GPU is six"));
  agent->Signal(SIGTERM);
  return Expect(agent->Wait() == 0, "SIGTERM: exit code 0");
}

}  // namespace
}  // namespace rondo

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: agent_on_gpu PATH-OF-RONDO\n";
    return rondo::kExitUsage;
  }
  const absl::Status status = rondo::Run(argv[1]);
  if (!status.ok()) std::cerr << status.message() << "\n";
  return rondo::ExitCode(status);
}
