// SPDX-License-Identifier: Apache-2.0
//
// accounts ID: one case of allocation or of answers, named as in
// docs/device-cases.md. Prints "= TEXT" lines, which must be the same on the
// stock driver, and at most one "RESULT 0|1 TEXT", judged here. "HOLD": stands
// still until a line on stdin, so that others can look.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gpu.h"

namespace {

using gpu::kMiB;

void Result(bool ok, const char* format, ...) {
  printf("RESULT %d ", ok);
  va_list list;
  va_start(list, format);
  vprintf(format, list);
  va_end(list);
  printf("\n");
  fflush(stdout);
}

void Hold() {
  printf("HOLD\n");
  fflush(stdout);
  char line[16];
  if (fgets(line, sizeof(line), stdin) == nullptr) _Exit(0);
}

uint64_t Used() {
  size_t free = 0, total = 0;
  MUST(CU(cuMemGetInfo)(&free, &total));
  return total - free;
}

CUmemAllocationProp DeviceMemory() {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return prop;
}

// A pool of one's own, past the limit; then free.
void B1() {
  gpu::Gpu().Context();
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemoryPool pool = nullptr;
  MUST(CU(cuMemPoolCreate)(&pool, &props));
  std::vector<CUdeviceptr> held;
  CUdeviceptr at = 0;
  CUresult result;
  while ((result = CU(cuMemAllocFromPoolAsync)(&at, 64 * kMiB, pool,
                                               nullptr)) == CUDA_SUCCESS &&
         held.size() < 1000)
    held.push_back(at);
  const size_t count = held.size();
  bool freed = true;
  for (CUdeviceptr p : held)
    freed &= CU(cuMemFreeAsync)(p, nullptr) == CUDA_SUCCESS;
  const CUresult sync = CU(cuCtxSynchronize)();
  const bool again = CU(cuMemAllocFromPoolAsync)(&at, 64 * kMiB, pool,
                                                 nullptr) == CUDA_SUCCESS;
  Result(
      result == CUDA_ERROR_OUT_OF_MEMORY && count >= 50 && count < 57 &&
          freed && sync == CUDA_SUCCESS && again,
      "pool: %zu MiB of 4096 less a context, then %s; frees fine %d, sync %s, "
      "goes on %d",
      count * 64, gpu::Name(result), freed, gpu::Name(sync), again);
}

// cuMemFree of what cuMemAllocAsync gave.
void B2() {
  gpu::Gpu gpu;
  gpu.Context();
  CUmemoryPool pool = nullptr;
  MUST(CU(cuDeviceGetDefaultMemPool)(&pool, gpu.device));
  const auto round = [&] {
    CUdeviceptr at = 0;
    MUST(CU(cuMemAllocAsync)(&at, 256 * kMiB, nullptr));
    MUST(CU(cuCtxSynchronize)());
    const CUresult freed = CU(cuMemFree)(at);
    MUST(CU(cuCtxSynchronize)());
    MUST(CU(cuMemPoolTrimTo)(pool, 0));
    return freed;
  };
  round();
  const uint64_t before = Used();
  const CUresult freed = round();
  Result(freed == CUDA_SUCCESS && Used() == before,
         "free %s; used before %lu, after %lu", gpu::Name(freed), before,
         Used());
}

// Host memory by cuMemCreate, before any context.
void B5() {
  MUST(CU(cuInit)(0));
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  CUmemGenericAllocationHandle handle = 0;
  const CUresult early = CU(cuMemCreate)(&handle, 512 * kMiB, &prop, 0);
  printf("= before a context: %s\n", gpu::Name(early));
  gpu::Gpu().Context();
  if (early != CUDA_SUCCESS)
    printf("= with a context: %s\n",
           gpu::Name(CU(cuMemCreate)(&handle, 512 * kMiB, &prop, 0)));
  const uint64_t with = Used();
  printf("= release: %s\n", gpu::Name(CU(cuMemRelease)(handle)));
  Result(with == Used(), "used with host memory %lu, without %lu", with,
         Used());
}

// Two processes of one slot, one after the other and at once.
void B6() {
  int to[2][2], from[2][2];
  pid_t pids[2];
  for (int i = 0; i < 2; ++i) {
    if (pipe(to[i]) || pipe(from[i])) _Exit(1);
    pids[i] = fork();
    if (pids[i] != 0) continue;
    gpu::Gpu gpu;
    char word;
    uint64_t told[2] = {};
    CUdeviceptr at = 0;
    while (read(to[i][0], &word, 1) == 1 && word != 'q') {
      if (word == 'c') gpu.Context();
      if (word == 'a') MUST(CU(cuMemAlloc)(&at, 512 * kMiB));
      size_t free = 0, total = 0;
      MUST(CU(cuMemGetInfo)(&free, &total));
      told[0] = free, told[1] = total;
      if (write(from[i][1], told, sizeof(told)) < 0) break;
    }
    _Exit(0);
  }
  const auto ask = [&](int i, char word) {
    uint64_t told[2] = {};
    if (write(to[i][1], &word, 1) != 1 ||
        read(from[i][0], told, sizeof(told)) != sizeof(told))
      _Exit(1);
    return told[1] - told[0];
  };
  const uint64_t one = ask(0, 'c');
  const uint64_t one_more = ask(0, 'a');
  const uint64_t two = ask(1, 'c');
  const uint64_t both = ask(1, 'a');
  const uint64_t same = ask(0, 's');
  if (write(to[0][1], "q", 1) != 1) _Exit(1);
  waitpid(pids[0], nullptr, 0);
  // The agent hears of the end from the socket: at most some milliseconds.
  uint64_t left = 0;
  const int64_t end = gpu::NowNs() + 1'000'000'000;
  do left = ask(1, 's');
  while (left > both - one_more && gpu::NowNs() < end);
  if (write(to[1][1], "q", 1) != 1) _Exit(1);
  waitpid(pids[1], nullptr, 0);
  Result(one > 0 && one_more - one == 512 * kMiB && two > one_more &&
             both - two == 512 * kMiB && both == same &&
             left == both - one_more,
         "used: %lu, %lu; with a second process %lu, %lu (first sees %lu); "
         "first gone %lu",
         one, one_more, two, both, same, left);
}

// 8 threads, plain and stream-ordered, mixed.
void B7() {
  gpu::Gpu gpu;
  gpu.Context();
  CUmemoryPool pool = nullptr;
  MUST(CU(cuDeviceGetDefaultMemPool)(&pool, gpu.device));
  std::atomic<uint64_t> wrong{0}, calls{0}, denied{0};
  size_t ignored = 0, limit = 0;
  MUST(CU(cuMemGetInfo)(&ignored, &limit));
  const auto churn = [&](int index, double seconds) {
    MUST(CU(cuCtxSetCurrent)(gpu.context));
    CUstream stream = nullptr;
    MUST(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    std::mt19937 random(index);
    std::vector<std::pair<CUdeviceptr, bool>> held;
    const auto drop = [&] {
      const auto [at, async] = held.back();
      held.pop_back();
      if ((async ? CU(cuMemFreeAsync)(at, stream) : CU(cuMemFree)(at)) !=
          CUDA_SUCCESS)
        ++wrong;
    };
    const int64_t end = gpu::NowNs() + int64_t(seconds * 1e9);
    while (gpu::NowNs() < end) {
      const bool async = random() % 2;
      const size_t bytes = (1 + random() % 40'000) * 1024;
      CUdeviceptr at = 0;
      const CUresult result = async ? CU(cuMemAllocAsync)(&at, bytes, stream)
                                    : CU(cuMemAlloc)(&at, bytes);
      ++calls;
      if (result == CUDA_SUCCESS)
        held.push_back({at, async});
      else if (result == CUDA_ERROR_OUT_OF_MEMORY)
        ++denied;
      else
        ++wrong;
      while (!held.empty() && (held.size() > 10 || random() % 2)) drop();
      size_t free = 0, total = 0;
      if (CU(cuMemGetInfo)(&free, &total) != CUDA_SUCCESS || free > total ||
          total != limit)
        ++wrong;
    }
    while (!held.empty()) drop();
    MUST(CU(cuStreamSynchronize)(stream));
    MUST(CU(cuStreamDestroy)(stream));
  };
  const auto all = [&](double seconds) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back(churn, i, seconds);
    for (auto& thread : threads) thread.join();
    MUST(CU(cuCtxSynchronize)());
    MUST(CU(cuMemPoolTrimTo)(pool, 0));
  };
  all(0.3);
  const uint64_t before = Used();
  all(2);
  Result(wrong == 0 && calls > 200 && Used() <= before,
         "%lu calls, %lu denied, %lu wrong; used before %lu, after %lu",
         calls.load(), denied.load(), wrong.load(), before, Used());
  Hold();
}

// Null where an answer is wanted: in a child, as the driver itself may fault.
void B10() {
  for (int which = 0; which < 2; ++which) {
    const pid_t pid = fork();
    if (pid == 0) {
      gpu::Gpu().Context();
      size_t value = 0;
      _Exit(which ? CU(cuMemGetInfo)(&value, nullptr)
                  : CU(cuMemGetInfo)(nullptr, &value));
    }
    int status = 0;
    waitpid(pid, &status, 0);
    printf("= %s: %s %d\n", which ? "free alone" : "total alone",
           WIFEXITED(status) ? "code" : "signal",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
  }
}

void B11() {
  gpu::Gpu().Context();
  CUdeviceptr at = 0;
  MUST(CU(cuMemAllocManaged)(&at, 64 * kMiB, CU_MEM_ATTACH_GLOBAL));
  unsigned managed = 7, again = 7, kind = 7;
  printf("= one: %s, managed %u\n",
         gpu::Name(CU(cuPointerGetAttribute)(
             &managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at)),
         managed);
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
  void* values[] = {&again, &kind};
  const CUresult result = CU(cuPointerGetAttributes)(2, names, values, at);
  printf("= several: %s, managed %u, kind %u\n", gpu::Name(result), again,
         kind);
  printf("= free: %s\n", gpu::Name(CU(cuMemFree)(at)));
}

// Memory that no cuMemAlloc asked for: an array, a module's variable, the heap.
void B14() {
  gpu::Gpu().Context();
  const uint64_t context = Used();
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = 1024, shape.Height = 1024, shape.Depth = 256;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 4;  // 4 GiB
  CUarray array = nullptr;
  const CUresult big = CU(cuArray3DCreate)(&array, &shape);
  shape.Depth = 16;  // 256 MiB
  const CUresult small = CU(cuArray3DCreate)(&array, &shape);
  const uint64_t with_array = Used();
  const char* const text =
      ".version 7.0\n.target sm_70\n.address_size 64\n"
      ".visible .global .align 16 .b8 big[1073741824];\n"
      ".visible .entry touch() { .reg .u64 %a; mov.u64 %a, big; "
      ".reg .u32 %v; mov.u32 %v, 1; st.global.u8 [%a], %v; ret; }\n";
  CUmodule module = nullptr, second = nullptr;
  CUdeviceptr at = 0;
  size_t bytes = 0;
  CUresult load = CU(cuModuleLoadData)(&module, text);
  if (load == CUDA_SUCCESS)
    load = CU(cuModuleGetGlobal)(&at, &bytes, module, "big");
  const uint64_t with_module = Used();
  CUresult more = CU(cuModuleLoadData)(&second, text);
  if (more == CUDA_SUCCESS)
    more = CU(cuModuleGetGlobal)(&at, &bytes, second, "big");
  const CUresult heap = CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 64 * kMiB);
  Result(big == CUDA_ERROR_OUT_OF_MEMORY && small == CUDA_SUCCESS &&
             with_array - context >= 256 * kMiB && load == CUDA_SUCCESS &&
             with_module - with_array >= 1024 * kMiB && more != CUDA_SUCCESS,
         "limit 2 GiB: array of 4 GiB %s; of 256 MiB %s, used +%lu MiB; "
         "module with 1 GiB %s, used +%lu MiB; a second %s; heap %s",
         gpu::Name(big), gpu::Name(small), (with_array - context) / kMiB,
         gpu::Name(load), (with_module - with_array) / kMiB, gpu::Name(more),
         gpu::Name(heap));
  Hold();
}

// Out of memory is exactly that, by every way; and smaller ones go on.
void B16() {
  gpu::Gpu gpu;
  gpu.Context();
  constexpr size_t kBig = 400ull << 30;  // above any card, and any limit
  CUdeviceptr at = 0;
  size_t pitch = 0;
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp prop = DeviceMemory();
  const size_t sizes[] = {kBig, 8ull << 30};
  for (int i = 0; i < 2; ++i) {
    const CUresult results[] = {
        CU(cuMemAlloc)(&at, sizes[i]),
        CU(cuMemAllocPitch)(&at, &pitch, 1 << 20, sizes[i] >> 20, 4),
        CU(cuMemAllocAsync)(&at, sizes[i], nullptr),
        CU(cuMemCreate)(&handle, sizes[i], &prop, 0)};
    bool exact = true;
    std::string all;
    for (CUresult result : results) {
      exact &= result == CUDA_ERROR_OUT_OF_MEMORY;
      all += std::string(" ") + gpu::Name(result);
    }
    if (i == 0)
      printf("=%s\n", all.c_str());
    else
      Result(exact && CU(cuMemAlloc)(&at, 64 * kMiB) == CUDA_SUCCESS,
             "limit 4 GiB, 8 GiB each:%s", all.c_str());
  }
}

// Which function stands behind a name depends on the version asked for.
void C9() {
  MUST(CU(cuInit)(0));
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  std::map<void*, std::string> names;
  for (const char* name :
       {"cuCtxCreate", "cuCtxCreate_v2", "cuCtxCreate_v3", "cuCtxCreate_v4",
        "cuMemAlloc", "cuMemAlloc_v2", "cuLaunchKernel", "cuLaunchKernel_ptsz"})
    if (void* at = dlsym(library, name)) names[at] = name;
  for (const char* name : {"cuCtxCreate", "cuMemAlloc", "cuLaunchKernel"})
    for (int version : {2000, 4000, 11040, 12000, 12050, 13000})
      for (unsigned flags : {1u, 2u}) {
        void* at = nullptr;
        CUdriverProcAddressQueryResult how{};
        const CUresult result =
            CU(cuGetProcAddress)(name, &at, version, flags, &how);
        printf("= %s %d %u: %s %d %s\n", name, version, flags,
               gpu::Name(result), how,
               at == nullptr     ? "-"
               : names.count(at) ? names[at].c_str()
                                 : "another");
      }
  CUcontext context = nullptr;
  void* at = nullptr;
  CUdriverProcAddressQueryResult how{};
  MUST(CU(cuGetProcAddress)("cuCtxCreate", &at, 4000, 1, &how));
  MUST(reinterpret_cast<CUresult (*)(CUcontext*, unsigned, CUdevice)>(at)(
      &context, 0, 0));
  CUdeviceptr memory = 0;
  printf("= allocates: %s\n", gpu::Name(CU(cuMemAlloc)(&memory, 16 * kMiB)));
}

void C15() {
  int count = -1;
  printf("= init %s\n", gpu::Name(CU(cuInit)(0)));
  printf("= count %s %d\n", gpu::Name(CU(cuDeviceGetCount)(&count)), count);
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> cases = {
      {"B1", B1},   {"B2", B2},   {"B5", B5},   {"B6", B6},
      {"B7", B7},   {"B10", B10}, {"B11", B11}, {"B14", B14},
      {"B16", B16}, {"C9", C9},   {"C15", C15}};
  const auto found = cases.find(argc > 1 ? argv[1] : "");
  if (found == cases.end()) return 2;
  setvbuf(stdout, nullptr, _IOLBF, 0);
  found->second();
  return 0;
}
