// SPDX-License-Identifier: Apache-2.0
//
// worker: keeps the GPU busy in one of the ways in which programs launch, or
// serves a request after each pause, and stamps each unit of work when it is
// done.
//   worker --stamps FILE --turns T --kind KIND --kernel-us N --kernels K
//          --depth D --fork N --take MIB --seconds S
//          --think-us N --requests FILE --cpu N
// FILE: u64 count, then the CLOCK_MONOTONIC ns of each unit (a mapped file: it
// can be read any time). With --fork, FILE.0, FILE.1 ... and one process each.
// A unit is K launches, one if not said; with the graph kinds, of 100 kernels
// each. With --think-us a unit is a request, alone under way, and the pause
// follows it; --requests gets six numbers of each, in ns: from the first
// launch to the end, until the last launch returned, when the GPU began (by its
// own clock), from its first kernel to its last, how long this thread waited
// for a processor meanwhile (-1: unknown), and the longest time between two of
// its looks whether the GPU is done: a machine that stands still.
// --cpu: the processor of the thread that launches; others go where they like.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "gpu.h"

namespace {

constexpr int kGraphKernels = 100;
constexpr uint64_t kStamps = 1 << 20;

volatile sig_atomic_t ended = 0;

struct Stamps {
  std::atomic<uint64_t> count;
  int64_t at[kStamps - 1];
};

void Add(Stamps& stamps, int64_t ns) {
  const uint64_t n = stamps.count;
  if (n == kStamps - 1) return;
  stamps.at[n] = ns;
  stamps.count = n + 1;
}

void SleepUntil(int64_t ns) {
  const timespec t{ns / 1'000'000'000, ns % 1'000'000'000};
  // Woken by a signal: the program ends.
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
}

Stamps& Map(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (fd < 0 || ftruncate(fd, sizeof(Stamps)) != 0) {
    perror(path.c_str());
    _Exit(1);
  }
  void* const at =
      mmap(nullptr, sizeof(Stamps), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return *static_cast<Stamps*>(at);
}

// How long this thread has waited for a processor, all in all, in ns.
class RunDelay {
 public:
  int64_t Now() const {
    char text[64] = "";
    long long delay = 0;
    return pread(fd_, text, sizeof(text) - 1, 0) > 0 &&
                   sscanf(text, "%*s %lld", &delay) == 1
               ? delay
               : -1;
  }

 private:
  const int fd_ = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
};

void OnProcessor(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof(one), &one);
}

CUgraphExec Graph(const gpu::Gpu& gpu, double us) {
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec ready = nullptr;
  MUST(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  MUST(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  for (int i = 0; i < kGraphKernels; ++i) MUST(gpu.Spin(us, stream));
  MUST(CU(cuStreamEndCapture)(stream, &graph));
  MUST(CU(cuGraphInstantiateWithFlags)(&ready, graph, 0));
  MUST(CU(cuGraphDestroy)(graph));
  MUST(CU(cuStreamDestroy)(stream));
  return ready;
}

struct Launcher {
  gpu::Gpu gpu;
  std::string kind;
  double us;
  std::vector<CUgraphExec> graphs;
  size_t next = 0;

  void Prepare() {
    const int count = kind == "graph" ? 1 : kind == "graphs300" ? 300 : 0;
    for (int i = 0; i < count; ++i) graphs.push_back(Graph(gpu, us));
    // What runs are the last 40: the ones a table of 256 has no room for.
    if (count > 40) graphs.erase(graphs.begin(), graphs.end() - 40);
  }
  void Launch() {
    auto turns = static_cast<unsigned long long>(us * gpu.turns_per_us + 0.5);
    void* params[] = {&turns};
    if (!graphs.empty()) {
      MUST(CU(cuGraphLaunch)(graphs[next++ % graphs.size()], nullptr));
    } else if (kind == "cooperative") {
      MUST(CU(cuLaunchCooperativeKernel)(
          gpu.spin, gpu.blocks, 1, 1, gpu::kThreads, 1, 1, 0, nullptr, params));
    } else if (kind == "cluster") {
      CUlaunchAttribute attribute{};
      attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      attribute.value.clusterDim.x = 2;
      attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
      CUlaunchConfig config{};
      config.gridDimX = gpu.blocks / 2 * 2;
      config.gridDimY = config.gridDimZ = 1;
      config.blockDimX = gpu::kThreads;
      config.blockDimY = config.blockDimZ = 1;
      config.attrs = &attribute;
      config.numAttrs = 1;
      MUST(CU(cuLaunchKernelEx)(&config, gpu.spin, params, nullptr));
    } else {
      MUST(gpu.Spin(us, nullptr));
    }
  }
};

uint64_t Take(uint64_t wanted, CUresult& result) {
  uint64_t taken = 0;
  result = CUDA_SUCCESS;
  for (CUdeviceptr at; taken < wanted; taken += 2 * gpu::kMiB)
    if (result = CU(cuMemAlloc)(&at, 2 * gpu::kMiB); result != CUDA_SUCCESS)
      break;
  return taken;
}

int Work(int argc, char** argv, const std::string& path) {
  const auto number = [&](const char* name, double other) {
    return gpu::Number(argc, argv, name, other);
  };
  // First, so that whoever finds a stamp finds its request.
  const char* const times = gpu::Option(argc, argv, "requests", nullptr);
  Stamps* const requests = times ? &Map(times) : nullptr;
  Stamps& stamps = Map(path);
  Launcher launcher;
  launcher.kind = gpu::Option(argc, argv, "kind", "plain");
  launcher.us = number("kernel-us", 1000);
  launcher.gpu.turns_per_us = number("turns", 1000);
  launcher.gpu.Context();
  launcher.gpu.Kernels();
  launcher.Prepare();
  CUresult result = CUDA_SUCCESS;
  const uint64_t taken = Take(number("take", 0) * gpu::kMiB, result);
  if (number("take", 0) > 0)
    printf("took %lu %s\n", taken, gpu::Name(result)), fflush(stdout);
  const int64_t think_ns = number("think-us", 0) * 1e3;
  const int kernels = number("kernels", 1);
  const int depth = think_ns > 0 ? 1 : number("depth", 3);
  std::vector<CUevent> events(depth);
  CUevent epoch = nullptr, first = nullptr;
  for (CUevent* event : {&epoch, &first}) MUST(CU(cuEventCreate)(event, 0));
  for (CUevent& event : events) MUST(CU(cuEventCreate)(&event, 0));
  // Now that the driver's threads, and Rondo's, are there.
  if (const int cpu = number("cpu", -1); cpu >= 0) OnProcessor(cpu);
  const RunDelay delay;
  MUST(CU(cuEventRecord)(epoch, nullptr));
  MUST(CU(cuEventSynchronize)(epoch));
  const int64_t end = gpu::NowNs() + int64_t(number("seconds", 60) * 1e9);
  uint64_t launched = 0;
  for (uint64_t done = 0; !ended && gpu::NowNs() < end; ++done) {
    const int64_t delayed = requests ? delay.Now() : 0;
    const int64_t asked = gpu::NowNs();
    if (requests) MUST(CU(cuEventRecord)(first, nullptr));
    for (; launched < done + depth; ++launched) {
      for (int i = 0; i < kernels; ++i) launcher.Launch();
      MUST(CU(cuEventRecord)(events[launched % depth], nullptr));
    }
    const int64_t sent = gpu::NowNs();
    int64_t now = sent, stall = 0;
    if (requests) {
      for (CUresult state = CUDA_ERROR_NOT_READY;
           state == CUDA_ERROR_NOT_READY;) {
        state = CU(cuEventQuery)(events[done % depth]);
        if (state != CUDA_ERROR_NOT_READY) MUST(state);
        stall = std::max(stall, gpu::NowNs() - now);
        now = gpu::NowNs();
      }
      float begin_ms = 0, ms = 0;
      MUST(CU(cuEventElapsedTime)(&begin_ms, epoch, first));
      MUST(CU(cuEventElapsedTime)(&ms, first, events[done % depth]));
      const int64_t after = delay.Now();
      Add(*requests, now - asked);
      Add(*requests, sent - asked);
      Add(*requests, static_cast<int64_t>(begin_ms * 1e6));
      Add(*requests, static_cast<int64_t>(ms * 1e6));
      Add(*requests, after < 0 ? -1 : after - delayed);
      Add(*requests, stall);
    } else {
      MUST(CU(cuEventSynchronize)(events[done % depth]));
      now = gpu::NowNs();
    }
    Add(stamps, now);
    if (think_ns > 0) SleepUntil(now + think_ns);
  }
  MUST(CU(cuCtxSynchronize)());
  printf("done %lu\n", stamps.count.load());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // No SA_RESTART: the parent of --fork must come out of its wait.
  struct sigaction action {};
  action.sa_handler = [](int) { ended = 1; };
  sigaction(SIGTERM, &action, nullptr);
  const std::string path = gpu::Option(argc, argv, "stamps", "/dev/null");
  const int forks = gpu::Number(argc, argv, "fork", 0);
  if (forks == 0) return Work(argc, argv, path);
  std::vector<pid_t> pids;
  for (int i = 0; i < forks; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int code = Work(argc, argv, path + "." + std::to_string(i));
      fflush(stdout);
      _Exit(code);
    }
    pids.push_back(pid);
  }
  int worst = 0, status = 0;
  for (size_t left = pids.size(); left > 0;) {
    const pid_t pid = waitpid(-1, &status, 0);
    if (pid < 0 && ended)
      for (pid_t p : pids) kill(p, SIGTERM);
    if (pid < 0) continue;
    --left;
    if (status != 0) worst = 1;
  }
  return worst;
}
