// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/tenant/cuda.h"

#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace rondo::sim::tenant {
namespace {

// `turns` times eight dependent multiply-adds in every thread: work of a fixed
// amount, so it takes the same GPU time however often it is interrupted. (A
// loop on a clock would count the time that others had.) The value at the end
// keeps the compiler from dropping the loop; it is never stored, as no sum gets
// there.
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
)";
constexpr unsigned kThreads = 256;
constexpr double kCalibrationUs = 2000;

}  // namespace

absl::StatusOr<Cuda> Cuda::Load() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr)
    return absl::UnavailableError(absl::StrCat("no CUDA driver: ", dlerror()));
  Cuda cuda;
  std::string missing;
#define X(name, symbol, parameters)                                     \
  cuda.symbol =                                                         \
      reinterpret_cast<decltype(cuda.symbol)>(dlsym(library, #symbol)); \
  if (cuda.symbol == nullptr && !absl::StartsWith(#symbol, "rondo"))    \
    absl::StrAppend(&missing, " ", #symbol);
  RONDO_CUDA_FUNCTIONS(X)
#undef X
  if (!missing.empty())
    return absl::UnimplementedError(
        absl::StrCat("this CUDA driver lacks", missing));
  return cuda;
}

absl::Status Cuda::Check(cuda::Result result, const char* what) const {
  if (result == cuda::kSuccess) return absl::OkStatus();
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != cuda::kSuccess || name == nullptr)
    name = "unknown error";
  const std::string text =
      absl::StrCat(what, ": ", name, " (", static_cast<int>(result), ")");
  return result == cuda::kOutOfMemory ? absl::ResourceExhaustedError(text)
                                      : absl::InternalError(text);
}

absl::StatusOr<Spinner> Spinner::Create(const Cuda& cuda, int device) {
  Spinner spinner(&cuda);
  cuda::Device handle = 0;
  cuda::Context* context = nullptr;
  RONDO_RETURN_IF_ERROR(cuda.Check(cuda.cuInit(0), "cuInit"));
  RONDO_RETURN_IF_ERROR(
      cuda.Check(cuda.cuDeviceGet(&handle, device), "cuDeviceGet"));
  RONDO_RETURN_IF_ERROR(
      cuda.Check(cuda.cuCtxCreate_v2(&context, 0, handle), "cuCtxCreate"));
  cuda::Module* module = nullptr;
  RONDO_RETURN_IF_ERROR(
      cuda.Check(cuda.cuModuleLoadData(&module, kPtx), "cuModuleLoadData"));
  RONDO_RETURN_IF_ERROR(cuda.Check(
      cuda.cuModuleGetFunction(&spinner.kernel_, module, "rondo_spin"),
      "cuModuleGetFunction"));
  int multiprocessors = 0;
  RONDO_RETURN_IF_ERROR(
      cuda.Check(cuda.cuDeviceGetAttribute(&multiprocessors,
                                           cuda::kMultiprocessors, handle),
                 "cuDeviceGetAttribute"));
  spinner.blocks_ = static_cast<unsigned>(multiprocessors);
  return spinner;
}

absl::Status Spinner::LaunchTurns(uint64_t turns, cuda::Stream* stream) const {
  void* params[] = {&turns};
  return cuda_->Check(cuda_->cuLaunchKernel(kernel_, blocks_, 1, 1, kThreads, 1,
                                            1, 0, stream, params, nullptr),
                      "cuLaunchKernel");
}

absl::StatusOr<double> Spinner::Measure(uint64_t turns) const {
  cuda::Event *begin = nullptr, *end = nullptr;
  float ms = 0;
  RONDO_RETURN_IF_ERROR(
      cuda_->Check(cuda_->cuEventCreate(&begin, 0), "cuEventCreate"));
  RONDO_RETURN_IF_ERROR(
      cuda_->Check(cuda_->cuEventCreate(&end, 0), "cuEventCreate"));
  RONDO_RETURN_IF_ERROR(
      cuda_->Check(cuda_->cuEventRecord(begin, nullptr), "cuEventRecord"));
  RONDO_RETURN_IF_ERROR(LaunchTurns(turns, nullptr));
  RONDO_RETURN_IF_ERROR(
      cuda_->Check(cuda_->cuEventRecord(end, nullptr), "cuEventRecord"));
  RONDO_RETURN_IF_ERROR(
      cuda_->Check(cuda_->cuEventSynchronize(end), "cuEventSynchronize"));
  RONDO_RETURN_IF_ERROR(cuda_->Check(cuda_->cuEventElapsedTime(&ms, begin, end),
                                     "cuEventElapsedTime"));
  cuda_->cuEventDestroy_v2(begin);
  cuda_->cuEventDestroy_v2(end);
  return ms * 1000.0;
}

// The first launches warm the clocks; of the rest the shortest count, as
// nothing makes a kernel faster than it is. Two lengths, so that what a launch
// costs beside its turns drops out.
absl::Status Spinner::Calibrate() {
  uint64_t turns = 100'000;
  double once_us = 0, twice_us = 0;
  for (int round = 0; round < 12; ++round) {
    RONDO_ASSIGN_OR_RETURN(const double us, Measure(turns));
    if (us <= 0) return absl::InternalError("a kernel took no time");
    if (round < 4) {
      turns = std::max<uint64_t>(
          1, static_cast<uint64_t>(turns * (kCalibrationUs / us)));
      continue;
    }
    RONDO_ASSIGN_OR_RETURN(const double longer_us, Measure(2 * turns));
    once_us = once_us == 0 ? us : std::min(once_us, us);
    twice_us = twice_us == 0 ? longer_us : std::min(twice_us, longer_us);
  }
  if (twice_us <= once_us)
    return absl::InternalError("kernels' lengths make no sense");
  turns_per_us_ = static_cast<double>(turns) / (twice_us - once_us);
  return absl::OkStatus();
}

absl::Status Spinner::Launch(double us, cuda::Stream* stream) const {
  return LaunchTurns(
      std::max<uint64_t>(1, static_cast<uint64_t>(us * turns_per_us_ + 0.5)),
      stream);
}

int64_t Spinner::Now() const {
  int64_t ns = 0;
  if (cuda_->simulated() && cuda_->rondoSimNow(&ns) == cuda::kSuccess)
    return ns;
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

void Spinner::SleepUntil(int64_t ns) const {
  if (cuda_->simulated()) {
    cuda_->rondoSimSleepUntil(ns);
    return;
  }
  const timespec t{static_cast<time_t>(ns / 1'000'000'000),
                   static_cast<long>(ns % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR)
    ;
}

}  // namespace rondo::sim::tenant
