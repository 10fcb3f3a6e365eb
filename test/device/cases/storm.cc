// SPDX-License-Identifier: Apache-2.0
//
// storm: children that allocate, free and launch without end, killed at random
// instants. For each line "N MS SEED" on stdin: starts N, kills each within MS
// milliseconds, prints "killed NS" for each and "dead NS" when all are gone
// (CLOCK_MONOTONIC). The parent never uses the GPU.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <vector>

#include "gpu.h"

namespace {

void Child(unsigned seed, double turns) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  gpu::Gpu gpu;
  gpu.turns_per_us = turns;
  gpu.Context();
  gpu.Kernels();
  std::mt19937 random(seed);
  std::vector<CUdeviceptr> held;
  while (true) {
    CUdeviceptr at = 0;
    const CUresult result =
        CU(cuMemAlloc)(&at, (1 + random() % 64) * gpu::kMiB);
    if (result == CUDA_SUCCESS) held.push_back(at);
    while (!held.empty() && (result != CUDA_SUCCESS || held.size() > 20) &&
           random() % 3) {
      CU(cuMemFree)(held.back());
      held.pop_back();
    }
    if (random() % 8 == 0 && gpu.Spin(500, nullptr) == CUDA_SUCCESS &&
        random() % 8 == 0)
      CU(cuCtxSynchronize)();
  }
}

void SleepUntil(int64_t ns) {
  const timespec t{ns / 1'000'000'000, ns % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  const double turns = gpu::Number(argc, argv, "turns", 1000);
  char line[64];
  while (fgets(line, sizeof(line), stdin)) {
    int count = 0, ms = 0;
    unsigned seed = 0;
    if (sscanf(line, "%d %d %u", &count, &ms, &seed) != 3) return 2;
    std::mt19937 random(seed);
    struct Victim {
      int64_t at_ns;
      pid_t pid;
    };
    std::vector<Victim> victims;
    for (int i = 0; i < count; ++i) {
      const int64_t at = gpu::NowNs() + int64_t(random() % (ms * 1000u)) * 1000;
      const pid_t pid = fork();
      if (pid == 0) Child(seed + i, turns);
      victims.push_back({at, pid});
    }
    std::sort(victims.begin(), victims.end(),
              [](auto& a, auto& b) { return a.at_ns < b.at_ns; });
    int early = 0;
    for (const Victim& victim : victims) {
      SleepUntil(victim.at_ns);
      if (waitpid(victim.pid, nullptr, WNOHANG) != 0) {
        ++early;
        continue;
      }
      printf("killed %ld\n", static_cast<long>(gpu::NowNs()));
      kill(victim.pid, SIGKILL);
    }
    while (wait(nullptr) > 0) {
    }
    printf("dead %ld early %d\n", static_cast<long>(gpu::NowNs()), early);
    fflush(stdout);
  }
  return 0;
}
