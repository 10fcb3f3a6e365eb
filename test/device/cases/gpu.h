// SPDX-License-Identifier: Apache-2.0
//
// The CUDA driver for the programs of the device cases: libcuda.so.1 found at
// run time, prototypes from the machine's own cuda.h, so that one source runs
// on a card and, as far as it goes, on the simulated one. A function that the
// driver lacks ends the program with kSkipped. One thread, but Call.

#ifndef RONDO_TEST_DEVICE_CASES_GPU_H_
#define RONDO_TEST_DEVICE_CASES_GPU_H_

#include <cuda.h>
#include <dlfcn.h>
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace gpu {

constexpr int kSkipped = 77;
constexpr uint64_t kMiB = 1 << 20;

inline void* Find(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  void* const found = library ? dlsym(library, name) : nullptr;
  if (found == nullptr) {
    printf("SKIP this driver lacks %s\n", name);
    fflush(stdout);
    _Exit(kSkipped);
  }
  return found;
}

#define GPU_TEXT_(name) #name
#define GPU_TEXT(name) GPU_TEXT_(name)
// The driver's function: cuda.h turns cuMemAlloc into cuMemAlloc_v2 first.
#define CU(function)                                                          \
  ([]() -> decltype(&function) {                                              \
    static const auto found =                                                 \
        reinterpret_cast<decltype(&function)>(gpu::Find(GPU_TEXT(function))); \
    return found;                                                             \
  }())

inline const char* Name(CUresult result) {
  const char* name = nullptr;
  CU(cuGetErrorName)(result, &name);
  return name ? name : "unknown error";
}

// Ends the program where the call failed.
#define MUST(call)                                                       \
  do {                                                                   \
    if (const CUresult result_ = (call); result_ != CUDA_SUCCESS) {      \
      printf("ERROR %s: %s (%d)\n", #call, gpu::Name(result_), result_); \
      fflush(stdout);                                                    \
      _Exit(1);                                                          \
    }                                                                    \
  } while (0)

inline int64_t NowNs() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// The loop of multiply-adds of rondo-tenant (work of a fixed amount, whoever
// interrupts it), and a kernel of nothing.
constexpr char kPtx[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry rondo_spin(.param .u64 turns)
{
  .reg .u64 %n;
  .reg .f32 %a, %b, %c;
  .reg .pred %p, %q;
  ld.param.u64 %n, [turns];
  mov.f32 %a, 0f3F800001;
  mov.f32 %b, 0f3F7FFFFE;
  mov.f32 %c, 0f3727C5AC;
LOOP:
  fma.rn.f32 %a, %a, %b, %c;
  fma.rn.f32 %a, %a, %b, %c;
  fma.rn.f32 %a, %a, %b, %c;
  fma.rn.f32 %a, %a, %b, %c;
  fma.rn.f32 %a, %a, %b, %c;
  fma.rn.f32 %a, %a, %b, %c;
  fma.rn.f32 %a, %a, %b, %c;
  fma.rn.f32 %a, %a, %b, %c;
  add.s64 %n, %n, -1;
  setp.gt.s64 %p, %n, 0;
  @%p bra LOOP;
  setp.lt.f32 %q, %a, 0f00000000;
  @%q trap;
  ret;
}
.visible .entry nothing()
{
  ret;
}
)";
constexpr unsigned kThreads = 256;

struct Gpu {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUfunction spin = nullptr, nothing = nullptr;
  unsigned blocks = 0;
  double turns_per_us = 1000;

  void Context() {
    MUST(CU(cuInit)(0));
    MUST(CU(cuDeviceGet)(&device, 0));
    MUST(CU(cuDevicePrimaryCtxRetain)(&context, device));
    MUST(CU(cuCtxSetCurrent)(context));
  }
  void Kernels() {
    CUmodule module = nullptr;
    int processors = 0;
    MUST(CU(cuModuleLoadData)(&module, kPtx));
    MUST(CU(cuModuleGetFunction)(&spin, module, "rondo_spin"));
    MUST(CU(cuModuleGetFunction)(&nothing, module, "nothing"));
    MUST(CU(cuDeviceGetAttribute)(
        &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    blocks = static_cast<unsigned>(processors);
  }
  CUresult Spin(double us, CUstream stream) const {
    auto turns = static_cast<unsigned long long>(us * turns_per_us + 0.5);
    if (turns == 0) turns = 1;
    void* params[] = {&turns};
    return CU(cuLaunchKernel)(spin, blocks, 1, 1, kThreads, 1, 1, 0, stream,
                              params, nullptr);
  }
};

// Value of `--name` in the arguments, else the default.
inline const char* Option(int argc, char** argv, const char* name,
                          const char* otherwise) {
  for (int i = 1; i + 1 < argc; ++i) {
    const char *a = argv[i], *b = name;
    if (*a++ != '-' || *a++ != '-') continue;
    while (*a && *a == *b) ++a, ++b;
    if (!*a && !*b) return argv[i + 1];
  }
  return otherwise;
}
inline double Number(int argc, char** argv, const char* name, double other) {
  const char* text = Option(argc, argv, name, nullptr);
  return text ? strtod(text, nullptr) : other;
}

}  // namespace gpu

#endif  // RONDO_TEST_DEVICE_CASES_GPU_H_
