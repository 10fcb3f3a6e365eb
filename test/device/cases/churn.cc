// SPDX-License-Identifier: Apache-2.0
//
// churn: many processes that allocate and free at once, stopped at marks.
//   churn --procs N --allocations M --rounds R --least-kib A --most-mib B
// After each round all stand still and "round K tried T got G denied D errors E
// held BYTES peak BYTES" is printed; the next begins at a line on stdin. The
// peak is of what is certainly held at one instant: added after an allocation,
// taken off before a free.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <vector>

#include "gpu.h"

namespace {

struct Shared {
  std::atomic<int> round{0}, arrived{0};
  std::atomic<uint64_t> tried{0}, got{0}, denied{0}, errors{0}, held{0},
      peak{0};
};

void Pause() {
  const timespec t{0, 200'000};
  nanosleep(&t, nullptr);
}

void Child(Shared& all, int index, int rounds, int count, uint64_t least,
           uint64_t most) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  gpu::Gpu gpu;
  gpu.Context();
  std::mt19937_64 random(index * 7919 + 17);
  struct Block {
    CUdeviceptr at;
    uint64_t bytes;
  };
  std::vector<Block> blocks;
  for (int round = 1; round <= rounds; ++round) {
    ++all.arrived;
    while (all.round.load() < round) Pause();
    for (int i = 0; i < count; ++i) {
      // Small ones are as likely as large ones of each order of size.
      const double exponent = std::uniform_real_distribution<>(0, 1)(random);
      const auto bytes = static_cast<uint64_t>(
          least * __builtin_pow(double(most) / least, exponent));
      CUdeviceptr at = 0;
      const CUresult result = CU(cuMemAlloc)(&at, bytes);
      ++all.tried;
      if (result == CUDA_SUCCESS) {
        ++all.got;
        const uint64_t now = all.held.fetch_add(bytes) + bytes;
        for (uint64_t peak = all.peak;
             now > peak && !all.peak.compare_exchange_weak(peak, now);) {
        }
        blocks.push_back({at, bytes});
      } else if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        ++all.denied;
      } else {
        ++all.errors;
        fprintf(stderr, "cuMemAlloc: %s\n", gpu::Name(result));
      }
      const bool full = result == CUDA_ERROR_OUT_OF_MEMORY;
      while (!blocks.empty() && (full ? random() % 2 : random() % 4 == 0)) {
        const size_t victim = random() % blocks.size();
        all.held -= blocks[victim].bytes;
        if (CU(cuMemFree)(blocks[victim].at) != CUDA_SUCCESS) ++all.errors;
        blocks[victim] = blocks.back();
        blocks.pop_back();
      }
    }
  }
  ++all.arrived;
  while (true) pause();
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](const char* name, double other) {
    return gpu::Number(argc, argv, name, other);
  };
  const int procs = number("procs", 16), rounds = number("rounds", 10);
  const int count = number("allocations", 10'000) / procs / rounds + 1;
  auto& all = *new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared;
  std::vector<pid_t> pids;
  for (int i = 0; i < procs; ++i) {
    const pid_t pid = fork();
    if (pid == 0)
      Child(all, i, rounds, count, number("least-kib", 64) * 1024,
            number("most-mib", 96) * gpu::kMiB);
    pids.push_back(pid);
  }
  // Everybody arrives before each round and once after the last.
  for (int round = 0; round <= rounds; ++round) {
    while (all.arrived.load() < procs * (round + 1)) {
      for (pid_t pid : pids)
        if (waitpid(pid, nullptr, WNOHANG) == pid) {
          printf("ERROR process %d ended\n", pid);
          return 1;
        }
      Pause();
    }
    printf(
        "round %d tried %lu got %lu denied %lu errors %lu held %lu peak %lu\n",
        round, all.tried.load(), all.got.load(), all.denied.load(),
        all.errors.load(), all.held.load(), all.peak.load());
    fflush(stdout);
    char line[16];
    if (fgets(line, sizeof(line), stdin) == nullptr) break;
    all.round = round + 1;
  }
  for (pid_t pid : pids) kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
  return 0;
}
