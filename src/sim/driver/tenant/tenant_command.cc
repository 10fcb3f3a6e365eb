// SPDX-License-Identifier: Apache-2.0
//
// rondo-tenant: a program that uses a GPU in a known way and says what it got.
// Requests of some kernels of a given length, with or without pauses between
// them; memory of a given size. Prints one JSON object; exit 0, or 1 with a
// line on stderr.
#include "sim/driver/tenant/tenant_command.h"

#include <getopt.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "sim/driver/tenant/cuda.h"

namespace rondo::sim::tenant {
namespace {

constexpr char kUsage[] =
    R"(rondo sim-tenant (or rondo-tenant) [options]: use a GPU in a known way, print what came of it as JSON
  --kernel-us N   length of a kernel alone on the GPU (100)
  --kernels N     kernels of one request (20)
  --think-us N    pause after each request; 0 = the next one is always queued (0)
  --jitter-us N   the pause is longer by up to so much, differently each time (0)
  --depth N       requests in flight without a pause (3)
  --seconds N     how long (3)
  --warmup N      seconds before that which do not count (0.2)
  --memory MIB    memory to take first, in chunks (0)
  --chunk MIB     size of a chunk (2)
  --more MIB      memory to take when it begins, after --memory (0)
  --device N      ordinal of the GPU (0)
  --turns N       loop turns a microsecond, 1000 on a simulated GPU; 0 = measure, which needs an idle GPU (0)
  --progress N    print "progress NS REQUESTS" that often, in seconds: its clock, all requests so far (0 = never)
  --wait          print "ready" when set up, begin at end of line on stdin
)";

struct Options {
  double kernel_us = 100, kernels = 20, think_us = 0, depth = 3, seconds = 3,
         warmup = 0.2, memory = 0, chunk = 2, more = 0, device = 0, turns = 0,
         jitter_us = 0, progress = 0;
  bool wait = false, help = false;
};

absl::StatusOr<Options> Parse(int argc, char** argv) {
  constexpr struct {
    const char* name;
    double Options::*value;
  } kNumbers[] = {
      {"kernel-us", &Options::kernel_us}, {"kernels", &Options::kernels},
      {"think-us", &Options::think_us},   {"jitter-us", &Options::jitter_us},
      {"depth", &Options::depth},         {"seconds", &Options::seconds},
      {"warmup", &Options::warmup},       {"memory", &Options::memory},
      {"chunk", &Options::chunk},         {"more", &Options::more},
      {"device", &Options::device},       {"turns", &Options::turns},
      {"progress", &Options::progress},
  };
  constexpr int kWait = 'w', kHelp = 'h';
  std::vector<option> table;
  for (size_t i = 0; i < std::size(kNumbers); ++i)
    table.push_back({kNumbers[i].name, 1, nullptr, static_cast<int>(i)});
  table.push_back({"wait", 0, nullptr, kWait});
  table.push_back({"help", 0, nullptr, kHelp});
  table.push_back({});
  Options o;
  for (int c; (c = getopt_long(argc, argv, "", table.data(), nullptr)) != -1;) {
    if (c == kWait) {
      o.wait = true;
    } else if (c == kHelp) {
      o.help = true;
    } else if (c == '?') {
      return absl::InvalidArgumentError(kUsage);
    } else {
      double& value = o.*kNumbers[c].value;
      if (!absl::SimpleAtod(optarg, &value) || value < 0)
        return absl::InvalidArgumentError(
            absl::StrCat("rondo-tenant: --", kNumbers[c].name, ": '", optarg,
                         "' is not a number of 0 or more\n", kUsage));
    }
  }
  if (optind != argc || o.kernels < 1 || o.depth < 1 || o.chunk <= 0)
    return absl::InvalidArgumentError(kUsage);
  return o;
}

struct Memory {
  uint64_t bytes = 0;
  std::string denied;  // why no more came; empty = all came
};

// As much of so many MiB as can be had.
void Take(const Cuda& cuda, double mib, double chunk_mib, Memory* memory) {
  auto wanted = static_cast<uint64_t>(mib * (1 << 20));
  const auto chunk = static_cast<uint64_t>(chunk_mib * (1 << 20));
  while (wanted > 0) {
    const uint64_t bytes = std::min(chunk, wanted);
    cuda::DevicePtr pointer = 0;
    const absl::Status status =
        cuda.Check(cuda.cuMemAlloc_v2(&pointer, bytes), "cuMemAlloc");
    if (!status.ok()) {
      memory->denied = std::string(status.message());
      return;
    }
    memory->bytes += bytes;
    wanted -= bytes;
  }
}

struct Outcome {
  int64_t wall_ns = 0;
  uint64_t requests = 0;
  std::vector<double> latencies_us;
};

// One request at a time, with a pause; or always `depth` of them under way.
absl::StatusOr<Outcome> Work(const Cuda& cuda, const Spinner& spinner,
                             const Options& o) {
  struct Flight {
    cuda::Event* event;
    int64_t asked_ns;
  };
  std::deque<Flight> flights;
  std::vector<cuda::Event*> spare;
  const size_t depth = o.think_us > 0 ? 1 : static_cast<size_t>(o.depth);
  // The same pauses in every run.
  std::minstd_rand random(1);
  std::uniform_real_distribution<double> jitter_us(0, o.jitter_us);
  Outcome outcome;
  uint64_t all_requests = 0;
  int64_t told_ns = 0;
  const int64_t begin = spinner.Now() + static_cast<int64_t>(o.warmup * 1e9);
  const int64_t end = begin + static_cast<int64_t>(o.seconds * 1e9);
  for (int64_t now = spinner.Now(); now < end; now = spinner.Now()) {
    while (flights.size() < depth) {
      cuda::Event* event = nullptr;
      if (spare.empty()) {
        RONDO_RETURN_IF_ERROR(
            cuda.Check(cuda.cuEventCreate(&event, 0), "cuEventCreate"));
      } else {
        event = spare.back();
        spare.pop_back();
      }
      for (int i = 0; i < o.kernels; ++i)
        RONDO_RETURN_IF_ERROR(spinner.Launch(o.kernel_us, nullptr));
      RONDO_RETURN_IF_ERROR(
          cuda.Check(cuda.cuEventRecord(event, nullptr), "cuEventRecord"));
      flights.push_back({event, now});
    }
    const Flight flight = flights.front();
    flights.pop_front();
    RONDO_RETURN_IF_ERROR(cuda.Check(cuda.cuEventSynchronize(flight.event),
                                     "cuEventSynchronize"));
    spare.push_back(flight.event);
    const int64_t done = spinner.Now();
    if (done >= begin && done <= end) {
      ++outcome.requests;
      outcome.latencies_us.push_back((done - flight.asked_ns) / 1e3);
    }
    ++all_requests;
    if (o.progress > 0 && (done - told_ns) / 1e9 >= o.progress) {
      told_ns = done;
      std::cout << "progress " << done << " " << all_requests << std::endl;
    }
    if (o.think_us > 0)
      spinner.SleepUntil(
          done + static_cast<int64_t>((o.think_us + jitter_us(random)) * 1e3));
  }
  outcome.wall_ns = end - begin;
  return outcome;
}

double Percentile(const std::vector<double>& sorted, double p) {
  return sorted.empty() ? 0
                        : sorted[static_cast<size_t>(p * (sorted.size() - 1))];
}

void Print(const Options& o, const Spinner& spinner, const Memory& memory,
           Outcome outcome, uint64_t free, uint64_t total) {
  std::sort(outcome.latencies_us.begin(), outcome.latencies_us.end());
  const auto& sorted = outcome.latencies_us;
  const double seconds = outcome.wall_ns / 1e9;
  const double kernels = outcome.requests * o.kernels;
  std::cout << absl::StrFormat(
      "{\"pid\": %d, \"seconds\": %.6f, \"requests\": %d, "
      "\"kernels_per_second\": %.3f, \"share\": %.6f, \"latency_us\": "
      "{\"p50\": %.1f, \"p90\": %.1f, \"p99\": %.1f, \"p999\": %.1f, \"max\": "
      "%.1f}, "
      "\"memory_bytes\": %d, \"memory_denied\": \"%s\", "
      "\"free_bytes\": %d, \"total_bytes\": %d, \"turns_per_us\": %.3f}\n",
      getpid(), seconds, outcome.requests, seconds > 0 ? kernels / seconds : 0,
      seconds > 0 ? kernels * o.kernel_us / 1e6 / seconds : 0,
      Percentile(sorted, 0.5), Percentile(sorted, 0.9),
      Percentile(sorted, 0.99), Percentile(sorted, 0.999),
      sorted.empty() ? 0 : sorted.back(), memory.bytes, memory.denied, free,
      total, spinner.turns_per_us());
}

absl::Status Run(const Options& o) {
  RONDO_ASSIGN_OR_RETURN(const Cuda cuda, Cuda::Load());
  RONDO_ASSIGN_OR_RETURN(Spinner spinner,
                         Spinner::Create(cuda, static_cast<int>(o.device)));
  if (o.turns > 0)
    spinner.set_turns_per_us(o.turns);
  else
    RONDO_RETURN_IF_ERROR(spinner.Calibrate());
  Memory memory;
  Take(cuda, o.memory, o.chunk, &memory);
  if (o.wait) {
    std::cout << "ready" << std::endl;
    std::string line;
    std::getline(std::cin, line);
  }
  Take(cuda, o.more, o.chunk, &memory);
  Outcome outcome;
  if (o.seconds > 0) {
    RONDO_ASSIGN_OR_RETURN(outcome, Work(cuda, spinner, o));
  }
  size_t free = 0, total = 0;
  RONDO_RETURN_IF_ERROR(
      cuda.Check(cuda.cuMemGetInfo_v2(&free, &total), "cuMemGetInfo"));
  Print(o, spinner, memory, std::move(outcome), free, total);
  return absl::OkStatus();
}

}  // namespace

int TenantCommand(int argc, char** argv) {
  const auto options = Parse(argc, argv);
  if (!options.ok()) {
    std::cerr << options.status().message();
    return kExitUsage;
  }
  if (options->help) {
    std::cout << kUsage;
    return kExitOk;
  }
  const absl::Status status = Run(*options);
  if (status.ok()) return kExitOk;
  std::cerr << "rondo-tenant: " << status.message() << "\n";
  return kExitFailure;
}

}  // namespace rondo::sim::tenant
