// SPDX-License-Identifier: Apache-2.0
//
// cost: what calls of the driver cost, as one line of JSON. --procs N: so many
// processes start at one moment (start and context only, the slowest counts).
// Counts the driver's own system calls as well: its ioctl, mmap and munmap come
// here first, as they would to librondo.so, which is next where it is loaded.
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "gpu.h"

namespace {

std::atomic<uint64_t> calls{0};

template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Start {
  double init_ms, context_ms;
};

Start Begin(gpu::Gpu& gpu) {
  // Finding the library and its symbols is no call of the driver.
  CU(cuInit), CU(cuDeviceGet), CU(cuDevicePrimaryCtxRetain),
      CU(cuCtxSetCurrent);
  const int64_t a = gpu::NowNs();
  MUST(CU(cuInit)(0));
  const int64_t b = gpu::NowNs();
  gpu.Context();
  const int64_t c = gpu::NowNs();
  return {(b - a) / 1e6, (c - b) / 1e6};
}

int Storm(int procs) {
  struct Shared {
    std::atomic<int> here{0}, go{0}, failed{0};
    double ms[256];
  };
  auto& all = *new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared;
  for (int i = 0; i < procs; ++i)
    if (fork() == 0) {
      CU(cuInit);
      ++all.here;
      while (all.go == 0) {
        const timespec t{0, 100'000};
        nanosleep(&t, nullptr);
      }
      const int64_t from = gpu::NowNs();
      gpu::Gpu gpu;
      gpu.Context();
      all.ms[i] = (gpu::NowNs() - from) / 1e6;
      _exit(0);
    }
  while (all.here < procs) {
    const timespec t{0, 100'000};
    nanosleep(&t, nullptr);
  }
  all.go = 1;
  int status = 0, failed = 0;
  while (wait(&status) > 0) failed += status != 0;
  std::vector<double> ms(all.ms, all.ms + procs);
  printf(
      "{\"procs\": %d, \"failed\": %d, \"p50_ms\": %.1f, \"max_ms\": %.1f}\n",
      procs, failed, Median(ms), *std::max_element(ms.begin(), ms.end()));
  return 0;
}

}  // namespace

extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
  static auto* const next = Next<int(int, unsigned long, void*)>("ioctl");
  va_list list;
  va_start(list, request);
  void* const argument = va_arg(list, void*);
  va_end(list);
  ++calls;
  return next(fd, request, argument);
}
extern "C" void* mmap(void* at, size_t size, int protection, int flags, int fd,
                      off_t offset) noexcept {
  static auto* const next = Next<decltype(mmap)>("mmap");
  ++calls;
  return next(at, size, protection, flags, fd, offset);
}
extern "C" int munmap(void* at, size_t size) noexcept {
  static auto* const next = Next<decltype(munmap)>("munmap");
  ++calls;
  return next(at, size);
}

int main(int argc, char** argv) {
  const int procs = gpu::Number(argc, argv, "procs", 0);
  if (procs > 0) return Storm(std::min(procs, 256));
  gpu::Gpu gpu;
  const Start start = Begin(gpu);
  gpu.Kernels();
  std::vector<double> alloc_us, free_us, launch_ns, sync_us;
  std::vector<CUdeviceptr> held(300);
  for (CUdeviceptr& at : held) {
    const int64_t from = gpu::NowNs();
    MUST(CU(cuMemAlloc)(&at, 2 * gpu::kMiB));
    alloc_us.push_back((gpu::NowNs() - from) / 1e3);
  }
  for (CUdeviceptr at : held) {
    const int64_t from = gpu::NowNs();
    MUST(CU(cuMemFree)(at));
    free_us.push_back((gpu::NowNs() - from) / 1e3);
  }
  // Batches below the depth of a channel's queue: what counts is the call.
  const auto launch = [&, call = CU(cuLaunchKernel)] {
    return call(gpu.nothing, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
  };
  const int batches = gpu::Number(argc, argv, "batches", 400);
  launch_ns.reserve(batches);
  uint64_t calls_launching = 0;
  for (int batch = 0; batch < batches; ++batch) {
    const uint64_t calls_before = calls;
    const int64_t from = gpu::NowNs();
    for (int i = 0; i < 250; ++i) launch();
    const int64_t to = gpu::NowNs();
    if (batch >= batches / 10) {
      launch_ns.push_back((to - from) / 250.0);
      calls_launching += calls - calls_before;
    }
    MUST(CU(cuCtxSynchronize)());
  }
  for (int i = 0; i < 2000; ++i) {
    const int64_t from = gpu::NowNs();
    MUST(launch());
    MUST(CU(cuCtxSynchronize)());
    sync_us.push_back((gpu::NowNs() - from) / 1e3);
  }
  printf(
      "{\"init_ms\": %.2f, \"context_ms\": %.2f, \"alloc_us\": %.2f, "
      "\"free_us\": %.2f, \"launch_ns\": %.1f, \"launch_min_ns\": %.1f, "
      "\"sync_us\": %.3f, \"calls_launching\": %lu}\n",
      start.init_ms, start.context_ms, Median(alloc_us), Median(free_us),
      Median(launch_ns), *std::min_element(launch_ns.begin(), launch_ns.end()),
      Median(sync_us), calls_launching);
  return 0;
}
