// SPDX-License-Identifier: Apache-2.0
//
// faults: works on the GPU like any other program until it is told to commit
// one fault.
//   faults KIND [SECONDS] --turns T --think-us N --kernels K --kernel-us N
// Says "ready PID" when it works, waits for a line on stdin, says
// "committed NS" (CLOCK_MONOTONIC), then "result NAME MS": what CUDA said, and
// how long after. Exit 0 where CUDA reported no error, 3 where it did. Kinds:
//   illegal, misaligned, trap, assert, stack   a kernel that faults
//   endless   a kernel of SECONDS (3), however often it is interrupted
//   killed    the same; whoever started it kills it
//   exit      exit() within that kernel
//   destroyed cuCtxDestroy with 20 kernels queued, by a thread of its own
//   storm     4 threads that allocate and free for SECONDS (1.5)
//   fork      a child that calls CUDA and one that only inherits, killed; says
//             "children NAME MS" when both are gone, and works on
// No kernel here outlasts SECONDS, so the GPU is free again even where nobody
// can kill the program.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gpu.h"

namespace {

constexpr int kFaulted = 3;
constexpr int kDepth = 3;
// Beyond any stack: the local memory of a thread is at most 512 KiB.
constexpr unsigned kCalls = 1 << 20;
constexpr uint64_t kStormHolds = 6 * 1024 * gpu::kMiB;
constexpr int kStormThreads = 4;

constexpr char kFaultsPtx[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry store(.param .u64 address)
{
  .reg .u64 %a;
  ld.param.u64 %a, [address];
  st.global.u32 [%a], 1;
  ret;
}
.visible .entry trap_()
{
  trap;
  ret;
}
.visible .entry endless(.param .u64 ns)
{
  .reg .u64 %n, %began, %now;
  .reg .pred %p;
  ld.param.u64 %n, [ns];
  mov.u64 %began, %globaltimer;
LOOP:
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %began;
  setp.lt.u64 %p, %now, %n;
  @%p bra LOOP;
  ret;
}
.func (.param .b32 sum) deeper(.param .b32 calls)
{
  .local .align 4 .b8 frame[256];
  .reg .u64 %a;
  .reg .u32 %n, %less, %sum, %mine;
  .reg .pred %p;
  ld.param.u32 %n, [calls];
  mov.u32 %sum, 0;
  setp.eq.u32 %p, %n, 0;
  @%p bra DONE;
  mov.u64 %a, frame;
  cvta.local.u64 %a, %a;
  st.volatile.u32 [%a], %n;
  sub.u32 %less, %n, 1;
  {
    .param .b32 in;
    .param .b32 out;
    st.param.b32 [in], %less;
    call.uni (out), deeper, (in);
    ld.param.b32 %sum, [out];
  }
  ld.volatile.u32 %mine, [%a];
  add.u32 %sum, %sum, %mine;
DONE:
  st.param.b32 [sum], %sum;
  ret;
}
.visible .entry stack(.param .u32 calls, .param .u64 to)
{
  .reg .u64 %a;
  .reg .u32 %n;
  ld.param.u32 %n, [calls];
  ld.param.u64 %a, [to];
  {
    .param .b32 in;
    .param .b32 out;
    st.param.b32 [in], %n;
    call.uni (out), deeper, (in);
    ld.param.b32 %n, [out];
  }
  st.global.u32 [%a], %n;
  ret;
}
)";

// What assert() becomes. A module of its own: only this one needs the driver's
// __assertfail.
constexpr char kAssertPtx[] = R"(.version 7.0
.target sm_70
.address_size 64
.extern .func __assertfail(.param .b64 message, .param .b64 file,
    .param .b32 line, .param .b64 function, .param .b64 size);
.global .align 1 .b8 message[6] = {102, 97, 117, 108, 116, 0};
.visible .entry assert_()
{
  .reg .u64 %a;
  mov.u64 %a, message;
  cvta.global.u64 %a, %a;
  {
    .param .b64 text;
    .param .b64 file;
    .param .b32 line;
    .param .b64 function;
    .param .b64 size;
    st.param.b64 [text], %a;
    st.param.b64 [file], %a;
    st.param.b32 [line], 1;
    st.param.b64 [function], %a;
    st.param.b64 [size], 1;
    call.uni __assertfail, (text, file, line, function, size);
  }
  ret;
}
)";

CUfunction Kernel(const char* ptx, const char* name) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  MUST(CU(cuModuleLoadData)(&module, ptx));
  MUST(CU(cuModuleGetFunction)(&function, module, name));
  return function;
}

CUstream Stream() {
  CUstream stream = nullptr;
  MUST(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

void Pause(int64_t ns) {
  const timespec t{ns / 1'000'000'000, ns % 1'000'000'000};
  nanosleep(&t, nullptr);
}

// A primary context cannot be destroyed.
void OwnContext(gpu::Gpu& gpu) {
  MUST(CU(cuInit)(0));
  MUST(CU(cuDeviceGet)(&gpu.device, 0));
#if CUDA_VERSION >= 13000
  MUST(CU(cuCtxCreate)(&gpu.context, nullptr, 0, gpu.device));
#else
  MUST(CU(cuCtxCreate)(&gpu.context, 0, gpu.device));
#endif
}

// Keeps the GPU busy, or serves requests, on a thread of its own: main must
// hear its line while the program is suspended. It asks instead of waiting, so
// that it can be stopped then too.
class Work {
 public:
  Work(const gpu::Gpu& gpu, double us, int kernels, int64_t think_ns)
      : gpu_(gpu), us_(us), kernels_(kernels), think_ns_(think_ns) {
    for (CUevent& event : events_) MUST(CU(cuEventCreate)(&event, 0));
    thread_ = std::thread([this] { Run(); });
  }
  ~Work() { Stop(); }
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  uint64_t done() const { return done_; }

 private:
  void Run() {
    // An error is the fault that main reports.
    if (CU(cuCtxSetCurrent)(gpu_.context) != CUDA_SUCCESS) return;
    const int depth = think_ns_ > 0 ? 1 : kDepth;
    for (uint64_t launched = 0; !stop_; ++done_) {
      for (; launched < done_ + depth; ++launched) {
        for (int i = 0; i < kernels_; ++i)
          if (gpu_.Spin(us_, stream_) != CUDA_SUCCESS) return;
        if (CU(cuEventRecord)(events_[launched % depth], stream_) !=
            CUDA_SUCCESS)
          return;
      }
      CUresult state = CUDA_ERROR_NOT_READY;
      while (!stop_ && (state = CU(cuEventQuery)(events_[done_ % depth])) ==
                           CUDA_ERROR_NOT_READY)
        Pause(20'000);
      if (state != CUDA_SUCCESS) return;
      if (think_ns_ > 0) Pause(think_ns_);
    }
  }

  const gpu::Gpu& gpu_;
  const double us_;
  const int kernels_;
  const int64_t think_ns_;
  const CUstream stream_ = Stream();
  CUevent events_[kDepth] = {};
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> done_{0};
  std::thread thread_;
};

void Say(const char* what, const char* name, int64_t since_ns) {
  printf("%s %s %.1f\n", what, name, (gpu::NowNs() - since_ns) / 1e6);
  fflush(stdout);
}

void Storm(CUcontext context, double seconds, std::atomic<uint64_t>& tried,
           std::atomic<uint64_t>& denied, std::atomic<int>& error) {
  std::vector<std::thread> threads;
  const int64_t end = gpu::NowNs() + int64_t(seconds * 1e9);
  for (int i = 0; i < kStormThreads; ++i)
    threads.emplace_back([&, i] {
      CU(cuCtxSetCurrent)(context);
      std::mt19937_64 random(i + 1);
      std::vector<std::pair<CUdeviceptr, uint64_t>> held;
      uint64_t bytes = 0;
      while (gpu::NowNs() < end && error == CUDA_SUCCESS) {
        const uint64_t size =
            65536 * exp2(std::uniform_real_distribution<>(0, 10)(random));
        CUdeviceptr at = 0;
        const CUresult result = CU(cuMemAlloc)(&at, size);
        ++tried;
        if (result == CUDA_SUCCESS) held.emplace_back(at, size), bytes += size;
        if (result == CUDA_ERROR_OUT_OF_MEMORY) ++denied;
        if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY)
          error = result;
        while (
            !held.empty() &&
            (result != CUDA_SUCCESS || bytes > kStormHolds / kStormThreads) &&
            random() % 4) {
          CU(cuMemFree)(held.back().first);
          bytes -= held.back().second;
          held.pop_back();
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// What CUDA tells a forked child; both children are gone afterwards.
std::string Children() {
  const pid_t idle = fork();
  if (idle == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) pause();
  }
  const pid_t caller = fork();
  if (caller == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Another thread may have held a lock of libcuda when this one was forked.
    alarm(1);
    CUdeviceptr at = 0;
    _exit(CU(cuMemAlloc)(&at, gpu::kMiB));
  }
  int status = 0;
  waitpid(caller, &status, 0);
  Pause(300'000'000);
  kill(idle, SIGKILL);
  waitpid(idle, nullptr, 0);
  if (WIFSIGNALED(status)) return "signal" + std::to_string(WTERMSIG(status));
  return gpu::Name(static_cast<CUresult>(WEXITSTATUS(status)));
}

CUresult Launch(CUfunction kernel, unsigned blocks, unsigned threads,
                CUstream stream, void** params) {
  const CUresult result = CU(cuLaunchKernel)(kernel, blocks, 1, 1, threads, 1,
                                             1, 0, stream, params, nullptr);
  return result != CUDA_SUCCESS ? result : CU(cuStreamSynchronize)(stream);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  const auto is = [&](const char* name) { return kind == name; };
  const bool bounded = is("endless") || is("killed") || is("exit");
  if (!bounded && !is("illegal") && !is("misaligned") && !is("trap") &&
      !is("assert") && !is("stack") && !is("destroyed") && !is("storm") &&
      !is("fork"))
    return 2;
  double seconds = bounded ? 3 : 1.5;
  if (argc > 2 && argv[2][0] != '-') seconds = strtod(argv[2], nullptr);
  const auto number = [&](const char* name, double other) {
    return gpu::Number(argc, argv, name, other);
  };
  gpu::Gpu gpu;
  gpu.turns_per_us = number("turns", 1000);
  if (is("destroyed"))
    OwnContext(gpu);
  else
    gpu.Context();
  gpu.Kernels();
  const bool plain = is("destroyed") || is("storm") || is("fork");
  const std::string name = is("trap")     ? "trap_"
                           : is("assert") ? "assert_"
                           : is("stack")  ? "stack"
                           : bounded      ? "endless"
                                          : "store";
  const CUfunction kernel = plain          ? nullptr
                            : is("assert") ? Kernel(kAssertPtx, name.c_str())
                                           : Kernel(kFaultsPtx, name.c_str());
  CUdeviceptr memory = 0;
  MUST(CU(cuMemAlloc)(&memory, 64 * gpu::kMiB));
  const CUstream stream = Stream();
  Work work(gpu, number("kernel-us", 1000), number("kernels", 1),
            number("think-us", 0) * 1e3);
  while (work.done() == 0) Pause(1'000'000);
  printf("ready %d\n", getpid());
  fflush(stdout);
  char line[16];
  if (fgets(line, sizeof(line), stdin) == nullptr) return 2;

  if (!is("storm") && !is("fork")) work.Stop();
  const int64_t began = gpu::NowNs();
  printf("committed %ld\n", static_cast<long>(began));
  fflush(stdout);
  CUresult result = CUDA_SUCCESS;
  if (bounded) {
    auto ns = static_cast<unsigned long long>(seconds * 1e9);
    void* params[] = {&ns};
    if (is("exit")) {
      MUST(CU(cuLaunchKernel)(kernel, gpu.blocks, 1, 1, gpu::kThreads, 1, 1, 0,
                              stream, params, nullptr));
      Pause(50'000'000);
      exit(0);
    }
    result = Launch(kernel, gpu.blocks, gpu::kThreads, stream, params);
  } else if (is("destroyed")) {
    for (int i = 0; i < 20; ++i) MUST(gpu.Spin(1000, stream));
    std::thread([&] { result = CU(cuCtxDestroy)(gpu.context); }).join();
  } else if (is("storm")) {
    std::atomic<uint64_t> tried{0}, denied{0};
    std::atomic<int> error{CUDA_SUCCESS};
    Storm(gpu.context, seconds, tried, denied, error);
    result = static_cast<CUresult>(error.load());
    printf("storm tried %lu denied %lu\n", tried.load(), denied.load());
  } else if (is("fork")) {
    Say("children", Children().c_str(), began);
    const uint64_t done = work.done();
    Pause(int64_t(seconds * 5e8));
    work.Stop();
    result = CU(cuCtxSynchronize)();
    if (result == CUDA_SUCCESS && work.done() == done) {
      printf("ERROR the parent does not work on\n");
      return 1;
    }
  } else {
    // 0x100: no page of the GPU has ever been there.
    auto address = is("misaligned") ? memory + 1 : CUdeviceptr{0x100};
    unsigned calls = kCalls;
    void* stores[] = {&address};
    void* stacks[] = {&calls, &memory};
    result = Launch(kernel, 1, 1, stream, is("stack") ? stacks : stores);
  }
  Say("result", gpu::Name(result), began);
  return result == CUDA_SUCCESS ? 0 : kFaulted;
}
