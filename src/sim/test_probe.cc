// SPDX-License-Identifier: Apache-2.0
//
// A program as users run them on a node: it loads libnvidia-ml.so.1 by name.
//   test_probe           prints "<index> <uuid> <name>" of each GPU
//   test_probe wait      prints "ready", then "<xid> <uuid>" of the next event
//   test_probe signal    prints "ready", then exits 42 at SIGTERM

#include <signal.h>

#include <iostream>

#include "absl/strings/string_view.h"
#include "nvml/library.h"
#include "nvml/real.h"

namespace {

int List(rondo::nvml::Real& nvml) {
  const auto gpus = nvml.ListGpus();
  for (const auto& gpu : *gpus) {
    if (gpu.ok())
      std::cout << gpu->index << " " << gpu->uuid << " " << gpu->name << "\n";
    else
      std::cout << gpu.status().message() << "\n";
  }
  return 0;
}

int Wait(rondo::nvml::Real& nvml) {
  const auto gpus = nvml.ListGpus();
  for (const auto& gpu : *gpus)
    if (!nvml.RegisterXidEvents(gpu->uuid).ok()) return 3;
  std::cout << "ready" << std::endl;
  const auto event = nvml.WaitForEvent(std::chrono::seconds(60));
  if (!event.ok() || !event->has_value()) return 4;
  std::cout << (*event)->xid << " " << (*event)->uuid << std::endl;
  return 0;
}

int AwaitSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  std::cout << "ready" << std::endl;
  int signal = 0;
  sigwait(&set, &signal);
  return 42;
}

}  // namespace

int main(int argc, char** argv) {
  const absl::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "signal") return AwaitSignal();
  auto nvml = rondo::nvml::Real::Load(rondo::nvml::FindLibrary(""));
  if (!nvml.ok()) {
    std::cerr << nvml.status().message() << "\n";
    return 1;
  }
  return mode == "wait" ? Wait(**nvml) : List(**nvml);
}
